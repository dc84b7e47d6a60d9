#pragma once
// What kubectl makes of a scalar without quotes before Kubernetes sees it: go-yaml's reading of YAML 1.1, in which `on`
// and `y` are booleans. Source: sigs.k8s.io/yaml, goyaml.v2/resolve.go.

#include <cstdint>
#include <string>
#include <string_view>

namespace text::yaml {

enum class type : std::uint8_t { null, text, boolean, integer, real };
type type_of_plain(std::string_view text);

/// The text Kubernetes would see: "on" is true, 0x10 is 16, null is empty; whole numbers beyond 64 bits and fractions
/// stay as they are written.
std::string canonical_plain(std::string_view text);

}  // namespace text::yaml
