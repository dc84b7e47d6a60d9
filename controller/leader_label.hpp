#pragma once
// quartermaster.io/leader=true on the leader's own pod, so that Services can select it and Kubernetes publishes the
// leader's address by itself. A pod that was killed keeps its label, and after a container restart it would be selected
// although it does not lead. So the new leader first takes the label off our other pods, then puts it on its own. Each
// write is a merge patch of this label alone. Patches of other pods carry their UID as a precondition.

#include <string>

#include "kube/client.hpp"

namespace controller {

inline constexpr std::string_view leader_label = "quartermaster.io/leader";

/// The pod we run in; empty name outside a cluster.
struct own_pod {
  kube::object_key key;
  /// POD_NAMESPACE and POD_NAME of the environment (downward API).
  static own_pod of_environment();
};

/// Takes the label off others, puts it on `self`; retried until it is done or the fence says that we do not lead.
/// Nothing happens without a name.
kube::task<void> mark_leader(kube::client& api, own_pod self);
/// Takes the label off `self`; that it has none, or is gone, is fine.
kube::task<void> unmark_leader(kube::client& api, own_pod self);

}  // namespace controller
