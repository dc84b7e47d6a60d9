#pragma once
// What the kubelet's own files say of cgroups. Kubelets that ask the runtime (Kubernetes 1.31 and later, with
// containerd 2) do not follow it, so it is the last source.

#include <string>

#include "agent/facts/files.hpp"

namespace agent::facts {

/// SystemdCgroup that goes with cgroupDriver: "true" or "false". Empty: no file that can be read says it.
std::string kubelet_systemd(const files& node);

}  // namespace agent::facts
