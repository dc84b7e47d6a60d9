#pragma once
// The cluster as it is: one picture, from which every verb and the console answer. Its stores are filled by lists of an
// API server, by a watch (console) or from a file. The ledger says by the rules of the scheduler extender what is given
// out. Nothing of the cluster is changed.

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/accelerator_node.hpp"
#include "api/compiled_rules.hpp"
#include "cli/cluster/cluster.hpp"
#include "cli/cluster/device_classes.hpp"
#include "cli/cluster/resource_slices.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "kube/projections/daemon_set.hpp"
#include "kube/projections/lease.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/declarations/verdict.hpp"
#include "reconcilers/extender/account.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "text/phrase.hpp"

namespace cli {

using agent_reports = std::map<std::string, api::agent_report, std::less<>>;  ///< by node

/// The operator, as it is seen from outside.
struct operator_seen {
  std::string ns;  ///< empty: not found
  std::optional<kube::lease> lease;
  bool renewed = false;  ///< the lease was renewed while we looked
};

/// What a picture is made of.
enum class part : std::uint8_t {
  types,  ///< which of our types the API server knows
  policies,
  rules,
  quotas,
  old_quotas,  ///< kube-system/gpuquota
  accelerator_nodes,
  nodes,
  pods,
  daemon_sets,    ///< ours
  device_labels,  ///< of device configurations
  lease,          ///< the operator's
  limits,         ///< of namespaces: ResourceQuotas and LimitRanges
  slices,         ///< what DRA drivers offer
  claims,         ///< ResourceClaims; of a file alone
  classes,        ///< DeviceClasses that give a resource
  view_api,       ///< whether the console's aggregated API answers
};
inline constexpr kube::resource resource_quotas{"", "v1", "resourcequotas", "ResourceQuota", true},
    limit_ranges{"", "v1", "limitranges", "LimitRange", true};
// v1 from Kubernetes 1.34 on.
inline constexpr kube::resource resource_claims{"resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", true},
    older_resource_claims{"resource.k8s.io", "v1beta1", "resourceclaims", "ResourceClaim", true};

struct picture {
  controller::store<kube::pod> pods;
  controller::store<kube::node> nodes;
  controller::store<reconcilers::accelerator_policy> policies;
  controller::store<api::compiled_rules> rules;
  controller::store<api::accelerator_quota> quotas;
  controller::store<kube::config_map> old_quotas;
  controller::store<api::accelerator_node> cards;
  agent_reports reports;
  std::vector<kube::daemon_set> daemon_sets;
  std::vector<reconcilers::label_alias> declared;  ///< labels of device configurations
  slices_by_node claimed;                          ///< devices of DRA drivers
  std::vector<std::string> limits;                 ///< of namespaces, JSON; of a file alone, a cluster is asked later
  classes_by_resource classes;                     ///< DeviceClasses of DRA, where a verb has read them
  std::vector<reconcilers::declarations::refused_declaration> refused_declarations;  ///< where a verb has read them
  text::phrase declarations_unseen;                    ///< of a file: why it is not known which are refused
  std::map<kube::object_key, std::string> claims;      ///< ResourceClaims, JSON; of a file alone
  std::map<kube::object_key, std::string> whole_pods;  ///< JSON; of a file alone
  std::vector<std::string> missing_types;              ///< of our group, by plural
  std::string view_api_problem;  ///< the API server knows the aggregated API, and gets no answer: why; empty: neither
  operator_seen leader;
  std::map<part, text::phrase> unseen;  ///< why a part could not be seen
  std::chrono::system_clock::time_point taken = std::chrono::system_clock::now();
  controller::registry metrics;
  std::unique_ptr<reconcilers::extender::account> book;  ///< made when all is read

  void finish();
  std::string plugin_namespace() const;  ///< where the pods of plugins are looked for
  bool knows(const kube::resource& type) const;
  text::phrase reason_unseen(part part) const;  ///< empty: it was seen, or was not wanted
};

struct picture_request {
  std::set<part> needed;     ///< one that may not be seen is an error
  std::set<part> wished;     ///< one that may not be seen is noted in `unseen`
  std::string ns = {};       ///< the operator's namespace; empty: where its lease or its DaemonSets are
  std::string node = {};     ///< this one and its pods only; empty: all
  std::string pods_in = {};  ///< pods of this namespace only; empty: of all
};
/// Which objects of its type a part is made of.
kube::list_options selection_of(part part);

/// What the ledger is made from.
picture_request ledger_parts();

/// All that the ledger is made from was seen, where it was wanted.
bool sees_ledger(const picture& picture);

/// errc::not_found where the node is not there. Types that the cluster does not know are empty.
kube::task<void> read_picture(kube::transport& transport, picture_request request, picture& picture);
/// The parts of the ledger, and the ledger.
kube::task<void> read_ledger(kube::transport& transport, picture& picture);

/// From the cluster, or from the file of `quartermaster inspect --save` that `snapshot` names, which has all parts. The
/// error is for people.
std::expected<void, text::phrase> gather(const cluster_options& options, const std::string& snapshot, picture& picture,
                                         picture_request request = ledger_parts());

}  // namespace cli
