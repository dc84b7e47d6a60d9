#pragma once
// How the files of the node's container runtime set it up: containerd (also that of k3s, RKE2, k0s and
// MicroK8s), CRI-O, Docker.

#include "agent/facts/node.hpp"

namespace agent::facts {

fact<container_runtime> read_runtime(const files& node);

/// Where the toolkit's own configuration lies, which the program of the runtime nvidia reads.
std::string toolkit_config(const container_runtime& runtime);
/// machine_facts::reads_environment
fact<std::optional<bool>> read_environment_rule(const files& node, const container_runtime& runtime);

}  // namespace agent::facts
