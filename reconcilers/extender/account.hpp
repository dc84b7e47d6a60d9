#pragma once
// The ledger kept true: nodes and pods as the stores have them, and what we have decided and the API has not answered
// yet. Every replica keeps one; only the leader assumes.
//
// A bound pod is booked from what is written on it (placement.hpp); one that says nothing waits for its node and is
// booked by a guess then. What is assumed stays booked until the API says whether it is so: a Binding may arrive long
// after we have given it up.

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "api/accelerator_node.hpp"
#include "api/accelerator_quota.hpp"
#include "api/compiled_rules.hpp"
#include "controller/clock.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "kube/projections/config_map.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "quota/ledger.hpp"
#include "quota/limits.hpp"
#include "quota/node_trial.hpp"
#include "quota/place.hpp"
#include "reconcilers/extender/brake.hpp"
#include "reconcilers/extender/placement.hpp"
#include "reconcilers/extender/plugin_gaps.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers::extender {

class account {
 public:
  struct stores {
    controller::store<kube::pod>& pods;
    controller::store<kube::node>& nodes;
    controller::store<accelerator_policy>& policies;
    controller::store<api::compiled_rules>& rules;
    controller::store<api::accelerator_quota>& quotas;
    controller::store<kube::config_map>& old_quotas;  ///< kube-system/gpuquota alone
    controller::store<api::accelerator_node>& cards;
  };
  /// The stores must outlive this; it observes all of them.
  /// @param plugins the namespace of the plugins' pods; empty: what becomes of them is not looked at
  account(stores known, controller::registry& metrics, std::string plugins = {});
  account(const account&) = delete;
  account& operator=(const account&) = delete;

  const quota::ledger& book() const { return book_; }
  bool synced() const;
  bool declared(std::string_view key) const { return declared_.contains(key); }
  declared_keys keys() const {
    return {[this](std::string_view key) { return declared(key); }, renamed_};
  }

  const quota::allowances& limits() const { return limits_; }
  /// Of how many nodes sick cards are believed.
  const extender::brake& brake() const { return brake_; }
  /// Called when it may hold back other cards than before.
  void on_brake(std::function<void()> call) { on_brake_ = std::move(call); }
  /// Of all cards there are.
  /// Has the namespace any limit?
  bool limited(std::string_view ns) const { return limited_.contains(ns); }
  /// What is wrong with kube-system/gpuquota; empty: nothing. What could be read last holds.
  const std::string& trouble() const { return old_trouble_; }
  /// The limit that would refuse the pod on a node like this, whose cards are all of one model; empty: none.
  std::optional<quota::exceeded_limit> over(const kube::pod& pod, const pod_request& request,
                                            const quota::node_inventory& node) const;

  /// The pod that goes before this one on the node: kube-scheduler has nominated it there (status.nominatedNodeName),
  /// its priority is not lower, and the two do not fit together. kube-scheduler itself keeps such room only in sums,
  /// not per card, and not for keys it ignores. Null: none. Cost: nothing where no one is nominated to
  /// the node.
  const kube::pod* goes_before(const kube::pod& pod, const pod_request& request, std::string_view node) const;

  /// What the pod would hold of a node, or why it would not.
  struct fitting {
    std::optional<quota::holding> held = {};          ///< it fits, and its limits allow it
    std::optional<quota::exceeded_limit> limit = {};  ///< cards are there, and this limit refuses
    /// Else what does. Views are into the request.
    std::variant<std::string, quota::refusal, quota::shortfall> cause = {};

    /// Why not, for a person: most callers try and do not ask.
    std::string reason() const;
  };
  /// Cards of models that a limit refuses are left alone where the node has others. @param gone UIDs of pods that count
  /// no more, neither on the node nor in the limits. Pods that go before it there are left their room.
  fitting try_on(const kube::pod& pod, const pod_request& request, std::string_view node,
                 std::span<const std::string> gone = {}) const;

