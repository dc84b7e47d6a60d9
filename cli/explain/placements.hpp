#pragma once
// What `explain pod` and `simulate` answer from: the cluster as it is, in the ledger and by the rules of the scheduler
// extender. Both change nothing.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/compiled_rules.hpp"
#include "cli/cluster/cluster.hpp"
#include "cli/lint/unoffered.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/extender/account.hpp"
#include "reconcilers/extender/request.hpp"
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

/// How an answer looks. The engine's reasons and remedies are English in both languages.
struct report_style {
  std::string output = "text";  ///< text, wide, json or yaml
  std::string language = "en";

  bool as_data() const { return output == "json" || output == "yaml"; }
};

known_resources resources_of(const placements& cluster);
/// The sentence about keys of a pod that no one knows; empty: it has none.
std::string unknown_keys(const kube::pod& pod, const known_resources& known);

/// What a container holds, as a row of a table.
struct held_row {
  std::string container, card, amount;
};
std::vector<held_row> rows_of(const quota::holding& held, const reconcilers::extender::pod_request& request);
nlohmann::ordered_json json_of(const quota::holding& held, const reconcilers::extender::pod_request& request);

/// "1 node", "2 nodes".
std::string plural(std::size_t count, std::string_view singular, std::string_view many);

}  // namespace cli
