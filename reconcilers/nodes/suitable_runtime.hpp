#pragma once
// Whether a node's container runtime can do what the plugin of a module needs. The rules are those of what a node asks
// for (intent.cpp): who gives the node a new version of a plugin goes by them, too.

#include "kube/projections/node.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers {

/// The module's plugin, as the policy has it, cannot work with the container runtime that the kubelet names.
bool has_unsuitable_runtime(const kube::node& node, const modules::module_type& mode, const accelerator_policy& policy);

}  // namespace reconcilers
