#include "reconcilers/modules/node_sets.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"

namespace reconcilers {

std::string_view serving_set(const kube::node& node) {
  const auto label = node.labels.find(plugin_set_label);
  if (!label) return {};
  return label->empty() ? between_sets : *label;
}

std::string_view wanted_set(const accelerator_policy* policy, std::string_view module, const kube::node& node) {
  const auto label = node.labels.find(api::names::node_set_label);
  if (!policy || !label) return {};
  const auto spec = policy->modules.find(module);
  if (spec == policy->modules.end()) return {};
  const bool known = std::ranges::find(spec->second.node_sets, *label, &node_set::name) != spec->second.node_sets.end();
  return known ? *label : std::string_view();
}

module_spec with_set(module_spec spec, std::string_view name) {
  const auto set = std::ranges::find(spec.node_sets, name, &node_set::name);
  if (set != spec.node_sets.end())
    for (const auto& [key, value] : set->settings) spec.settings[key] = value;
  return spec;
}

void patch_set(const kube::node& node, std::string_view target, nlohmann::json& patch) {
  if (serving_set(node) == target) return;
  constexpr auto path = "/metadata/labels/quartermaster.io~1plugin-set";
  const auto label = node.labels.find(plugin_set_label);
  patch.push_back({{"op", "test"}, {"path", path}, {"value", label ? nlohmann::json(*label) : nlohmann::json()}});
  if (target.empty())
    patch.push_back({{"op", "remove"}, {"path", path}});
  else
    patch.push_back({{"op", "add"}, {"path", path}, {"value", target == between_sets ? "" : std::string(target)}});
}

}  // namespace reconcilers
