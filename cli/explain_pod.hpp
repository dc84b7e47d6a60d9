#pragma once
// `quartermaster explain pod`: why a pod waits, or what it was given.

#include <expected>
#include <ostream>
#include <string>

#include "cli/placements.hpp"

namespace cli {

/// "NAME", "NAMESPACE/NAME" or "pod/NAME"; without a namespace the one given, then "default".
/// @return what is wrong, for a person
std::expected<kube::object_key, std::string> pod_named(const std::string& text, const std::string& ns);

/// Exit code: 0 bound or would fit, 1 not there, 3 waits.
int explain_pod(const placements& cluster, const kube::object_key& pod, const report_style& style, std::ostream& out,
                std::ostream& err);

}  // namespace cli
