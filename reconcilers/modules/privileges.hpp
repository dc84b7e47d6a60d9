#pragma once
// Why each module may do what a plain container may not. A test reads every privilege out of the objects and fails on
// one without a reason, and on a reason that no object needs any more.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers::modules {

/// Of its plugin, and of the product's own where the module can have it.
std::vector<privilege> privileges_of(const module_type& module);
/// Of the modules that a policy brings itself.
std::span<const privilege> privileges_of_custom_modules();

/// What one pod template asks for, as "container: what" ("what" for the pod), sorted, each once.
std::vector<std::string> privileges_in(const nlohmann::json& pod_spec);

}  // namespace reconcilers::modules
