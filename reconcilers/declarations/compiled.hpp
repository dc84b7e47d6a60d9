#pragma once
// The rule set as the spec of a ResourceRules object, the form the API server's admission policies read
// (charts/quartermaster/files/admission), and back. What a device plugin knows better (vocabulary.hpp) is written into
// it, so that the policies need no table of their own.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/declarations/rule_set.hpp"

namespace reconcilers::declarations {

/// {keys, exclusive: [sorted], rules: {key: {...}}, groups: {name: [keys]}, amounts: {key: {...}}}; what is absent is
/// false or none. Equal rule sets give equal bytes.
nlohmann::json spec_of(const rule_set& rules);
/// What `spec_of` made; unknown members are ignored, malformed ones are left out.
rule_set rules_of(const nlohmann::json& spec);
/// The ConfigMaps the rules of a spec, as text, came from; sorted. None where it is no spec.
std::vector<kube::object_key> sources_of(std::string_view spec);

/// As many of the rules, in the order of their keys, as fit into an object; the API server takes 1.5 MiB at most.
inline constexpr std::size_t max_spec_bytes = 1'000'000;
struct cut {
  rule_set rules;
  std::size_t left_out = 0;
};
cut fitting(rule_set rules);

}  // namespace reconcilers::declarations
