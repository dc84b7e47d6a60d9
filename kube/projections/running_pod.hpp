#pragma once
// A Pod as its node sees it: all containers, whatever they ask for, and the runtime's IDs by which their processes are
// found. For those who look at the pods of one node.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/projections/pod.hpp"

namespace kube {

struct container_id {
  std::string name;
  std::string id;  ///< the runtime's, without its scheme; empty: not started yet
  friend bool operator==(const container_id&, const container_id&) = default;
};

struct running_pod : pod {
  std::vector<container_id> ids;  ///< of containers of all kinds, also of ephemeral ones
  std::int64_t grace_s = 0;       ///< metadata.deletionGracePeriodSeconds, where it is being deleted

  static result<running_pod> decode(std::string_view bytes);
  friend bool operator==(const running_pod&, const running_pod&) = default;
};

}  // namespace kube
