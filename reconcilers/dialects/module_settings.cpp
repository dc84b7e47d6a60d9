#include "reconcilers/dialects/module_settings.hpp"

#include "reconcilers/modules/node_sets.hpp"
#include "reconcilers/modules/settings.hpp"

namespace reconcilers::dialects {

module_settings::module_settings(const kube::node& node, const accelerator_policy* policy, std::string_view module)
    : row_(modules::find(module)) {
  if (!policy) return;
  const auto match = policy->modules.find(module);
  if (match == policy->modules.end()) return;
  spec_ = with_set(match->second, serving_set(node));
}

std::string module_settings::text(std::string_view name) const {
  return row_ ? modules::setting_of(row_->settings, spec_, name) : std::string();
}

}  // namespace reconcilers::dialects
