#pragma once
// `quartermaster explain pod`: why a pod waits, or what it was given.

#include <expected>
#include <ostream>
#include <set>
#include <string>

#include "cli/explain/placements.hpp"

namespace cli {

/// "NAME", "NAMESPACE/NAME" or "pod/NAME"; without a namespace the one given, then "default".
/// @return what is wrong, for a person
std::expected<kube::object_key, std::string> pod_named(const std::string& text, const std::string& ns);

/// Why a node takes no such pod at all, for a person: its own words where it is a matter of its mode. Empty: it might.
std::string refusal_of(const quota::node_view& node, const reconcilers::extender::pod_request& request,
                       const placements& placements);

/// What cannot be read does not count in the answer; the operator goes on with what it read before.
void say_doubts(const placements& placements, const std::set<std::string>& namespaces, std::ostream& err);

/// Exit code: 0 bound or would fit, 1 not there, 3 waits.
int explain_pod(const placements& cluster, const kube::object_key& pod, const report_style& style, std::ostream& out,
                std::ostream& err);

}  // namespace cli
