#pragma once
// Which DaemonSet of its module serves a node. People choose a node's settings with quartermaster.io/node-set. The
// DaemonSets select by one of our labels, so only the operator moves a node from one to another. When the node enrols,
// the same patch sets this label and the module's (enrolment). When the wish changes later, one node moves after
// another, as with a new version of the plugin (plugin_rollout). Pure.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "kube/projections/node.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers {

/// On nodes with a module: the node set whose DaemonSet serves them. Absent: the DaemonSet for the nodes of no set.
/// Empty: none of them, because the old plugin is on its way out.
inline constexpr std::string_view plugin_set_label = "quartermaster.io/plugin-set";

/// The value of `serving_set` while the label is empty; no set can have this name.
inline constexpr std::string_view between_sets = "-";

/// The set whose DaemonSet serves the node now; empty: that of no set.
std::string_view serving_set(const kube::node& node);

/// The set whose settings the node shall have in that module; empty: the module's own.
std::string_view wanted_set(const accelerator_policy* policy, std::string_view module, const kube::node& node);

/// The module as it serves the nodes of that set; the name of no set changes nothing.
module_spec with_set(module_spec spec, std::string_view name);

/// Adds what makes `serving_set` of the node `target` to a JSON patch, with a test for the value it has.
void patch_set(const kube::node& node, std::string_view target, nlohmann::json& patch);

}  // namespace reconcilers
