#pragma once
// `quartermaster lint`: ConfigMaps in files judged together, and workloads next to them against the rules they make, by
// the same code as in the cluster. One mistake is one finding: what only follows from another finding is not said.

#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cli/cluster/cluster.hpp"
#include "cli/lint/lint_finding.hpp"
#include "cli/lint/unoffered.hpp"
#include "reconcilers/declarations/rule_set.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace cli {

struct lint_settings {
  std::string ns = "kube-public";  ///< where declarations are looked for
  text::language locale = text::language::en;
  /// Declarations that are in a cluster already; those in files take the place of their namesakes. May be null.
  const declared_resources* cluster = nullptr;
  /// As the operator compiled them: in place of declarations that may not be seen. May be null.
  const reconcilers::declarations::rule_set* compiled = nullptr;
  /// Nodes of the cluster; null: not known, and unknown names and what nodes have are not reported.
  const std::vector<kube::node>* nodes = nullptr;
  /// Of the cluster; null: it may not be seen, and what its modules offer is not reported.
  const reconcilers::accelerator_policy* policy = nullptr;
  /// The key of which a container may ask for one (reconcilers::single_share); as the module is set by default where no
  /// cluster says otherwise.
  std::optional<std::string> one_only{};
  classes_by_resource classes = {};  ///< DeviceClasses of the cluster; those in files are added
};

struct lint_report {
  std::vector<lint_finding> findings;  ///< in the order of the files; of each first the errors, by lines
  std::size_t config_maps = 0;         ///< declarations and device configurations that were judged
  std::size_t workloads = 0;
  std::size_t other_config_maps = 0;    ///< no declarations: what their data says was not judged
  std::set<std::string> kinds_by_form;  ///< not known: what in them has the form of a pod was judged, and no more
  bool nothing = false;                 ///< there was no object at all
};
lint_report lint(std::span<const text::yaml::source> files, const lint_settings& settings = {});

/// What `--cluster` adds.
struct linted_cluster {
  declared_resources declared;
  bool is_viewed = false;  ///< the console's server said what is declared
  text::phrase refusal;    ///< not empty: the declarations may not be listed, and why
  std::optional<reconcilers::declarations::rule_set> compiled;  ///< then, where they may be read
  std::optional<std::vector<kube::node>> nodes;                 ///< nothing: they may not be listed
  reconcilers::accelerator_policy policy;  ///< as made by default where there is none, or it may not be read
  bool sees_policy = false;                ///< whether there is one is known
  classes_by_resource classes;             ///< empty where they may not be read

  /// Whether there are declarations is known.
  bool knows_rules() const { return refusal.empty() || compiled; }
  bool is_whole() const { return refusal.empty() && nodes.has_value(); }
};
/// @param own a namespace of the person, for which the console's server may answer; empty: it is not asked
kube::task<linted_cluster> read_linted_cluster(kube::transport& transport, std::string ns, std::string own = {});

struct lint_options {
  std::vector<std::string> files;
  std::string ns = "kube-public", language = "en", output = "text";
  bool strict = false, from_cluster = false;
  cluster_options cluster;
};

/// The exit code of the verb: 0 clean, 1 unreadable, 3 found errors (warnings too when `strict`), or rules of a cluster
/// that was named could not be seen (with `strict` its nodes, too).
int run_lint(const lint_options& options, std::istream& input, std::ostream& out, std::ostream& err);
/// With what was read of a cluster; null: none was named.
int run_lint(const lint_options& options, const linted_cluster* cluster, std::span<const text::yaml::source> files,
             std::ostream& out, std::ostream& err);

}  // namespace cli
