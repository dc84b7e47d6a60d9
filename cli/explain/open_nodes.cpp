#include "cli/explain/open_nodes.hpp"

#include <functional>
#include <map>
#include <memory>

#include "cli/explain/obstacles.hpp"
#include "cli/explain/other_plugins.hpp"
#include "quota/filter.hpp"

namespace cli {
namespace {

/// Why a node is closed to the pod whatever its cards; empty: it is open.
using closing = std::function<text::phrase(const quota::node_view&)>;

closing closing_of(const picture& picture, const node_rules* rules, const kube::quantities& amounts) {
  const auto room = amounts.empty() ? nullptr : std::make_shared<foreign_room>(picture);
  return [&picture, rules, &amounts, room](const quota::node_view& view) {
    const auto* node = picture.nodes.find({{}, view.inventory->name});
    auto reason = node && rules ? rules->refusal(*node) : text::phrase();
    if (node && room && reason.empty()) reason = room->refusal(*node, amounts);
    return reason;
  };
}

void add_closed(const closing& reason_of, open_answer& out) {
  const auto& answer = out.about;
  std::vector<quota::shortfall> found(out.nodes.size());
  quota::filter(answer.request.containers(), out.nodes, found, answer.request.only());
  std::map<std::string, closed_nodes> reasons;
  for (std::size_t i = 0; i < out.nodes.size(); ++i) {
    if (!found[i].fits()) continue;
    auto reason = reason_of(out.nodes[i]);
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

void keep_open_nodes(const closing& reason_of, waiting_answer& answer) {
  auto open = answer.nodes;
  std::erase_if(open, [&](const quota::node_view& view) { return !reason_of(view).empty(); });
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
  const auto amounts = foreign_amounts(pod, known, picture);
  const auto reason_of = closing_of(picture, rules, amounts);
  add_closed(reason_of, out);
  if (out.fits_on_closed_alone()) keep_open_nodes(reason_of, out.about);
  return out;
}

std::string refused_before(const open_answer& judged, const kube::described_pod* whole, bool is_held_back) {
  return judged.fits() && whole && !is_held_back ? refused_key(*whole) : std::string();
}

}  // namespace cli
