#pragma once
// Brings the cluster to what the AcceleratorPolicy `default` says: the objects of the modules that are on are there as
// we want them, everything else that carries our label is not. Which objects is the catalogue's business (modules/,
// pure), how they are kept is applier.hpp's, which status policy_status.hpp's (pure). Keys are policy names.

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controller/clock.hpp"
#include "controller/coded_status.hpp"
#include "controller/reconciler.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/node.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/plugins/applier.hpp"
#include "reconcilers/plugins/plugin_rollout.hpp"
#include "reconcilers/plugins/policy_status.hpp"

namespace reconcilers {

class policy final : public controller::reconciler {
 public:
  struct stores {
    const controller::store<accelerator_policy>& policies;
    controller::store<kube::node>& nodes;
    applier::stores objects;  ///< see there what each must hold
  };
  struct settings {
    std::string ns;         ///< where the objects are made: our own namespace
    std::string own_image;  ///< of this program, for plugins that are part of it; empty: quartermaster:<version>
    std::string declarations = "kube-public";  ///< where modules declare what they advertise
    std::function<controller::wall_time()> wall = [] { return std::chrono::system_clock::now(); };
    std::function<controller::milliseconds()> now = controller::boot_now;
    /// Conditions of the policy that others work out.
    std::function<std::vector<controller::condition>()> conditions = [] {
      return std::vector<controller::condition>();
    };
    /// Where a module stands between two versions of its plugin.
    std::function<rollout_step(const std::string& module)> rollout = [](const std::string&) { return rollout_step(); };
    /// The kube-schedulers that ask our extender; empty: no one has looked yet.
    std::function<std::optional<std::vector<scheduler_row>>()> schedulers = [] { return std::nullopt; };
    std::string image_registry = {};  ///< of images that the policy does not name; empty: that of each
  };

  /// Everything given must outlive this. Observes the stores, so it must be made before the observers that call
  /// `affected_by`.
  policy(stores stores, kube::client& client, controller::recorder& events, settings settings);
  policy(const policy&) = delete;
  policy& operator=(const policy&) = delete;

  std::string_view name() const override { return "policy"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;

  /// What to look at again after a change, as a store's observer sees it (either may be null).
  std::vector<kube::object_key> affected_by(const accelerator_policy* before, const accelerator_policy* after) const;
  std::vector<kube::object_key> affected_by(const kube::node* before, const kube::node* after) const;
  /// Of DaemonSets, Services, ServiceAccounts and ConfigMaps: whatever is where our objects are may bear one of our
  /// names, or declare one of our keys.
  std::vector<kube::object_key> affected_by(const kube::object* before, const kube::object* after) const;

 private:
  struct desired_objects {
    std::vector<modules::intent> objects;
    std::map<std::string, text::phrase> broken;  ///< module -> why its objects cannot be made
  };
  /// How the writes of one round went.
  struct round {
    std::map<std::string, applier::outcome> modules;
    std::optional<controller::milliseconds> again_in;
    std::optional<kube::error> failed;
    void add(const applier::outcome& outcome);
    void add(const std::string& module, const applier::outcome& outcome);
  };

  bool synced() const;
  desired_objects made_of(const accelerator_policy& rules, const std::set<std::string, std::less<>>& others) const;
  /// What it was the last time where neither the policy nor what others declare has changed: rendering it costs more
  /// than everything else when a thousand nodes change their mode.
  std::shared_ptr<const desired_objects> wanted_by(const accelerator_policy* rules);
  std::vector<module_row> rows_of(const accelerator_policy& rules, const desired_objects& want, const round& did) const;
  kube::task<controller::action> govern(const accelerator_policy* rules);
  kube::task<applier::outcome> report(std::shared_ptr<const desired_objects> want, round did,
                                      controller::object_reference about);
  std::optional<applier::outcome> too_early() const;  ///< for a write of the status
  kube::task<applier::outcome> say(kube::object_key key, std::string uid, nlohmann::json before, nlohmann::json status);
  void tell(const controller::object_reference& about, const nlohmann::json& before, const nlohmann::json& now);
  void tell_of_schedulers(const controller::object_reference& about, const nlohmann::json& before,
                          const nlohmann::json& now);
  void count(const kube::node* before, const kube::node* after);

  stores stores_;
  kube::client& client_;
  controller::recorder& events_;
  settings settings_;
  applier applier_;
  std::map<std::string, std::int32_t, std::less<>> nodes_in_;             ///< nodes by the value of our label
  std::map<std::pair<std::string, std::string>, std::int32_t> nodes_of_;  ///< by module and the node set that serves
  controller::milliseconds status_wrote_{-1'000'000};
  controller::coded_status status_;
  struct {
    std::string uid;
    std::map<std::string, module_spec, std::less<>> modules;
    bool publish = false;
    std::set<std::string, std::less<>> others;
    std::shared_ptr<const desired_objects> is;
  } last_wanted_;
};

}  // namespace reconcilers
