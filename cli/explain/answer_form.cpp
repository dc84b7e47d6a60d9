#include "cli/explain/answer_form.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "quota/filter.hpp"
#include "quota/selector.hpp"
#include "text/list.hpp"
#include "text/messages.hpp"
#include "text/text.hpp"

namespace cli {

namespace ext = reconcilers::extender;
using nlohmann::ordered_json;

known_resources resources_of(const picture& picture) {
  known_resources out;
  out.classes = picture.classes;
  out.add_refused(picture.refused_declarations);
  for (const auto& node : picture.nodes.all()) add_offered(node, out.offered);
  if (const auto* rules = picture.rules.find(api::compiled_rules::only()))
    for (auto& key : rules->keys()) out.declared.insert(std::move(key));
  return out;
}
/// The sentence about keys of a pod that no one knows; empty: it has none.
std::string unknown_keys(const kube::pod& pod, const known_resources& known, text::language locale) {
  std::set<std::string> texts;
  for (const auto& container : pod.containers)
    for (const auto& [key, amount] : container.limits)
      if (amount != 0 && known.lacks(key)) texts.insert(known.text_of(key, locale));
  return text::joined(texts, text::message("finding.remedy", locale));
}

std::string change_of_annotations(const kube::pod& pod, const ext::pod_request& request,
                                  std::span<const quota::node_view> nodes, text::language locale) {
  if (!request.only()) return {};
  const auto fitting_with = [&](const quota::selector* only) {
    std::vector<quota::shortfall> found(nodes.size());
    quota::filter(request.containers(), nodes, found, only);
    return static_cast<std::size_t>(std::ranges::count_if(found, [](const auto& entry) { return entry.fits(); }));
  };
  if (fitting_with(request.only()) > 0) return {};
  const auto fitting = fitting_with(nullptr);
  std::vector<std::string> names;
  for (const auto& [name, value] : pod.annotations)
    if (quota::selector::known(name)) names.push_back(text::shown(name, 320));
  if (fitting == 0 || names.empty()) return {};
  return text::message(
      "explain.without_annotations", locale,
      {{"list", text::some_of(names, 8, locale)}, {"nodes", text::counted(fitting, "explain.nodes", locale)}});
}

std::vector<held_row> rows_of(const quota::holding& held, const ext::pod_request& request, text::language locale) {
  std::vector<held_row> out;
  for (const auto& grant : held.grants) {
    const auto name = grant.container < request.names().size() ? request.names()[grant.container]->name : "?";
    const auto amount =
        grant.whole
            ? text::message("explain.whole_card", locale)
            : text::message("explain.share", locale,
                            {{"cores", std::to_string(grant.cores)}, {"memory", std::to_string(grant.memory_mib)}});
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

}  // namespace cli
