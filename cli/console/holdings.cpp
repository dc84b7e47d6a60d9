#include "cli/console/holdings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "quota/card_use.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

/// What a pod holds on its node.
struct holding_row {
  kube::object_key key;
  std::string node;
  std::set<std::string> cards;
  std::int64_t whole = 0, cores = 0, memory_mib = 0;
};

/// Without cards: it holds none.
holding_row holding_of(const picture& picture, const kube::pod& pod) {
  holding_row out;
  out.key = pod.key;
  const auto& book = picture.book->book();
  const auto* entry = pod.node_name.empty() || pod.containers.empty() ? nullptr : book.find(pod.id.to_string());
  const auto view = entry ? book.view(entry->held.node) : std::nullopt;
  if (!view || !picture.nodes.find({{}, entry->held.node})) return out;
  out.node = entry->held.node;
  for (const auto& grant : entry->held.grants) {
    const auto& cards = view->inventory->cards;
    const auto match = std::ranges::find(cards, grant.card, &quota::card::uuid);
    if (match == cards.end()) continue;
    out.cards.insert(match->uuid);
    out.whole += grant.whole ? 1 : 0;
    out.cores += grant.whole ? quota::whole_card : grant.cores;
    out.memory_mib += grant.whole ? match->memory_mib : grant.memory_mib;
  }
  return out;
}

const listing<holding_row>& holdings_listing() {
  using row = const holding_row&;
  static const listing<holding_row> out{
      .name = "pods",
      .columns = {{"namespace", [](row pod, const bilingual&) { return pod.key.ns; }},
                  {"name", [](row pod, const bilingual&) { return pod.key.name; }},
                  {"node", [](row pod, const bilingual&) { return pod.node; }},
                  {"cards", [](row pod, const bilingual&) { return std::to_string(pod.cards.size()); }},
                  {"cores", [](row pod, const bilingual&) { return std::to_string(pod.cores); }},
                  {"memory-mib", [](row pod, const bilingual&) { return std::to_string(pod.memory_mib); }}},
      .json =
          [](row pod) {
            return nlohmann::ordered_json{{"namespace", pod.key.ns},    {"name", pod.key.name},    {"node", pod.node},
                                          {"cards", pod.cards},         {"wholeCards", pod.whole}, {"cores", pod.cores},
                                          {"memoryMiB", pod.memory_mib}};
          },
      .object = [](row pod) { return "pod/" + pod.key.name; },
      .absence = "top.no_pods"};
  return out;
}

}  // namespace

std::vector<std::string> holding_headers() { return sort_keys(holdings_listing()); }

void print_uncounted(const std::vector<uncounted_pod>& pods, const bilingual& say, std::ostream& out) {
  if (pods.empty()) return;
  out << text::counted(pods.size(), "top.uncounted", say.locale()) << "\n";
  for (const auto& pod : pods) out << "  " << text::shown(words_of(pod.text(), say.locale()), 400) << "\n";
}

nlohmann::ordered_json uncounted_texts(const std::vector<uncounted_pod>& pods) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& pod : pods) out.push_back(words_of(pod.text(), text::language::en));
  return out;
}

void top_pods(const picture& picture, const std::string& ns, const listing_style& style, std::ostream& out,
              std::string_view name) {
  const auto wanted = [&](const kube::object_key& pod) {
    return (ns.empty() || pod.ns == ns) && (name.empty() || pod.name == name);
  };
  std::vector<holding_row> rows;
  for (const auto& pod : picture.pods.all()) {
    if (!wanted(pod.key)) continue;  // first: what pods of others hold is not looked at
    if (auto row = holding_of(picture, pod); !row.cards.empty()) rows.push_back(std::move(row));
  }
  std::ranges::sort(rows, {}, [](const holding_row& row) { return std::pair(-row.cores, row.key); });
  auto uncounted = uncounted_pods(picture, {}, ns);
  std::erase_if(uncounted, [&](const uncounted_pod& entry) { return !wanted(entry.pod); });
  const auto look = filtered_by(style, {std::string(name), namespace_filter(ns)});
  if (print(holdings_listing(), std::move(rows), look, out, {{"uncounted", uncounted_texts(uncounted)}}))
    print_uncounted(uncounted, bilingual(style.language), out);
}

}  // namespace cli
