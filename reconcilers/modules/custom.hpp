#pragma once
// Modules of a policy's own: any vendor's device plugin, whose image, resources and mounts stand in the policy
// (spec.modules.<name>.device). Each is a mode of its own, so Ascend, AMD, Intel and FPGA live side by side.

#include <optional>
#include <string>
#include <vector>

#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers::modules::custom {

// What of its row depends on the policy. Nothing here throws: a device that cannot be read is reported when its objects
// are made.

/// Its row but for the names and lists, which have to be kept somewhere.
module_type row_of(const module_spec& spec);
std::string title_of(const std::string& name, const module_spec& spec);
std::string daemon_set_of(const std::string& name, const module_spec& spec);
std::vector<std::string> architectures_of(const module_spec& spec);
/// device.nodeLabel, where there is one.
std::optional<label_alias> alias_of(const std::string& name, const module_spec& spec);
/// The module's; of a policy's own module what the device says.
rollout rollout_of(const module_type& type, const module_spec& spec);

}  // namespace reconcilers::modules::custom
