#pragma once
// What we keep of a Node: all labels, our and plugins' annotations, taints, extended resources and readiness. About 3
// KiB for a node with 40 GPU Feature Discovery labels.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"
#include "kube/quantity.hpp"

namespace kube {

struct taint {
  std::string key;
  std::string value;
  std::string effect;  ///< "NoSchedule", "PreferNoSchedule", "NoExecute", or what a newer server knows
  friend bool operator==(const taint&, const taint&) = default;
};

/// status of a condition; anything but "True" and "False" is unknown.
enum class condition_status : std::uint8_t { unknown, no, yes };

struct node : object {
  // labels: all. annotations: kept.hpp.
  bool unschedulable = false;
  bool has_gpu_discovery = false;  ///< Node Feature Discovery has the labels of GPU Feature Discovery among its own
  condition_status ready = condition_status::unknown;  ///< unknown as well where the condition is missing
  std::int64_t ready_since = 0;                        ///< last transition of Ready, seconds since 1970; 0 when unknown
  std::vector<taint> taints;                           ///< in the server's order: patches test positions
  quantities capacity;                                 ///< extended resources only
  quantities allocatable;                              ///< extended resources only
  std::string address;                                 ///< InternalIP, the first; empty: none
  std::string container_runtime;                       ///< "containerd://2.1.4"
  std::string kubelet_version;                         ///< "v1.36.3"
  std::string operating_system;                        ///< "linux"
  std::string architecture;                            ///< "amd64"

  static const resource& of();
  static constexpr encoding wire = encoding::protobuf;
  static result<node> decode(std::string_view bytes);
  friend bool operator==(const node&, const node&) = default;
};

}  // namespace kube
