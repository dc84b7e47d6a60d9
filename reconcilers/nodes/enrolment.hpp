#pragma once
// Brings every node to the mode it asks for. mode_change.hpp (pure) decides the next step; this part reads and
// writes. One JSON patch with the uid and the old values sets our label and our taint on the Node (isolated nodes get
// their taint by a patch of its own). AcceleratorNode is written by server-side apply. It evicts pods, and records
// events on the Node and on the pods it waits for. It limits how many nodes are under way at once to
// spec.enrolment.maxUnavailable. Keys are node names.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/accelerator_node.hpp"
#include "controller/clock.hpp"
#include "controller/coded_status.hpp"
#include "controller/reconciler.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/cuda/labels.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/nodes/eviction_pace.hpp"
#include "reconcilers/nodes/node_pods.hpp"

namespace reconcilers {

class enrolment final : public controller::reconciler {
 public:
  struct stores {
    const controller::store<accelerator_policy>& policies;
    controller::store<kube::node>& nodes;
    controller::store<kube::pod>& pods;
    controller::store<api::accelerator_node>& accelerator_nodes;
  };

  struct settings {
    std::string ns;  ///< where our DaemonSets are
    std::function<controller::wall_time()> wall = [] { return std::chrono::system_clock::now(); };
    std::function<controller::milliseconds()> now = controller::boot_now;
    /// Is called when a node that waits for its turn should be looked at again.
    std::function<void(const kube::object_key&)> wake = [](const kube::object_key&) {};
    /// Whether nodes with a module are kept for pods that ask for accelerators; empty: not decided yet, as it is.
    std::function<std::optional<bool>()> isolates = [] { return std::nullopt; };
    /// The leader is about to apply the policy of the installation: until then nodes are not judged without one.
    std::function<bool()> awaits_policy = [] { return false; };
  };

  /// Everything given must outlive this. Observes the stores, so it must be made before the observers that call
  /// `affected_by`.
  enrolment(stores stores, kube::client& client, controller::recorder& events, settings settings);
  enrolment(const enrolment&) = delete;
  enrolment& operator=(const enrolment&) = delete;

  /// The labels that device configurations name, from now on; returns the nodes to look at again.
  std::vector<kube::object_key> declare(std::vector<label_alias> labels);

  /// What `isolates` says has changed: the nodes to look at again.
  std::vector<kube::object_key> isolation_changed() const;

  /// Which pods on a node matter to its mode; lives as long as this.
  const node_pods& pods() const { return pods_; }

  std::string_view name() const override { return "enrolment"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;

  /// What to look at again after a change, as a store's observer sees it (either may be null).
  std::vector<kube::object_key> affected_by(const kube::node* before, const kube::node* after) const;
  std::vector<kube::object_key> affected_by(const kube::pod* before, const kube::pod* after) const;
  std::vector<kube::object_key> affected_by(const api::accelerator_node* before,
                                            const api::accelerator_node* after) const;
  /// All nodes that ask for, have or had a mode, when something changed that their mode depends on.
  std::vector<kube::object_key> affected_by(const accelerator_policy* before, const accelerator_policy* after) const;

 private:
  /// What we wrote last about a node, until the watches have shown it: a store that is behind must not be acted on.
  struct last_write {
    std::uint64_t node_version = 0, status_version = 0;
    controller::milliseconds time{0};
  };
  /// How long a node has been in a phase: what an earlier process left, and the time since this one has seen it.
  struct phase_seen {
    std::string phase, began;
    controller::milliseconds since{0}, before{0};
  };

  bool synced() const;
  bool behind(const kube::node& node, const api::accelerator_node* object);
  const accelerator_policy* policy() const;
  cuda::label_step cuda_labels(const kube::node& node) const;
  /// Whether to put the taint of isolated nodes on, or take it off; empty where it is as it should be.
  std::optional<bool> isolation_step(const kube::node& node) const;
  void count_free(const kube::node* before, const kube::node* after);
  bool concerns(const kube::node& node) const;
  bool changing(const kube::node& node) const;
  /// Keeps `changing_` true to the stores; the next that waits goes on when one is done.
  void follow(const std::string& name);
  std::vector<kube::object_key> given_up() const;
  std::int64_t slots() const;  ///< nodes that may begin a change now
  controller::milliseconds lasted(const std::string& name, const api::mode_status& phase);
  node_state state_of(const kube::node& node, const api::accelerator_node* object);
  kube::task<controller::action> bring(const kube::node& node, const api::accelerator_node* object);
  bool knows_pods(const std::string& node) const;
  kube::task<controller::action> learn_pods(std::string node);
  kube::task<bool> write(const kube::node& node, const nlohmann::json& patch);
  kube::task<std::optional<controller::milliseconds>> evict(std::string node, std::vector<holder> pods);
  /// Deletes a plugin pod that its kubelet has lost, as gently as an update of the plugin does.
  kube::task<void> restart(controller::object_reference about, plugin_pod pod);
  void tell(const controller::object_reference& about, const mode_step& step, const node_state& is);
  /// Makes the object, or the agent's object ours: it goes with the node from then on.
  kube::task<void> own(std::string name, std::string uid);
  /// Without a status nothing of the operator stays in the object.
  kube::task<void> write_status(std::string name, std::string uid, bool create, std::optional<api::mode_status> status);
  kube::task<controller::action> remove(const api::accelerator_node& object);
  /// While the object is being deleted nothing is written for its node. After a minute an event says what holds it.
  kube::task<controller::action> await_deletion(controller::object_reference node, api::accelerator_node object);

  /// An AcceleratorNode that is being deleted, as this process has seen it.
  struct departure {
    kube::uid object;
    controller::milliseconds since{0};
    bool is_said = false;
  };

  stores stores_;
  kube::client& client_;
  controller::recorder& events_;
  settings settings_;
  node_pods pods_;
  std::vector<label_alias> declared_;
  int free_ = 0;  ///< nodes without a module that take pods
  std::unordered_map<std::string, last_write> written_;
  std::unordered_map<std::string, phase_seen> phases_;
  std::unordered_map<std::string, departure> departures_;
  /// When the API server said that the store of pods has all pods of a node whose plugin is to go.
  std::unordered_map<std::string, controller::milliseconds> known_pods_;
  std::int64_t enrolled_ = 0;       ///< AcceleratorNodes with a mode, or that ask for one
  std::set<std::string> changing_;  ///< nodes on their way, as the stores show them or as we have just written
  std::set<std::string> waiting_;   ///< nodes whose turn has not come
  std::set<std::string> writing_;   ///< nodes to which one of our writes is on its way
  std::map<kube::object_key, text::phrase> refused_;  ///< pods whose last eviction was refused, and why
  eviction_pace pace_;
  controller::coded_status status_;
  std::unordered_map<std::string, controller::milliseconds> restarted_;  ///< when a node's plugin pod was, by node
};

}  // namespace reconcilers
