#pragma once
// `quartermaster simulate`: would these pods fit, and on which cards?

#include <expected>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/explain/answer_form.hpp"
#include "cli/explain/namespace_limits.hpp"
#include "cli/explain/node_rules.hpp"
#include "cli/lint/manifest.hpp"
#include "cli/output/listing.hpp"

namespace cli {

/// A pod of a file.
struct tried_pod {
  kube::described_pod pod;
  node_rules nodes;           ///< where it may run
  bool is_new = false;        ///< a workload makes it; a Pod of this name in the cluster is another one
  std::string refused = {};   ///< why it is no pod, or none that the API server takes; then only its name is known
  std::string document = {};  ///< JSON: what of the pod decides where it fits; empty: it is refused
  /// Why what makes pods makes none now, in which case there is no pod either.
  std::string none = {};
  bool one_a_node = false;  ///< of a DaemonSet: where no node may take it there is none

  bool is_pod() const { return none.empty(); }
};
/// As the console's server takes them (view_reply.hpp), and as it reads them: only pods of that namespace. The error is
/// for a person.
std::string as_parameter(std::span<const tried_pod> pods);
std::expected<std::vector<tried_pod>, text::phrase> tried_pods_in(std::string_view parameter, const std::string& ns);
/// The pods an object of a file makes, at the end of `tried_pods`; without a namespace of its own in `ns`. Pods that
/// have ended make none.
/// @return what is wrong, for a person; empty: nothing
std::string add_pods(const manifest& source, const std::string& ns, std::vector<tried_pod>& tried_pods,
                     text::language locale);

/// Pods, in the order they are tried, each on what the earlier ones left and within the limits of its namespace;
/// `cluster` and `limits` hold them afterwards. One that the cluster has bound already is not tried again. Exit code: 0
/// all fit, 3 some do not.
int simulate(picture& cluster, namespace_limits& limits, std::span<const tried_pod> pods, const listing_style& style,
             std::ostream& out);

}  // namespace cli
