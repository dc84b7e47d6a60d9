#pragma once
// How the files of the node's container runtime set it up: containerd (also k3s's), CRI-O, Docker.

#include "agent/facts/node.hpp"

namespace agent::facts {

fact<container_runtime> read_runtime(const files& node);

}  // namespace agent::facts
