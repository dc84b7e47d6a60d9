#pragma once
// Which control-plane nodes need the agent that edits their kube-scheduler's files. It runs as root with
// /etc/kubernetes, so the chart's DaemonSet selects a label that only these nodes have: all while the policy says
// StaticPod, and afterwards each until its row says that it is out. Keys are node names.

#include <string_view>
#include <vector>

#include "controller/reconciler.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/config_map.hpp"
#include "kube/projections/node.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace cli {

bool is_control_plane_node(const kube::node& node);

class control_plane_agents final : public controller::reconciler {
 public:
  struct stores {
    const controller::store<kube::node>& nodes;
    const controller::store<reconcilers::accelerator_policy>& policies;
    const controller::store<kube::config_map>& rows;  ///< of the agents alone
  };
  /// Everything given must outlive this. `rows` is the key of the ConfigMap.
  control_plane_agents(const stores& stores, kube::object_key rows, kube::client& client)
      : stores_(stores), rows_(std::move(rows)), client_(client) {}

  std::string_view name() const override { return "control_plane_agents"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;
  std::vector<kube::object_key> affected_by(const kube::node* before, const kube::node* after) const;
  std::vector<kube::object_key> affected_by(const kube::config_map* before, const kube::config_map* after) const;
  std::vector<kube::object_key> affected_by(const reconcilers::accelerator_policy* before,
                                            const reconcilers::accelerator_policy* after) const;

 private:
  /// The policy says StaticPod.
  bool wanted() const;
  bool needs_agent(const kube::node& node) const;
  std::vector<kube::object_key> all() const;

  stores stores_;
  kube::object_key rows_;
  kube::client& client_;
};

/// Does the policy ask for the extender in the cluster's own kube-schedulers?
bool asks_for_static_pod(const reconcilers::accelerator_policy* policy);

}  // namespace cli
