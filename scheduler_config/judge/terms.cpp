#include "scheduler_config/judge/terms.hpp"

#include <array>

namespace scheduler_config {
namespace {

/// By term.
constexpr std::array<std::string_view, term_count> term_names{
    "list",
    "mapping",
    "missing",
    "text",
    "boolean",
    "number",
    "whole_number",
    "whole_number_32",
    "plain_whole_number",
    "base64",
    "duration",
    "ip_address",
    "bytes",
    "level",
    "name",
    "at_least",
    "range",
    "zero_or_one",
    "more_than_zero",
    "none",
    "one_or_more",
    "exactly_one",
    "exactly_one_number",
    "long_lease",
    "above_renewal",
    "below_lease",
    "short_retry",
    "each_resource_once",
    "each_pair_once",
    "one_point_or_more",
    "above_previous_point",
    "not_both_zero",
    "without_storage_scoring",
    "not_before",
    "since_version",
    "other_version",
    "label_key",
    "label_values",
    "with_capacity_ratio",
    "for_capacity_ratio",
    "list_of_constraints",
    "selector_of_pod",
    "domain_without_slash",
    "same_extender",
    "metric_labels",
    "module_levels",
    "key_pair",
    "header_names",
    "gate_setting",
    "component_prefix",
    "json_with_gate",
    "empty_with_json",
    "with_gate",
    "with_uid_header",
    "listed_names",
    "star_at_end",
    "port_fault",
    "host_fault",
    "address_fault",
    "lease_name",
    "namespace_name",
    "scheduler_name",
    "too_many_values",
    "nested_too_deep",
    "no_data",
    "dash_before",
    "one_of_them",
    "name_in_profile",
    "weight_in_plugin",
};
static_assert(term_names.back() == "weight_in_plugin", "one name a term, in the order of the enumeration");

}  // namespace

std::string_view to_string(term term) noexcept { return term_names[static_cast<std::size_t>(term)]; }

text::phrase phrase_of(term term, std::vector<text::phrase_argument> arguments) {
  return {"scheduler_term." + std::string(to_string(term)), std::move(arguments)};
}
text::phrase between(const std::string& minimum, const std::string& maximum) {
  return phrase_of(term::range, {{"minimum", minimum}, {"maximum", maximum}});
}
text::phrase at_least(const std::string& minimum) { return phrase_of(term::at_least, {{"minimum", minimum}}); }
text::phrase since_version(int minor) {
  return phrase_of(term::since_version, {{"version", "1." + std::to_string(minor)}});
}

}  // namespace scheduler_config
