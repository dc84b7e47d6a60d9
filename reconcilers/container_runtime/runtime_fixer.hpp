#pragma once
// Sets up container runtimes where spec.containerRuntime.fix of the policy asks for it. It reads the stores, takes the
// next step (fix_step.hpp, pure) and makes, reads or deletes the one pod (pod.hpp, pure). The answer of a pod goes to
// AcceleratorNode.status.runtimeFix and becomes an event of the Node. The only key is `only()`.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/accelerator_node.hpp"
#include "controller/clock.hpp"
#include "controller/conditions.hpp"
#include "controller/reconciler.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/container_runtime/fix_step.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers::container_runtime {

class runtime_fixer final : public controller::reconciler {
 public:
  struct stores {
    const controller::store<accelerator_policy>& policies;
    const controller::store<kube::node>& nodes;
    const controller::store<kube::pod>& pods;
    const controller::store<api::accelerator_node>& reports;
  };
  struct settings {
    std::string ns;         ///< where the pod is made: our own namespace
    std::string own_image;  ///< of this program; empty: quartermaster:<version>
    std::function<controller::wall_time()> wall = [] { return std::chrono::system_clock::now(); };
    std::function<controller::milliseconds()> now = controller::boot_now;
    std::function<void()> on_state = [] {};  ///< `state` has changed
  };

  /// Everything given must outlive this.
  runtime_fixer(stores stores, kube::client& client, controller::recorder& events, settings settings);

  static kube::object_key only();
  std::string_view name() const override { return "runtime_fixer"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;

  /// For the policy's status; empty: the policy asks for nothing.
  std::optional<controller::condition> state() const { return state_; }

  /// What to look at again after a change, as a store's observer sees it (either may be null).
  std::vector<kube::object_key> affected_by(const accelerator_policy* before, const accelerator_policy* after) const;
  std::vector<kube::object_key> affected_by(const kube::node* before, const kube::node* after) const;
  std::vector<kube::object_key> affected_by(const kube::pod* before, const kube::pod* after) const;
  std::vector<kube::object_key> affected_by(const api::accelerator_node* before,
                                            const api::accelerator_node* after) const;

 private:
  bool synced() const;
  const accelerator_policy* policy() const;
  const kube::pod* pod() const;
  bool has_work() const;
  std::string wish_of(const container_runtime_spec& spec) const;
  fix_state look() const;
  std::optional<fix_pod> pod_now() const;
  kube::task<controller::action> make(fix_step step);
  kube::task<controller::action> record();
  kube::task<controller::action> remove();
  void decide(const fix_step& step);

  stores stores_;
  kube::client& client_;
  controller::recorder& events_;
  settings settings_;
  std::optional<controller::milliseconds> made_;  ///< until the watch shows the pod
  text::phrase problem_;                          ///< why the pod cannot be made
  std::optional<controller::condition> state_;
};

}  // namespace reconcilers::container_runtime
