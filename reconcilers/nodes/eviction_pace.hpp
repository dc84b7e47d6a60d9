#pragma once
// How often pods are evicted from a node whose mode changes. A controller makes its pods again, and where they tolerate
// every taint, a kube-scheduler that does not ask our extender puts them on the same node. Each pod that was there
// first is evicted once. Those that come back are evicted together, after a pause that doubles. Pure. It is kept in
// memory: a new leader begins again with the first eviction.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controller/clock.hpp"
#include "reconcilers/nodes/mode_change.hpp"

namespace reconcilers {

class eviction_pace {
 public:
  /// From one eviction of an owner's pods to that of the pods that came back.
  static constexpr controller::milliseconds first_pause{10'000}, longest_pause{300'000};
  /// How long a pod whose eviction was granted may take until it is seen to end.
  static constexpr controller::milliseconds eviction_counts{60'000};

  struct turn {
    std::vector<holder> due;                       ///< to evict now
    std::optional<controller::milliseconds> next;  ///< how long until others are due; empty: there are none
  };
  /// `pods` are all of the node that may be evicted and are not ending.
  turn take(const std::string& node, std::span<const holder> pods, controller::milliseconds now);
  /// The API server has granted the eviction.
  void evicted(const std::string& node, const holder& pod, controller::milliseconds now);
  /// Did its owner make it after others were evicted from this node?
  bool came_back(const std::string& node, const holder& pod) const;
  /// The node's change of mode is over, or the node is gone.
  void forget(const std::string& node) { nodes_.erase(node); }

 private:
  struct pod_seen {
    bool came_back = false;
    std::optional<controller::milliseconds> evicted;
  };
  /// The pods of one owner that are on the node at once.
  struct wave {
    std::map<kube::uid, pod_seen> pods;
    controller::milliseconds pause{0}, next{0};
    bool has_evicted = false;
  };
  std::map<std::string, std::map<kube::uid, wave>> nodes_;  ///< by node and owner
};

}  // namespace reconcilers
