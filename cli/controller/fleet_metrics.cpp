#include "cli/controller/fleet_metrics.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "api/names.hpp"
#include "controller/clock.hpp"

namespace cli {
namespace {

void write_phases(const controller::store<api::accelerator_node>& nodes, bool is_leader,
                  controller::metric_text& text) {
  constexpr std::string_view name = "quartermaster_node_phase_since_timestamp_seconds";
  text.family(name, "Since when the node is in its phase, seconds since 1970.", "gauge");
  if (!is_leader) return;
  for (const auto& node : nodes.all()) {
    const auto since = controller::parse_rfc3339_seconds(node.mode.since);
    if (node.mode.phase.empty() || !since) continue;
    text.sample(name, {{"node", node.key.name}, {"mode", node.mode.requested_mode}, {"phase", node.mode.phase}},
                static_cast<double>(*since));
  }
}

void write_modules(const controller::store<kube::daemon_set>& daemon_sets, bool is_leader,
                   controller::metric_text& text) {
  constexpr std::string_view name = "quartermaster_module_nodes";
  text.family(name, "Nodes of the module by how far its plugin is: desired, ready, updated.", "gauge");
  if (!is_leader) return;
  struct counts {
    std::int64_t desired = 0, ready = 0, updated = 0;
  };
  std::map<std::string, counts> modules;  // node sets have a DaemonSet of their own
  for (const auto& set : daemon_sets.all()) {
    const auto module = set.labels.find(api::names::module_label);
    if (!module || set.labels.value_or(api::names::managed_by_label, "") != api::names::managed_by) continue;
    auto& sum = modules[std::string(*module)];
    sum.desired += set.desired;
    sum.ready += set.ready;
    sum.updated += set.updated;
  }
  for (const auto& [module, sum] : modules) {
    const std::pair<std::string_view, std::int64_t> rows[] = {
        {"desired", sum.desired}, {"ready", sum.ready}, {"updated", sum.updated}};
    for (const auto& [state, count] : rows)
      text.sample(name, {{"module", module}, {"state", state}}, static_cast<double>(count));
  }
}

}  // namespace

void write_fleet_metrics(const fleet_stores& stores, bool is_leader, controller::metric_text& text) {
  write_phases(stores.nodes, is_leader, text);
  write_modules(stores.daemon_sets, is_leader, text);
}

}  // namespace cli
