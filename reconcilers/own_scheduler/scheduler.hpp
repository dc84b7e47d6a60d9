#pragma once
// Keeps the kube-scheduler next to the cluster's own, as spec.scheduler of the policy says. It reads the API,
// takes the next step (plan.hpp, pure) and keeps its objects (objects.hpp, pure) by applier.hpp. resource_rules sends
// pods to it, and enrolment isolates nodes; both ask here. The only key is `only()`.

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/compiled_rules.hpp"
#include "api/owned_object.hpp"
#include "controller/clock.hpp"
#include "controller/metrics.hpp"
#include "controller/reconciler.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/deployment.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/certificates/extender_certificates.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/own_scheduler/plan.hpp"
#include "reconcilers/plugins/applier.hpp"
#include "reconcilers/plugins/policy_status.hpp"

namespace reconcilers::own_scheduler {

class scheduler final : public controller::reconciler {
 public:
  struct stores {
    const controller::store<accelerator_policy>& policies;
    const controller::store<api::compiled_rules>& rules;
    controller::store<kube::node>& nodes;
    controller::store<kube::pod>& pods;
    const controller::store<extender_secret>& secrets;  ///< of the callers; only where we have an extender
    controller::store<kube::deployment>& deployments;   ///< our own
    applier::stores objects;
  };
  struct settings {
    std::string ns;
    bool extender = false;  ///< we answer kube-schedulers
    std::function<controller::milliseconds()> now = controller::boot_now;
    std::function<void()> on_state = [] {};     ///< `rows` or `state` have changed
    std::function<void()> on_sends = [] {};     ///< `sends` has changed
    std::function<void()> on_isolates = [] {};  ///< `isolates` has changed
    std::string image_registry = {};            ///< of the usual image; empty: its own
  };

  /// Everything given must outlive this. Observes the stores, so it must be made before the observers that call
  /// `affected_by`.
  scheduler(stores stores, kube::client& client, controller::recorder& events, controller::registry& metrics,
            settings settings);
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  static kube::object_key only();
  std::string_view name() const override { return "scheduler"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;

  /// Are pods that ask for accelerators to be sent to it? Are nodes with a module to be tainted? Empty before the first
  /// look: as it is.
  std::optional<bool> sends() const { return sends_; }
  std::optional<bool> isolates() const { return isolates_; }
  /// What the policy's status says. Empty before the first look.
  std::optional<std::vector<scheduler_row>> rows() const { return rows_; }
  std::optional<controller::condition> state() const { return state_; }

  /// What to look at again after a change, as a store's observer sees it (either may be null).
  std::vector<kube::object_key> affected_by(const accelerator_policy* before, const accelerator_policy* after) const;
  std::vector<kube::object_key> affected_by(const api::compiled_rules* before, const api::compiled_rules* after) const;
  std::vector<kube::object_key> affected_by(const kube::node* before, const kube::node* after) const;
  std::vector<kube::object_key> affected_by(const kube::pod* before, const kube::pod* after) const;
  /// Of Deployments, ConfigMaps and Secrets.
  std::vector<kube::object_key> affected_by(const kube::object* before, const kube::object* after) const;

 private:
  bool synced() const;
  void count(const kube::node* before, const kube::node* after);
  void count(const kube::pod* before, const kube::pod* after);
  const accelerator_policy* policy() const;
  const kube::deployment* deployment() const;
  std::string version() const;
  std::vector<std::string> declared() const;
  situation look();
  kube::task<void> ask_version();
  kube::task<std::optional<controller::milliseconds>> keep(scheduler_spec spec, controller::object_reference about);
  void decide(const situation& is, const plan& next);

  stores stores_;
  kube::client& client_;
  settings settings_;
  applier applier_;
  controller::gauge &ready_, &sending_, &waiting_count_;

  std::set<kube::object_key> waiting_;  ///< pods of its name without a node
  int tainted_ = 0, free_ = 0;          ///< nodes: isolated, and without a module
  std::string answered_;                ///< the server's version, as it said last
  std::optional<controller::milliseconds> query_time_, answered_since_, quiet_since_;
  std::string problem_;  ///< of the last writes
  text::phrase message_;
  std::optional<bool> sends_, isolates_;
  std::optional<std::vector<scheduler_row>> rows_;
  std::optional<controller::condition> state_;
};

}  // namespace reconcilers::own_scheduler
