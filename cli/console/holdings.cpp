#include "cli/console/holdings.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/console/shares.hpp"
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
      .object = [](row pod) { return "pod/" + pod.key.name; }};
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
  std::map<kube::object_key, holding_row> pods;
  for (const auto& node : console::shares_of(picture))
    for (const auto& card : node.cards)
      for (const auto& share : card.shares) {
        if (!share.pod || !wanted(share.pod->key)) continue;
        auto& row = pods[share.pod->key];
        row.key = share.pod->key;
        row.node = node.node->key.name;
        row.cards.insert(card.card->uuid);
        row.whole += share.whole ? 1 : 0;
        row.cores += share.cores;
        row.memory_mib += share.memory_mib;
      }
  std::vector<holding_row> rows;
  for (auto& [key, row] : pods) rows.push_back(std::move(row));
  std::ranges::sort(rows, {}, [](const holding_row& row) { return std::pair(-row.cores, row.key); });
  auto uncounted = uncounted_pods(picture);
  std::erase_if(uncounted, [&](const uncounted_pod& entry) { return !wanted(entry.pod); });
  if (print(holdings_listing(), std::move(rows), style, out, {{"uncounted", uncounted_texts(uncounted)}}))
    print_uncounted(uncounted, bilingual(style.language), out);
}

}  // namespace cli
