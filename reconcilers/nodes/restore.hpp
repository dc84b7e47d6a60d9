#pragma once
// A person says that a card is in order again: quartermaster.io/restore=GPU-... on the Node. The names go on to the
// node's agent in AcceleratorNode.status.restore, because the agent holds the XID. It takes the XID back; then, or
// where there is nothing to take back, the annotation is removed. So a later XID counts again. Keys are node names.

#include <string>
#include <string_view>
#include <vector>

#include "api/accelerator_node.hpp"
#include "controller/reconciler.hpp"
#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "kube/projections/node.hpp"

namespace reconcilers {

/// Node annotation, by people: cards that are in order again, by UUID, comma separated.
inline constexpr std::string_view restore_annotation = "quartermaster.io/restore";

/// What becomes of the names in the annotation.
struct restore_step {
  std::vector<std::string> wanted;    ///< the agent still has to agree; they stay in the annotation
  std::vector<std::string> refusals;  ///< sentences about names that cannot be restored
};
/// Pure. @param report null: no agent reports
restore_step next_restore(std::string_view annotation, const api::accelerator_node* report);

class card_restore final : public controller::reconciler {
 public:
  /// Everything given must outlive this.
  card_restore(const controller::store<kube::node>& nodes, const controller::store<api::accelerator_node>& reports,
               kube::client& client, controller::recorder& events)
      : nodes_(nodes), reports_(reports), client_(client), events_(events) {}

  std::string_view name() const override { return "card_restore"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;
  std::vector<kube::object_key> affected_by(const kube::node* before, const kube::node* after) const;
  std::vector<kube::object_key> affected_by(const api::accelerator_node* before,
                                            const api::accelerator_node* after) const;

 private:
  const controller::store<kube::node>& nodes_;
  const controller::store<api::accelerator_node>& reports_;
  kube::client& client_;
  controller::recorder& events_;
};

}  // namespace reconcilers
