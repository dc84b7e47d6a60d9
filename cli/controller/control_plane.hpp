#pragma once
// The control-plane nodes whose kube-scheduler is to ask our extender (spec.scheduler.mode StaticPod), as the policy's
// status shows them: the rows that the agents keep in a ConfigMap, and messages for nodes without one. Pure.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/conditions.hpp"
#include "controller/metrics.hpp"
#include "kube/projections/config_map.hpp"
#include "reconcilers/plugins/policy_status.hpp"

namespace cli {

struct control_plane_facts {
  bool wanted = false;                                     ///< the policy says StaticPod
  std::int64_t generation = 0;                             ///< of the policy
  const kube::config_map* config_map = nullptr;            ///< quartermaster-static-pod; null: there is none
  std::set<std::string, std::less<>> nodes;                ///< those of the rows that are there
  std::set<std::string, std::less<>> control_plane_nodes;  ///< of the cluster
};

struct control_plane_status {
  std::vector<reconcilers::scheduler_row> rows;  ///< in the order of their names
  std::optional<controller::condition> state;    ///< SchedulerReady; empty: nothing of it is there, nor ought to be
};

control_plane_status status_of(const control_plane_facts& control_plane_facts);

/// How many control-plane nodes are in which state.
class control_plane_metric {
 public:
  explicit control_plane_metric(controller::registry& registry);
  void set(const control_plane_status& control_plane_status);

 private:
  controller::family<controller::gauge>& nodes_;
};

}  // namespace cli
