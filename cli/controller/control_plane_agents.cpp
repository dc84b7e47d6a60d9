#include "cli/controller/control_plane_agents.hpp"

#include <nlohmann/json.hpp>

#include "agent/static_pod/health.hpp"
#include "api/names.hpp"

namespace cli {
namespace {

using controller::action;
using nlohmann::json;

}  // namespace

bool is_control_plane_node(const kube::node& node) {
  return node.labels.contains("node-role.kubernetes.io/control-plane");
}

bool asks_for_static_pod(const reconcilers::accelerator_policy* policy) {
  return policy && policy->scheduler.mode == "StaticPod" && !policy->removing && !policy->deleting;
}

bool control_plane_agents::wanted() const {
  return asks_for_static_pod(stores_.policies.find(reconcilers::policy_key));
}

bool control_plane_agents::needs_agent(const kube::node& node) const {
  if (!is_control_plane_node(node)) return false;
  if (wanted()) return true;
  const auto* rows = stores_.rows.find(rows_);
  const auto row = rows ? rows->data.find(node.key.name) : std::nullopt;
  // A row that cannot be read may be of a node that is not out.
  return row &&
         agent::static_pod::read_row(*row).is != agent::static_pod::to_string(agent::static_pod::state::disabled);
}

kube::task<action> control_plane_agents::reconcile(kube::object_key key) {
  const auto* node = stores_.nodes.find(key);
  if (!node || node->deleting || !stores_.policies.synced() || !stores_.rows.synced()) co_return action::await_change();
  const bool needs = needs_agent(*node);
  if (needs == node->labels.contains(api::names::static_pod_label)) co_return action::await_change();
  const json patch = {
      {"metadata",
       {{"uid", node->id.to_string()}, {"labels", {{api::names::static_pod_label, needs ? json("true") : json()}}}}}};
  const auto done = co_await client_.patch(kube::resources::nodes, key, kube::patch_kind::merge, patch);
  // It has gone, or another one has its name: the change comes here.
  const bool overtaken =
      !done && (done.error().code == kube::errc::not_found || done.error().code == kube::errc::conflict);
  if (!done && !overtaken) co_return std::unexpected(done.error());
  co_return action::await_change();
}

std::vector<kube::object_key> control_plane_agents::all() const {
  std::vector<kube::object_key> out;
  for (const auto& node : stores_.nodes.all())
    if (is_control_plane_node(node) || node.labels.contains(api::names::static_pod_label)) out.push_back(node.key);
  return out;
}

std::vector<kube::object_key> control_plane_agents::affected_by(const kube::node* before,
                                                                const kube::node* after) const {
  if (!after || (before && before->id == after->id && before->labels == after->labels)) return {};
  if (!is_control_plane_node(*after) && !after->labels.contains(api::names::static_pod_label)) return {};
  return {after->key};
}

std::vector<kube::object_key> control_plane_agents::affected_by(const kube::config_map*,
                                                                const kube::config_map*) const {
  return all();
}

std::vector<kube::object_key> control_plane_agents::affected_by(const reconcilers::accelerator_policy* before,
                                                                const reconcilers::accelerator_policy* after) const {
  if ((after ? after : before)->key != reconcilers::policy_key) return {};
  if (before && after && asks_for_static_pod(before) == asks_for_static_pod(after)) return {};
  return all();
}

}  // namespace cli
