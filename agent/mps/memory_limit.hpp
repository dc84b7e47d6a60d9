#pragma once
// The memory of a pod's share of a card, held by the driver itself: a limit of the pod's cgroup, from branch R615 of
// the driver and cgroup v2 on. It counts for all processes of the pod together, and none of them can lift it. The soft
// limit stays 0: the driver would add it to the cgroups above, and leave it there when a pod's own goes. Who has how
// much is the scheduler's book.
//
// The kubelet has made the pod's cgroup before it asks for a start, and a limit of it holds its containers (NVIDIA
// dynamo, "Per-GPU Compute and Memory Limits with MPS", section 3). That of a container comes later, and shows in it as
// the card's memory. None of it has run on such a driver here.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "agent/cards/nvml.hpp"

namespace agent::mps {

/// The folder of all pods: ROOT/kubepods.slice, or ROOT/kubepods. An error where there is none, or both, as with
/// cgroup v1.
std::expected<std::string, std::string> cgroup_of_pods(const std::string& root);
/// The pod's folder in it, by the kubelet's systemd or cgroupfs driver and in each class of service.
std::expected<std::string, std::string> cgroup_of_pod(const std::string& root, std::string_view uid);
/// @param id the runtime's, without its scheme
std::expected<std::string, std::string> cgroup_of_container(const std::string& root, std::string_view uid,
                                                            std::string_view id);
/// Where a limit may be tried: the cgroup of the pod that this program is in, else of all pods.
/// @param proc where /proc of the node is
std::expected<std::string, std::string> cgroup_for_trial(const std::string& root, const std::string& proc);

/// Set and read back. An error in one line.
std::expected<void, std::string> limit_memory(const cards::nvml_library& nvml, const std::string& card,
                                              const std::string& cgroup, std::int64_t memory_mib);
/// Whether the driver keeps such limits: a limit of all the card's memory is set, read back and taken away. A cgroup
/// that has limits gets the same ones again.
std::expected<void, std::string> try_memory_limit(const cards::nvml_library& nvml, const std::string& card,
                                                  const std::string& cgroup, std::int64_t memory_mib);

}  // namespace agent::mps
