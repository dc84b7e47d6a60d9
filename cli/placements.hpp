#pragma once
// `quartermaster explain pod`: why a pod waits, or what it was given. `quartermaster simulate`: would these pods fit?
// Both from the cluster as it is, by the same ledger and rules as the scheduler extender; both change nothing.

#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "cli/cluster.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/accelerator_policy.hpp"
#include "reconcilers/compiled_rules.hpp"
#include "reconcilers/extender/account.hpp"

namespace cli {

/// What the ledger is made from.
struct placements {
  controller::store<kube::pod> pods;
  controller::store<kube::node> nodes;
  controller::store<reconcilers::accelerator_policy> policies;
  controller::store<reconcilers::compiled_rules> rules;
  controller::store<reconcilers::accelerator_quota> quotas;
  controller::store<kube::config_map> old_quotas;
  controller::store<reconcilers::accelerator_node> cards;
  controller::registry metrics;
  std::unique_ptr<reconcilers::extender::account> book;  ///< made when all is read

  void finish();
};
kube::task<void> read_placements(kube::transport& over, placements& into);

/// "NAMESPACE/NAME". Exit code: 0 bound or would fit, 1 not there, 3 waits.
int explain_pod(const placements& in, const std::string& pod, const std::string& output, std::ostream& out,
                std::ostream& err);

/// Pods, in the order they are tried, each on what the earlier ones left and within the limits of its namespace; `in`
/// holds them afterwards. Exit code: 0 all fit, 3 some do not.
int simulate(placements& in, std::span<const kube::pod> pods, const std::string& output, std::ostream& out);

}  // namespace cli
