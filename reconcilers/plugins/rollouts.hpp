#pragma once
// Brings new versions of plugins to the nodes. plugin_rollout.hpp (pure) decides the next step; this part reads
// and writes. It keeps the record of the node between two versions as an annotation of its DaemonSet, next to what the
// policy applies. It deletes one plugin pod at a time, by uid. When a node moves to another node set, it changes the
// label that says which DaemonSet has it. Keys are names of modules.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/accelerator_node.hpp"
#include "controller/clock.hpp"
#include "controller/reconciler.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/daemon_set.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/nodes/node_pods.hpp"
#include "reconcilers/plugins/plugin_rollout.hpp"

namespace reconcilers {

class rollouts final : public controller::reconciler {
 public:
  struct stores {
    const controller::store<accelerator_policy>& policies;
    const controller::store<kube::daemon_set>& daemon_sets;
    controller::store<kube::node>& nodes;
    controller::store<kube::pod>& pods;
    const controller::store<api::accelerator_node>& accelerator_nodes;
    const node_pods& on_nodes;  ///< over the same pods
  };
  struct settings {
    std::string ns;  ///< where our DaemonSets are
    std::function<controller::wall_time()> wall = [] { return std::chrono::system_clock::now(); };
    std::function<controller::milliseconds()> now = controller::boot_now;
    /// Is called when `look` has something else to say than before.
    std::function<void()> on_news = [] {};
  };

  /// Everything given must outlive this. Observes the stores, so it must be made before the observers that call
  /// `affected_by`.
  rollouts(stores stores, kube::client& client, controller::recorder& events, settings settings);
  rollouts(const rollouts&) = delete;
  rollouts& operator=(const rollouts&) = delete;

  std::string_view name() const override { return "rollout"; }
  kube::task<controller::action> reconcile(kube::object_key module) override;

  /// Where a module stands, from the stores as they are: what the policy says of it.
  rollout_step look(const std::string& module) const;

  /// What to look at again after a change, as a store's observer sees it (either may be null).
  std::vector<kube::object_key> affected_by(const accelerator_policy* before, const accelerator_policy* after) const;
  std::vector<kube::object_key> affected_by(const kube::daemon_set* before, const kube::daemon_set* after) const;
  std::vector<kube::object_key> affected_by(const kube::node* before, const kube::node* after) const;
  std::vector<kube::object_key> affected_by(const kube::pod* before, const kube::pod* after) const;
  std::vector<kube::object_key> affected_by(const api::accelerator_node* before,
                                            const api::accelerator_node* after) const;

 private:
  /// Names by module.
  using index = std::map<std::string, std::set<kube::object_key>, std::less<>>;
  /// Our last word on a DaemonSet, until its watch has shown it.
  struct last_write {
    std::uint64_t version = 0;
    std::string record;
  };
  struct well_since {
    rollout_record record;
    controller::milliseconds time{0};
  };
  struct sets_of {
    std::vector<const kube::daemon_set*> all;
    std::optional<rollout_record> record;
  };

  bool synced() const;
  bool is_ours(const kube::daemon_set& set) const;
  bool is_plugin(const kube::pod& pod) const;
  std::string record_on(const kube::daemon_set& set) const;
  sets_of sets(std::string_view module) const;
  bool changing(const kube::node& node, std::string_view module) const;
  /// The newest version is everywhere or nothing is known: no nodes.
  rollout_state state_of(const std::string& module) const;
  kube::task<bool> write(std::string set, std::string record);
  kube::task<bool> is_idle(std::string node);
  kube::task<void> remove(rollout_step::removal removal, std::string module);
  kube::task<bool> move(rollout_step::relocation relocation, std::string module);

  stores stores_;
  kube::client& client_;
  controller::recorder& events_;
  settings settings_;
  index plugins_, served_;  ///< plugin pods and nodes of each module
  std::map<std::string, last_write, std::less<>> written_;
  std::map<std::string, well_since, std::less<>> well_;  ///< by module
  std::set<kube::uid> removed_;                          ///< pods we deleted that the watch still shows as they were
  std::set<std::string, std::less<>> waiting_;           ///< modules of which nodes wait for their pods
  std::map<std::string, std::pair<bool, text::phrase>, std::less<>> messages_;
  std::map<std::string, controller::milliseconds, std::less<>> at_rest_;  ///< modules without an old plugin, since
};

}  // namespace reconcilers
