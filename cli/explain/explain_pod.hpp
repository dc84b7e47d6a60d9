#pragma once
// `quartermaster explain pod`: why a pod waits, or what it was given.

#include <expected>
#include <ostream>
#include <set>
#include <string>

#include "cli/explain/placements.hpp"

namespace cli {

/// "NAME", "NAMESPACE/NAME" or "pod/NAME". The namespace in the text counts first, then `ns`, then "default".
/// The error is for a person.
std::expected<kube::object_key, std::string> pod_named(const std::string& text, const std::string& ns);

/// Why a node takes no such pod at all, for a person. Where its mode is the reason, its own message. Empty: it might.
std::string refusal_of(const quota::node_view& node, const reconcilers::extender::pod_request& request,
                       const placements& placements);

/// Names limits of these namespaces on which the answer and the operator may differ.
void say_doubts(const placements& placements, const std::set<std::string>& namespaces, std::ostream& err);

/// Exit code: 0 bound or would fit, 1 not there, 3 waits.
int explain_pod(const placements& cluster, const kube::object_key& pod, const report_style& style, std::ostream& out,
                std::ostream& err);

}  // namespace cli
