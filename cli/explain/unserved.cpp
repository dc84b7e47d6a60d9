#include "cli/explain/unserved.hpp"

#include <algorithm>
#include <map>

#include "api/names.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/verify/verify.hpp"
#include "text/list.hpp"

namespace cli {
namespace {

namespace modules = reconcilers::modules;

/// Of several modules with that resource the first that is on; else the first.
const modules::module_type* offering(const reconcilers::accelerator_policy* policy, std::string_view resource) {
  const modules::module_type* out = nullptr;
  for (const auto& module : modules::offered_by(policy).rows()) {
    if (!modules::advertises(module, resource)) continue;
    if (policy && policy->enabled(module.name)) return &module;
    if (!out) out = &module;
  }
  return out;
}

std::string remedy_of(const modules::module_type& module, const reconcilers::accelerator_policy* policy,
                      const picture& picture) {
  const std::string name(module.name);
  const auto label = module.label_values.empty()
                         ? "label a node for it"
                         : "label a node nvidia-device-enable=" + std::string(module.label_values.front());
  if (!policy || !policy->enabled(module.name)) {
    const auto reason = module.not_offered ? module.not_offered({}) : std::string();
    return " and is off" + (reason.empty() ? ": set" : ", and is " + reason + ". Then set") + " spec.modules." + name +
           ".enabled: true in AcceleratorPolicy default, and " + label + ".";
  }
  const auto spec = policy->modules.find(module.name);
  if (const auto reason = module.not_offered ? module.not_offered(spec->second) : std::string(); !reason.empty())
    return ", and cannot be had: " + reason;
  const auto nodes = static_cast<std::size_t>(std::ranges::count_if(picture.nodes.all(), [&](const auto& node) {
    return node.labels.value_or(api::names::module_label, "") == module.name;
  }));
  if (nodes == 0) return " and no node is in its mode: " + label + ".";
  return ", but " + plural(nodes, "node in its mode has", "nodes in its mode have") +
         " none yet: quartermaster inspect nodes says why.";
}

}  // namespace

std::vector<std::string> unserved_resources(const picture& picture, const known_resources& known,
                                            const kube::pod& pod) {
  const auto* policy = picture.policies.find(reconcilers::policy_key);
  std::map<const modules::module_type*, std::vector<std::string>> lacking;
  for (const auto& [key, amount] : reconcilers::verify::asked_by(pod)) {
    if (amount <= 0 || known.offered.contains(key)) continue;
    if (const auto* module = offering(policy, key)) lacking[module].emplace_back(key);
  }
  std::vector<std::string> out;
  for (const auto& [module, keys] : lacking)
    out.push_back("No node has " + text::joined(keys, " or ") + ". Module " + std::string(module->name) + " offers " +
                  (keys.size() == 1 ? "it" : "them") + remedy_of(*module, policy, picture));
  return out;
}

}  // namespace cli
