#include "cli/explain/unserved.hpp"

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

}  // namespace

std::vector<std::string> unserved_resources(const placements& placements, const known_resources& known,
                                            const kube::pod& pod) {
  const auto* policy = placements.policies.find({{}, std::string(api::names::policy)});
  std::map<const modules::module_type*, std::vector<std::string>> lacking;
  for (const auto& [key, amount] : reconcilers::verify::asked_by(pod)) {
    if (amount <= 0 || known.offered.contains(key)) continue;
    if (const auto* module = offering(policy, key)) lacking[module].emplace_back(key);
  }
  std::vector<std::string> out;
  for (const auto& [module, keys] : lacking) {
    const std::string name(module->name), them = keys.size() == 1 ? "it" : "them";
    auto text = "No node has " + text::joined(keys, " or ") + ". Module " + name + " offers " + them;
    if (!policy || !policy->enabled(module->name))
      text += " and is off: set spec.modules." + name + ".enabled: true in AcceleratorPolicy default";
    else
      text += " and no node is in its mode";
    if (!module->label_values.empty())
      text += std::string(policy && policy->enabled(module->name) ? ": " : ", and ") + "label a node nvidia-device-enable=" +
              std::string(module->label_values.front());
    out.push_back(text + ".");
  }
  return out;
}

}  // namespace cli
