#pragma once
// What a verdict puts into the words of a finding where the words of a language stand for it: kinds of values, ranges,
// forms. Names, figures and what stands in the file are texts, and the same in every language.

#include <cstdint>
#include <string_view>

#include "text/phrase.hpp"

namespace scheduler_config {

enum class term : std::uint8_t {
  // kinds of values
  list,
  mapping,
  missing,
  text,
  boolean,
  number,
  whole_number,
  whole_number_32,
  plain_whole_number,
  base64,
  duration,
  ip_address,
  bytes,
  level,
  name,
  // ranges and amounts
  at_least,
  range,
  zero_or_one,
  more_than_zero,
  none,
  one_or_more,
  exactly_one,
  exactly_one_number,
  // what other fields and flags ask for
  long_lease,
  above_renewal,
  below_lease,
  short_retry,
  each_resource_once,
  each_pair_once,
  one_point_or_more,
  above_previous_point,
  not_both_zero,
  without_storage_scoring,
  not_before,
  since_version,
  other_version,
  label_key,
  label_values,
  with_capacity_ratio,
  for_capacity_ratio,
  list_of_constraints,
  selector_of_pod,
  domain_without_slash,
  same_extender,
  // forms of a flag
  metric_labels,
  module_levels,
  key_pair,
  header_names,
  gate_setting,
  component_prefix,
  json_with_gate,
  empty_with_json,
  with_gate,
  with_uid_header,
  listed_names,
  star_at_end,
  // names and addresses
  port_fault,
  host_fault,
  address_fault,
  lease_name,
  namespace_name,
  scheduler_name,
  // what a file is
  too_many_values,
  nested_too_deep,
  no_data,
  // what to write
  dash_before,
  one_of_them,
  name_in_profile,
  weight_in_plugin,
};
inline constexpr std::size_t term_count = static_cast<std::size_t>(term::weight_in_plugin) + 1;

/// Its name in the catalogue, below "scheduler_term".
std::string_view to_string(term term) noexcept;
text::phrase phrase_of(term term, std::vector<text::phrase_argument> arguments = {});
/// "0 to 100"; a number, or a version.
text::phrase between(const std::string& minimum, const std::string& maximum);
/// "1 or more".
text::phrase at_least(const std::string& minimum);
/// "from Kubernetes 1.34".
text::phrase since_version(int minor);

}  // namespace scheduler_config
