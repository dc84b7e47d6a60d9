#pragma once
// Whose a process is: read from /proc, where a card's processes are listed by their numbers on the node. Without the
// node's process namespace there is nothing to read, and the process is unseen.

#include <cstdint>
#include <string>
#include <string_view>

namespace agent::cards {

enum class owner_kind : std::uint8_t {
  unseen,      ///< /proc does not have the process
  host,        ///< it runs in no pod
  pod,         ///< it runs in a container of the kubelet
  mps_server,  ///< it works for all clients of MPS
};

struct process_owner {
  owner_kind kind = owner_kind::unseen;
  std::string container;  ///< the runtime's ID, 64 hexadecimal digits; may be empty
  std::string pod_uid;    ///< as in the API; of a static pod it is the kubelet's own
  friend bool operator==(const process_owner&, const process_owner&) = default;
};

/// The owner by /proc/PID/cgroup, of cgroup v1 or v2 and of either cgroup driver. A path may be relative to the
/// reader's own cgroup.
process_owner owner_in(std::string_view cgroup);

/// @param proc where /proc is
process_owner owner_of(const std::string& proc, unsigned pid);

}  // namespace agent::cards
