#include "cli/explain/open_nodes.hpp"

#include <map>

#include "quota/filter.hpp"

namespace cli {
namespace {

text::phrase refusal_by_rules(const quota::node_view& view, const node_rules& rules, const picture& picture) {
  const auto* node = picture.nodes.find({{}, view.inventory->name});
  return node ? rules.refusal(*node) : text::phrase();
}

void add_closed(const node_rules* rules, const picture& picture, open_answer& out) {
  const auto& answer = out.about;
  std::vector<quota::shortfall> found(out.nodes.size());
  quota::filter(answer.request.containers(), out.nodes, found, answer.request.only());
  std::map<std::string, closed_nodes> reasons;
  for (std::size_t i = 0; i < out.nodes.size(); ++i) {
    if (!found[i].fits()) continue;
    auto reason = rules ? refusal_by_rules(out.nodes[i], *rules, picture) : text::phrase();
    if (reason.empty()) {
      ++out.open;
      continue;
    }
    auto& entry = reasons[words_of(reason, text::language::en)];
    entry.reason = std::move(reason);
    ++entry.nodes;
  }
  for (auto& [text, entry] : reasons) out.closed.push_back(std::move(entry));
}

void keep_open_nodes(const node_rules& rules, const picture& picture, waiting_answer& answer) {
  auto open = answer.nodes;
  std::erase_if(open, [&](const quota::node_view& view) { return !refusal_by_rules(view, rules, picture).empty(); });
  if (open.empty()) return;
  answer.nodes = std::move(open);
  answer.reason = quota::explain(answer.request.containers(), answer.nodes, answer.request.only());
  answer.kept.clear();
  answer.is_kept_everywhere = false;
}

}  // namespace

open_answer why_waiting_with_rules(const picture& picture, const known_resources& known, const kube::pod& pod,
                                   const node_rules* rules, text::language locale, others names) {
  open_answer out{why_waiting(picture, known, pod, locale, names), {}, {}, 0};
  if (!out.about.unknown.empty() || out.about.request.nothing()) return out;
  out.nodes = out.about.nodes;
  add_closed(rules, picture, out);
  if (rules && out.fits_on_closed_alone()) keep_open_nodes(*rules, picture, out.about);
  return out;
}

}  // namespace cli
