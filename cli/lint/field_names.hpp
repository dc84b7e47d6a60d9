#pragma once
// Names of fields that the API server knows in the parts of an object that describe pods, up to Kubernetes 1.37. An
// older server refuses the newest of them, too. Deeper parts (volumes, probes, affinity, ...) are not looked at.

#include <span>
#include <string>
#include <string_view>

namespace cli::field_names {

std::span<const std::string_view> metadata();
std::span<const std::string_view> pod_template();  ///< metadata and spec
std::span<const std::string_view> pod_spec();
std::span<const std::string_view> container();  ///< of an ephemeral one, too
std::span<const std::string_view> resources();

/// What was most likely meant by a name that is not in `legal`; may be empty. What belongs to `resources` is known
/// again in a container: "limit" there is "resources.limits".
std::string meant(std::string_view name, std::span<const std::string_view> legal);

}  // namespace cli::field_names
