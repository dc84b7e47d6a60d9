#pragma once
// quartermaster uninstall: takes everything back that the operator made. Nodes leave by the operator's own transaction
// (spec.removing of the policy); then the operator is stopped, and what it left behind is removed by its label. Every
// step is seen from the cluster, so that the verb may be stopped at any point and called again.

#include <chrono>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/cluster.hpp"
#include "kube/client.hpp"
#include "kube/projections/node.hpp"
#include "text/phrase.hpp"

namespace cli {

struct uninstall_options {
  cluster_options cluster;
  std::string ns;                            ///< the operator's; empty: where the lease quartermaster is
  std::string declarations = "kube-public";  ///< the namespace of declarations
  bool check = false;                        ///< only say whether a node is enrolled
  bool if_idle = false;    ///< remove nothing while pods use cards, unless the policy says spec.removing already
  bool cancel = false;     ///< take spec.removing back
  bool yes = false;        ///< do not ask
  bool keep_crds = false;  ///< CRDs and the policy stay
  bool without_operator = false;
  std::string language = "en";
  std::chrono::seconds timeout{0};  ///< for nodes to leave; 0: as long as it takes
  std::chrono::seconds lease_patience{60};
};

int run_uninstall(const uninstall_options& options, std::ostream& out, std::ostream& err);

/// A node that has a mode, or is on its way to or from one.
bool enrolled(const kube::node& node);

/// A JSON patch that takes from a node what we wrote on it: our label, our taints, and the CUDA labels where they still
/// say what we wrote. Empty array where there is nothing. Labels of people stay.
nlohmann::json tidy_patch(const kube::node& node);

struct card_user {
  std::string pod;  ///< "lab/train"
  std::string node;
  friend auto operator<=>(const card_user&, const card_user&) = default;
};
/// Pods that hold cards on enrolled nodes, sorted. Device plugins hold none. `ns` is the operator's.
kube::task<std::vector<card_user>> read_card_users(kube::transport& transport, std::string ns);

/// What is ours apart from nodes, in the order in which it goes. Missing types and objects are nothing to do. Looks in
/// all namespaces; where that is forbidden, in the two in which the operator may write.
struct removed_objects {
  text::phrase summary;  ///< "3 DaemonSets"
};
kube::task<std::vector<removed_objects>> sweep(kube::transport& transport, std::string ns, std::string declarations);

/// What to do about a release whose namespace is gone: helm's record is gone with it, and its cluster-wide objects
/// stay.
std::string text_of_orphaned(std::string_view release, std::string_view ns, text::language locale);

/// What people wrote in objects of our types, which goes with the CRDs.
struct written_objects {
  std::vector<std::string> policies;     ///< names, sorted
  std::vector<kube::object_key> quotas;  ///< sorted
  bool empty() const { return policies.empty() && quotas.empty(); }
};
/// Types that are not there hold nothing.
kube::task<written_objects> read_written(kube::transport& transport);
/// "AcceleratorPolicy default and 2 AcceleratorQuotas in 1 namespace".
text::phrase summary_of(const written_objects& written);
/// One line per namespace: "  lab: batch, team\n"; after twenty of them how many more there are.
std::string list_of_quotas(const written_objects& written, text::language locale);

/// Pods without a node that name the scheduler of the operator, sorted. They keep it: schedulerName never changes.
kube::task<std::vector<kube::object_key>> read_waiting(kube::transport& transport);
/// The first ten of them, the command that lists them all, and what to do about each. Empty: none waits.
std::string note_of_waiting(const std::vector<kube::object_key>& pods, text::language locale);

/// The CRDs, with every AcceleratorPolicy, AcceleratorNode and ResourceRules in them.
kube::task<std::vector<removed_objects>> remove_types(kube::transport& transport);

/// True when the object was there.
kube::task<bool> remove_seen(kube::client& api, const kube::resource& type, const nlohmann::json& object);

}  // namespace cli
