#pragma once
// Judges a workload in a file by Kubernetes' own rule for extended resources, no matter who declared them: limits only,
// or requests equal to limits; whole numbers; nothing oversold. Then by the declared rules, and by what its pods need
// of driver and card. The code is the one that judges pods in the cluster (declarations::evaluate, cuda::admit).

#include <string_view>
#include <vector>

#include "cli/explain/unoffered.hpp"
#include "cli/lint/lint_finding.hpp"
#include "reconcilers/declarations/rule_set.hpp"

namespace cli {

/// What is known of a cluster.
struct known_cluster {
  known_resources resources;
  std::vector<const kube::node*> nodes;
};

/// Findings are added to `lint_findings`. `manifest` is of a kind that makes pods (pod_spec_path).
/// @param known null: there is no cluster, and unknown names and what nodes have are not reported
void lint_workload(const manifest& manifest, const reconcilers::declarations::rule_set& rules, text::language language,
                   std::vector<lint_finding>& lint_findings, const known_cluster* known = nullptr);

/// A whole number as the API server sees it; `quantity` is one (kube::parse_quantity takes it) and not negative.
bool is_whole(std::string_view quantity);

/// Namespaces in which no one is held to the declared rules (the bindings of the chart's policies).
bool is_exempt(std::string_view ns);

}  // namespace cli
