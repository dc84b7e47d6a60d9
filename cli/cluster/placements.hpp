#pragma once
// The cluster as it is, in the ledger and by the rules of the scheduler extender: what `explain pod`, `simulate`,
// `top`, reports and the console answer from. Nothing of it is changed.

#include <memory>
#include <string>

#include "api/compiled_rules.hpp"
#include "cli/cluster/cluster.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/extender/account.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace cli {

/// What the ledger is made from.
struct placements {
  controller::store<kube::pod> pods;
  controller::store<kube::node> nodes;
  controller::store<reconcilers::accelerator_policy> policies;
  controller::store<api::compiled_rules> rules;
  controller::store<api::accelerator_quota> quotas;
  controller::store<kube::config_map> old_quotas;
  controller::store<api::accelerator_node> cards;
  controller::registry metrics;
  std::unique_ptr<reconcilers::extender::account> book;  ///< made when all is read

  void finish();
};
kube::task<void> read_placements(kube::transport& transport, placements& placements);

/// From the cluster, or from the file of `quartermaster inspect --save` that `snapshot` names.
kube::result<void> gather(const cluster_options& options, const std::string& snapshot, placements& placements);

}  // namespace cli
