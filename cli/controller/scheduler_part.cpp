#include "cli/controller/scheduler_part.hpp"

#include <string>
#include <utility>

#include "agent/static_pod/cluster.hpp"

namespace cli {

scheduler_part::scheduler_part(const ground& ground, settings settings)
    : ground_(ground),
      settings_(std::move(settings)),
      nodes_(ground.metrics),
      agents_({ground.stores.nodes, ground.stores.policies, ground.stores.control_plane_rows},
              {ground.options.ns, std::string(agent::static_pod::static_pod_name)}, ground.client),
      own_({ground.stores.policies,
            ground.stores.compiled_rules,
            ground.stores.nodes,
            ground.stores.pods,
            ground.stores.client_secret,
            ground.stores.deployments,
            {ground.stores.daemon_sets,
             ground.stores.services,
             ground.stores.service_accounts,
             ground.stores.config_maps,
             {},
             &ground.stores.deployments}},
           ground.client, ground.events, ground.metrics,
           {.ns = ground.options.ns,
            .extender = !ground.options.extender_address.empty(),
            .on_state = settings_.on_state,
            .on_sends = settings_.on_sends,
            .on_isolates = settings_.on_isolates,
            .image_registry = ground.options.image_registry}) {}

/// Of two that are there during a change the policy's own says how it is.
control_plane_status scheduler_part::status() {
  const auto& stores = ground_.stores;
  control_plane_facts facts;
  if (const auto* policy = stores.policies.find(reconcilers::policy_key)) {
    facts.wanted = asks_for_static_pod(policy);
    facts.generation = policy->generation;
  }
  facts.config_map = stores.control_plane_rows.find({ground_.options.ns, agent::static_pod::static_pod_name});
  facts.control_plane_nodes = control_plane_;
  if (facts.config_map) {
    for (const auto& [node, row] : facts.config_map->data) {
      if (stores.nodes.find({{}, std::string(node)})) facts.nodes.emplace(node);
    }
  }
  auto out = status_of(facts);
  nodes_.set(out);
  const auto rows = own_.rows();
  if (rows) out.rows.insert(out.rows.begin(), rows->begin(), rows->end());
  if (auto condition = own_.state(); condition && !facts.wanted) out.state = std::move(condition);
  return out;
}

std::optional<std::vector<reconcilers::scheduler_row>> scheduler_part::rows() {
  const auto& stores = ground_.stores;
  if (!own_.rows() || !stores.control_plane_rows.synced() || !stores.nodes.synced()) return std::nullopt;
  return status().rows;
}

void scheduler_part::join(controller::parts& parts) {
  auto& stores = ground_.stores;
  parts.run(agents_).wake(stores.policies, stores.nodes, stores.control_plane_rows);
  parts.run(own_, 1)
      .wake(stores.policies, stores.compiled_rules, stores.deployments, stores.config_maps, stores.client_secret)
      .wake_soon(stores.nodes, stores.pods);
  stores.control_plane_rows.observe([this](const kube::config_map*, const kube::config_map*) { settings_.on_state(); });
  stores.nodes.observe([this](const kube::node* before, const kube::node* after) {
    const bool was = before && is_control_plane_node(*before), is = after && is_control_plane_node(*after);
    if (was == is) return;
    if (is)
      control_plane_.insert(after->key.name);
    else
      control_plane_.erase(before->key.name);
    settings_.on_state();
  });
}

}  // namespace cli