  /// Before the write: @return as ledger::assume.
  quota::booked assume(const kube::pod& pod, const quota::holding& holding, controller::milliseconds now);
  /// As assume, for a caller that only filters: it stands on the pod and waits for someone else's Binding.
  quota::booked decide(const kube::pod& pod, const quota::holding& holding, controller::milliseconds now);
  /// The write did not happen and cannot any more, or the pod is gone.
  void release(const kube::uid& pod);
  /// What the API says of one pod, asked for by itself.
  void take(const kube::pod& now) { take_in(nullptr, &now); }

  struct assumed {
    kube::object_key key;
    std::string node;
    controller::milliseconds since;
    bool at_filter = false;  ///< decided at filter; bound by the scheduler itself
  };
  /// By pod UID; what the API has not confirmed.
  const std::unordered_map<std::string, assumed>& open() const { return open_; }

  /// Called after something was given back: a pod has gone, a node has come.
  void on_room(std::function<void()> call) { on_room_ = std::move(call); }

  /// Recomputes what every pod holds from the stores and repairs what differs. @return how many entries did.
  std::size_t audit();

 private:
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  const accelerator_policy* policy() const;
  void take_in(const kube::pod* before, const kube::pod* after);
  void note_nomination(const kube::pod* before, const kube::pod* after);
  /// Pods that are nominated to the node and go before this one.
  std::vector<const kube::pod*> nominated(const kube::pod& pod, std::string_view node) const;
  std::vector<const quota::holding*> leaving(std::string_view node, std::span<const std::string> gone) const;
  void set_aside(quota::node_trial& trial, const kube::pod& pod, std::span<const quota::holding* const> leaving) const;
  const kube::pod* first_in_the_way(quota::node_trial& trial, const kube::pod& pod, const pod_request& request,
                                    const quota::demand& needs, std::span<const std::string> gone) const;
  void take_in(const kube::node* before, const kube::node* after);
  void take_in(const api::accelerator_node* before, const api::accelerator_node* after);
  void take_in(const accelerator_policy* before, const accelerator_policy* after);
  void put(const std::string& node);
  void put(const kube::node& node);
  void rename(const std::string& node, const std::unordered_map<std::string, std::string>& cards);
  void book(const kube::pod& pod);
  void book_decided(const kube::pod& pod);
  void guess(const kube::pod& pod);
  void guess_again(const std::string& node, const kube::object_key& first = {}, const kube::pod* newcomer = nullptr);
  void forget_guess(const std::string& node, const std::string& uid);
  bool is_over_given(const quota::holding& held) const;
  void all_anew();
  void learn_keys(const api::compiled_rules* now);
  void learn_limits(const std::string& ns);
  void learn_old_limits(const kube::config_map* now);
  void charge(const kube::pod& pod, const quota::holding& held);
  void charge_holders(const quota::node_inventory& node);
  bool charged_rightly(const kube::pod& pod, const quota::holding& held) const;
  void wait_for(const std::string& node, const kube::object_key& pod);
  void publish();
  void publish_brake();

  stores known_;
  quota::ledger book_;
  quota::allowances limits_;
  std::unordered_set<std::string, hash, std::equal_to<>> limited_;
  std::vector<quota::tenant> old_limits_;  ///< the last that could be read
  std::string old_trouble_;
  std::unordered_set<std::string, hash, std::equal_to<>> declared_;
  std::vector<renamed_key> renamed_;
  std::unordered_map<std::string, assumed> open_;
  std::unordered_map<std::string, std::set<kube::object_key>> waiting_;  ///< by node that is not there: pods to book
  std::map<std::string, std::set<kube::object_key>, std::less<>> nominated_;  ///< by node: pods that are not bound
  std::unordered_map<std::string, std::map<kube::object_key, std::string>> guessed_;  ///< by node: UIDs of pods
  std::function<void()> on_room_;
  extender::brake brake_;
  plugin_gaps gaps_;
  std::function<void()> on_brake_;
  bool was_holding_ = false;
  controller::family<controller::counter>& differences_;
  controller::gauge& confirmed_entries_;
  controller::gauge& assumed_entries_;
  controller::gauge& over_given_;
  controller::gauge& sick_nodes_;
  controller::gauge& held_nodes_;
  controller::gauge& held_cards_;
  controller::gauge& withdrawal_limit_;
};

}  // namespace reconcilers::extender
