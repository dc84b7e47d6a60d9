#pragma once
// What the stores say of nodes and of plugins, as series. They are written at each scrape and kept nowhere, by the
// leader alone: so no sum over the operator's pods counts a node twice.

#include "api/accelerator_node.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "kube/projections/daemon_set.hpp"

namespace cli {

struct fleet_stores {
  const controller::store<api::accelerator_node>& nodes;
  const controller::store<kube::daemon_set>& daemon_sets;
};

/// One series per node that has or asks for a mode, and three per module. @param is_leader else heads alone
void write_fleet_metrics(const fleet_stores& stores, bool is_leader, controller::metric_text& text);

}  // namespace cli
