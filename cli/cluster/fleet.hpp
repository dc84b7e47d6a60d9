#pragma once
// What the verbs that look at nodes read of a cluster, once: nodes, what the operator and the agent say of them, the
// pods that matter, our DaemonSets, the policy and the lease. Reads only.

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/accelerator_node.hpp"
#include "api/accelerator_quota.hpp"
#include "api/other_card.hpp"
#include "cli/cluster/cluster.hpp"
#include "kube/projections/daemon_set.hpp"
#include "kube/projections/lease.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/nodes/preflight.hpp"
#include "reconcilers/verify/verify.hpp"

namespace cli {

/// A Node with what people want to see of it.
struct listed_node : kube::node {
  std::string address;  ///< InternalIP; empty: none
  std::string container_runtime;

  static const kube::resource& of() { return kube::node::of(); }
  static constexpr kube::encoding wire = kube::node::wire;
  static kube::result<listed_node> decode(std::string_view bytes);
  friend bool operator==(const listed_node&, const listed_node&) = default;
};

struct listed_card {
  std::string uuid, model, compute_capability, health;
  std::int64_t index = -1, memory_mib = 0;
  friend bool operator==(const listed_card&, const listed_card&) = default;
};

/// An AcceleratorNode with the agent's part.
struct listed_accelerator : api::accelerator_node {
  std::vector<reconcilers::agent_row> reported;  ///< status.preflight
  std::vector<listed_card> cards;                ///< in the order of their index
  std::vector<api::other_card> other_cards;

  static const kube::resource& of() { return api::accelerator_node::of(); }
  static constexpr kube::encoding wire = api::accelerator_node::wire;
  static kube::result<listed_accelerator> decode(std::string_view bytes);
  friend bool operator==(const listed_accelerator& a, const listed_accelerator& b) {
    return static_cast<const api::accelerator_node&>(a) == b && a.cards == b.cards;
  }
};

struct fleet {
  std::vector<std::string> missing_types;
  std::optional<reconcilers::accelerator_policy> policy;
  std::vector<std::string> other_policies;
  std::vector<reconcilers::label_alias> declared;  ///< labels of device configurations; none where we may not see them
  std::vector<listed_node> nodes;                  ///< in the order of their names
  std::map<std::string, listed_accelerator, std::less<>> accelerators;
  /// Not finished; plugin pods, our own and others, and those that ask for an extended resource. In the order of their
  /// keys.
  std::vector<kube::pod> pods;
  std::vector<kube::daemon_set> daemon_sets;   ///< ours
  std::vector<api::accelerator_quota> quotas;  ///< in the order of their keys; none where we may not see them
  std::string ns;                              ///< the operator's; empty: not found
  std::optional<kube::lease> lease;
  std::string lease_unseen;    ///< why the lease could not be read
  bool lease_renewed = false;  ///< while we looked
};

struct fleet_options {
  std::string ns;            ///< the operator's namespace; empty: where the lease quartermaster is
  std::string node;          ///< this one and its pods only; empty: all
  bool operator_too = true;  ///< the lease, and whether it is renewed
};

/// errc::not_found where the node is not there; 403 for nodes, pods or our own objects is an error.
kube::task<fleet> read_fleet(kube::transport& transport, fleet_options options);

/// What is known of a node for preflight: labels, and the agent's report where there is one.
reconcilers::node_facts facts_of(const fleet& fleet, const listed_node& node);
/// The pods of a node.
std::vector<const kube::pod*> pods_on(const fleet& fleet, std::string_view node);
bool is_plugin(const fleet& fleet, const kube::pod& pod);

/// For the walk: those nodes that have or ask for a mode, or the one that was asked for. `now` is wall time.
reconcilers::verify::cluster_view view_of(const fleet& fleet, std::string_view only_node,
                                          std::chrono::system_clock::time_point now);

}  // namespace cli
