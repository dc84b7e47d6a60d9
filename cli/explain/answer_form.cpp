#include "cli/explain/answer_form.hpp"

#include <nlohmann/json.hpp>
#include <set>

namespace cli {

namespace ext = reconcilers::extender;
using nlohmann::ordered_json;

known_resources resources_of(const picture& picture) {
  known_resources out;
  for (const auto& node : picture.nodes.all()) add_offered(node, out.offered);
  if (const auto* rules = picture.rules.find(api::compiled_rules::only()))
    for (auto& key : rules->keys()) out.declared.insert(std::move(key));
  return out;
}
/// The sentence about keys of a pod that no one knows; empty: it has none.
std::string unknown_keys(const kube::pod& pod, const known_resources& known) {
  std::set<std::string> texts;
  for (const auto& container : pod.containers)
    for (const auto& [key, amount] : container.limits)
      if (amount != 0 && known.lacks(key)) texts.insert(known.text_of(key));
  std::string out;
  for (const auto& text : texts) out += (out.empty() ? "" : "; ") + text;
  return out;
}

std::vector<held_row> rows_of(const quota::holding& held, const ext::pod_request& request) {
  std::vector<held_row> out;
  for (const auto& grant : held.grants) {
    const auto name = grant.container < request.names().size() ? request.names()[grant.container]->name : "?";
    const auto amount = grant.whole
                            ? std::string("whole card")
                            : std::to_string(grant.cores) + " cores, " + std::to_string(grant.memory_mib) + " MiB";
    out.push_back({name, grant.card, amount});
  }
  for (const auto& count : held.counts) out.push_back({"", count.key, std::to_string(count.amount)});
  return out;
}
ordered_json json_of(const quota::holding& held, const ext::pod_request& request) {
  ordered_json out = ordered_json::array();
  for (const auto& grant : held.grants)
    out.push_back(
        {{"container", grant.container < request.names().size() ? request.names()[grant.container]->name : ""},
         {"card", grant.card},
         {"whole", grant.whole},
         {"cores", grant.cores},
         {"memoryMiB", grant.memory_mib}});
  for (const auto& count : held.counts) out.push_back({{"key", count.key}, {"count", count.amount}});
  return out;
}

std::string plural(std::size_t count, std::string_view singular, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? singular : many);
}

}  // namespace cli
