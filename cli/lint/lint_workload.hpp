#pragma once
// Judges a workload in a file by Kubernetes' own rule for extended resources, no matter who declared them: limits only,
// or requests equal to limits; whole numbers; nothing oversold. Then by the declared rules, and by what its pods need
// of driver and card. The code is the one that judges pods in the cluster (declarations::evaluate, cuda::admit).

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/lint/lint_finding.hpp"
#include "cli/lint/pod_form.hpp"
#include "cli/lint/unoffered.hpp"
#include "cli/lint/unserved.hpp"
#include "quota/resource_keys.hpp"
#include "reconcilers/declarations/rule_set.hpp"

namespace cli {

/// What is known of a cluster.
struct known_cluster {
  known_resources resources;
  std::vector<const kube::node*> nodes;
  std::optional<known_modules> modules = {};  ///< nothing: the policy may not be seen
};

/// Findings are added to `lint_findings`.
/// @param forms where the object describes pods: names of fields are judged too where its kind is known
/// @param known null: there is no cluster, and unknown names and what nodes have are not reported
void lint_workload(const manifest& manifest, const pod_forms& forms, const reconcilers::declarations::rule_set& rules,
                   text::language language, std::vector<lint_finding>& lint_findings,
                   const known_cluster* known = nullptr);

/// What is wrong with the object as such: its kind and apiVersion, which API servers of today must have, and its name.
void lint_kind(const manifest& manifest, text::language language, std::vector<lint_finding>& lint_findings);
void lint_names(const manifest& manifest, text::language language, std::vector<lint_finding>& lint_findings);

/// All that Kubernetes itself refuses of an object that makes pods, whatever is declared: the first error in the order
/// of the file, as `quartermaster lint` reports it. Nothing: it takes the object.
std::optional<lint_finding> first_error_of(const manifest& manifest, const pod_forms& forms, text::language language);

/// Amounts that stand in no container.
struct amounts_at {
  const text::yaml::node* amounts;  ///< a mapping of keys; may be null
  std::string path;
  std::string_view prefix = {};  ///< of its keys; others are skipped
};
/// Of an object of Kubernetes that makes no pods and has amounts of resources: its fields, and each amount by
/// Kubernetes' own rule and by the unit of its key.
void lint_amounts(const manifest& manifest, std::span<const amounts_at> all,
                  const reconcilers::declarations::rule_set& rules, text::language language,
                  std::vector<lint_finding>& lint_findings, const known_cluster* known = nullptr);

/// Namespaces in which no one is held to the declared rules (the bindings of the chart's policies).
bool is_exempt(std::string_view ns);

}  // namespace cli
