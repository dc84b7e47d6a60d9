#pragma once
// Keeps the one ResourceRules object: what the accepted declarations say (declarations::registry, compiled), for the
// admission policies of the chart to read, labelled with how strictly (spec.customResources.enforcement), and with
// whether pods that ask for accelerators are sent to our scheduler (reconcilers/own_scheduler). Written only when it
// differs, at most once a second. It is also where the last accepted content of a declaration survives its being edited
// into an error, and our restart. The only key is `default`.

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/compiled_rules.hpp"
#include "api/owned_object.hpp"
#include "controller/clock.hpp"
#include "controller/conditions.hpp"
#include "controller/reconciler.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/node.hpp"
#include "reconcilers/declarations/custom_resource.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers {

/// The key of which a container may ask for one and no more, as the module that shares cards by time is set; empty:
/// none, because the module's plugin takes more.
std::string_view single_share(const accelerator_policy& policy);

class resource_rules final : public controller::reconciler {
 public:
  struct stores {
    const controller::store<accelerator_policy>& policies;
    controller::store<kube::node>& nodes;
    const controller::store<api::compiled_rules>& rules;
  };
  struct settings {
    /// False: the API server cannot fill pods in by itself.
    std::function<bool()> filled_by_policies = [] { return true; };
    std::function<void()> on_state = [] {};  ///< `state` has changed
    /// Whether pods that ask for accelerators are sent to our scheduler; empty: not decided yet, as it is.
    std::function<std::optional<bool>()> sends = [] { return std::nullopt; };
    std::function<controller::milliseconds()> now = controller::boot_now;
  };

  /// Everything given must outlive this. Observes the stores, so it must be made before the observers that call
  /// `affected_by`.
  resource_rules(stores stores, custom_resource& declared, kube::client& client, settings settings);
  resource_rules(const resource_rules&) = delete;
  resource_rules& operator=(const resource_rules&) = delete;

  std::string_view name() const override { return "resource-rules"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;

  /// What to look at again after a change, as a store's observer sees it (either may be null).
  std::vector<kube::object_key> affected_by(const accelerator_policy* before, const accelerator_policy* after) const;
  std::vector<kube::object_key> affected_by(const kube::node* before, const kube::node* after) const;
  std::vector<kube::object_key> affected_by(const kube::config_map* before, const kube::config_map* after) const;
  std::vector<kube::object_key> affected_by(const api::compiled_rules* before, const api::compiled_rules* after) const;
  std::vector<kube::object_key> affected_by(const api::owned_runtime_class* before,
                                            const api::owned_runtime_class* after) const;

  /// Condition RulesEnforced of the policy: whether pods are held to the rules, and why not.
  std::optional<controller::condition> state() const { return state_; }

 private:
  bool synced() const;
  void count(const kube::node* before, const kube::node* after);
  declarations::rule_set last_good(const api::compiled_rules* is) const;
  nlohmann::json object_of(const accelerator_policy& policy, const api::compiled_rules* is);
  kube::task<controller::action> remove(const api::compiled_rules& object);
  kube::task<void> look_at_chart(std::string mode);
  kube::task<text::phrase> problem_of_policies(std::string mode);
  kube::task<text::phrase> problem_of_policy(const kube::resource& type, std::string name);
  kube::task<text::phrase> problem_of_binding(const kube::resource& type, std::string name, std::string policy,
                                              std::string action);
  kube::task<text::phrase> problem_of_webhook();
  void say(std::optional<controller::condition> condition);
  controller::condition condition_of(const accelerator_policy& policy) const;

  stores stores_;
  custom_resource& declared_;
  kube::client& client_;
  settings settings_;
  std::map<std::string, int, std::less<>> offering_;  ///< nodes that offer a key
  std::set<std::string, std::less<>> offered_;        ///< the keys of `offering_`
  std::size_t keys_ = 0, left_out_ = 0;               ///< of the last compilation
  /// Rules of declarations that are in error now, as of the last compilation. The object has them too, and is where
  /// they survive us; but a hand that edits or deletes it does not change what they are.
  std::vector<declarations::rule> kept_;
  text::phrase problem_;    ///< what is wrong with the chart's policies, bindings and webhooks; empty: nothing
  std::string looked_for_;  ///< the mode of the last look at them
  std::optional<controller::milliseconds> looked_;
  controller::milliseconds wrote_{-1'000'000};
  std::uint64_t wrote_version_ = 0;  ///< the store may be behind it
  std::optional<controller::condition> state_;
};

}  // namespace reconcilers
