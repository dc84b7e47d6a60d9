#pragma once
// Which taints of a node keep the plugin of a module away. The DaemonSet controller makes no pod there and says nothing
// about it, so we do. Pure.

#include <string>
#include <string_view>

#include "kube/projections/node.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers {

/// "dedicated=gpu:NoSchedule, x:NoExecute"; empty where the plugin tolerates all of them, or is none that can be made.
/// Those that come and go with a node's health (node.kubernetes.io/) are the DaemonSet controller's business.
std::string untolerated_taints(const kube::node& node, const accelerator_policy& policy, std::string_view module);

}  // namespace reconcilers
