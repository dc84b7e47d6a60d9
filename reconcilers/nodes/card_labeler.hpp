#pragma once
// Keeps the labels of card_labels.hpp on nodes, where spec.cardLabels of the policy asks for them. They are written by
// server-side apply with a field owner of their own and without force: a conflict means that the label is someone
// else's. Only the annotation is taken back from someone who wrote it. The UID in the request keeps it from making a
// Node. Keys are node names.

#include <string_view>
#include <vector>

#include "controller/reconciler.hpp"
#include "controller/store.hpp"
#include "kube/client.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/nodes/card_labels.hpp"

namespace reconcilers {

/// Field owner of the labels, and of those that are Node Feature Discovery's now.
inline constexpr std::string_view card_labels_owner = "quartermaster-card-labels";
inline constexpr std::string_view handed_over_labels_owner = "quartermaster-handed-over-labels";

/// Brings our labels of the node to `wanted`; no others are touched. Nothing is sent where that is so already.
/// @return errc::conflict where the node has changed since and a label was to be written
kube::task<void> write_card_labels(kube::client& client, kube::node node, label_values wanted);

class card_labeler final : public controller::reconciler {
 public:
  /// Everything given must outlive this.
  card_labeler(const controller::store<kube::node>& nodes, const controller::store<api::accelerator_node>& reports,
               const controller::store<accelerator_policy>& policies, kube::client& client)
      : nodes_(nodes), reports_(reports), policies_(policies), client_(client) {}

  std::string_view name() const override { return "card_labels"; }
  kube::task<controller::action> reconcile(kube::object_key key) override;
  std::vector<kube::object_key> affected_by(const kube::node* before, const kube::node* after) const;
  std::vector<kube::object_key> affected_by(const api::accelerator_node* before,
                                            const api::accelerator_node* after) const;
  std::vector<kube::object_key> affected_by(const accelerator_policy* before, const accelerator_policy* after) const;

 private:
  label_values wanted(const kube::node& node) const;
  bool concerns(const kube::node& node) const;

  const controller::store<kube::node>& nodes_;
  const controller::store<api::accelerator_node>& reports_;
  const controller::store<accelerator_policy>& policies_;
  kube::client& client_;
};

}  // namespace reconcilers
