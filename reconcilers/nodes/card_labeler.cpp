#include "reconcilers/nodes/card_labeler.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"

namespace reconcilers {
namespace {

using controller::action;
using nlohmann::json;

kube::write_options as_owner(std::string_view owner) {
  kube::write_options out;
  out.field_manager = owner;
  return out;
}

json body_of(const kube::node& node, const label_values& labels, const std::string& record) {
  json out = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", node.key.name}}}};
  auto& metadata = out["metadata"];
  metadata["uid"] = node.id.to_string();
  if (!labels.empty()) metadata["labels"] = labels;
  if (!record.empty()) metadata["annotations"] = {{card_labels_annotation, record}};
  return out;
}

/// The API server names each field of a conflict, as .metadata.labels.KEY.
bool names_field(std::string_view message, std::string_view part, std::string_view key) {
  const auto field = ".metadata." + std::string(part) + "." + std::string(key);
  for (auto begin = message.find(field); begin != std::string_view::npos; begin = message.find(field, begin + 1)) {
    const auto rest = message.substr(begin + field.size());
    if (rest.empty() || std::string_view(" ,").contains(rest.front())) return true;
  }
  return false;
}

/// The node has gone (409), or another one has its name (422): the change comes here.
bool is_overtaken(const kube::error& error) {
  return error.code == kube::errc::not_found ||
         (error.code == kube::errc::conflict && error.message.contains("uid mismatch")) ||
         (error.code == kube::errc::invalid && error.message.contains("metadata.uid"));
}

/// Reports about an earlier node of the same name are void.
bool is_about(const api::accelerator_node& report, const kube::node& node) {
  return std::ranges::none_of(report.owners,
                              [&](const auto& owner) { return owner.kind == "Node" && owner.id != node.id; });
}

}  // namespace

kube::task<void> write_card_labels(kube::client& client, kube::node node, label_values wanted) {
  auto step = next_card_labels(node, wanted);
  if (step.is_idle) co_return kube::result<void>();
  const auto key = node.key;
  if (!step.handed_over.empty()) {
    // Who stops to apply a label that no one else applies removes it. Node Feature Discovery does not apply, and a
    // label that has its value already is not written by it: pods would wait until its next turn, for up to an hour.
    const auto body = body_of(node, step.handed_over, {});
    const auto options = as_owner(handed_over_labels_owner);
    auto answer = co_await client.apply(kube::resources::nodes, key, body, options);
    // A conflict: the label has changed, and the change comes here.
    if (!answer && (answer.error().code == kube::errc::conflict || is_overtaken(answer.error())))
      co_return kube::result<void>();
    if (!answer) co_return std::unexpected(std::move(answer.error()));
  }
  auto options = as_owner(card_labels_owner);
  for (;;) {
    auto body = body_of(node, step.labels, step.record);
    // Of a node that has changed since, someone may have removed a label: this would bring it back.
    if (options.force || !step.labels.empty())
      body["metadata"]["resourceVersion"] = std::to_string(node.resource_version);
    auto answer = co_await client.apply(kube::resources::nodes, key, body, options);
    if (answer) co_return kube::result<void>();
    if (is_overtaken(answer.error())) co_return kube::result<void>();
    if (answer.error().code != kube::errc::conflict) co_return std::unexpected(std::move(answer.error()));
    const auto& message = answer.error().message;
    const auto dropped =
        std::erase_if(step.labels, [&](const auto& label) { return names_field(message, "labels", label.first); });
    // The record is ours, also where someone else wrote it last. The conflict named the labels of others, and the node
    // is as it was then: nothing else is taken from anyone.
    const bool takes_record = !options.force && names_field(message, "annotations", card_labels_annotation);
    if (dropped == 0 && !takes_record) co_return std::unexpected(std::move(answer.error()));
    options.force = options.force || takes_record;
    step.record = record_of(step.labels, step.withheld);
  }
}

label_values card_labeler::wanted(const kube::node& node) const {
  const auto* policy = policies_.find(policy_key);
  const auto* report = reports_.find(node.key);
  if (!policy || policy->deleting || policy->removing || !report || report->deleting || !is_about(*report, node))
    return {};
  return card_labels(*report, policy->card_labels);
}

bool card_labeler::concerns(const kube::node& node) const {
  return node.annotations.contains(card_labels_annotation) || reports_.find(node.key) != nullptr;
}

kube::task<action> card_labeler::reconcile(kube::object_key key) {
  const auto* node = nodes_.find(key);
  if (!node || node->deleting || !reports_.synced() || !policies_.synced()) co_return action::await_change();
  const auto done = co_await write_card_labels(client_, *node, wanted(*node));
  if (!done) co_return std::unexpected(done.error());
  co_return action::await_change();
}

std::vector<kube::object_key> card_labeler::affected_by(const kube::node* before, const kube::node* after) const {
  if (!after || !concerns(*after)) return {};
  if (before && before->id == after->id && before->labels == after->labels &&
      before->annotations == after->annotations && before->has_gpu_discovery == after->has_gpu_discovery)
    return {};
  return {after->key};
}

std::vector<kube::object_key> card_labeler::affected_by(const api::accelerator_node* before,
                                                        const api::accelerator_node* after) const {
  if (before && after && before->cards == after->cards && before->driver == after->driver &&
      before->cuda == after->cuda && before->owners == after->owners && before->deleting == after->deleting)
    return {};
  return {after ? after->key : before->key};
}

std::vector<kube::object_key> card_labeler::affected_by(const accelerator_policy* before,
                                                        const accelerator_policy* after) const {
  if ((after ? after : before)->key != policy_key) return {};
  if (before && after && before->card_labels == after->card_labels && before->removing == after->removing &&
      before->deleting == after->deleting)
    return {};
  std::vector<kube::object_key> out;
  for (const auto& node : nodes_.all())
    if (concerns(node)) out.push_back(node.key);
  return out;
}

}  // namespace reconcilers
