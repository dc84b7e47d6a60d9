#pragma once
// What the stores say of nodes and of plugins, as series. They are written at each scrape and kept nowhere, by the
// leader alone: so no sum over the operator's pods counts a node twice.

#include <functional>

#include "api/accelerator_node.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "kube/projections/daemon_set.hpp"

namespace cli {

struct fleet_stores {
  const controller::store<api::accelerator_node>& nodes;
  const controller::store<kube::daemon_set>& daemon_sets;
};

/// One series per node that has or asks for a mode, and three per module. The stores must outlive the registry's use.
void add_fleet_metrics(controller::registry& registry, fleet_stores stores, std::function<bool()> leads);

}  // namespace cli
