#pragma once
// What there is to say of a scheduler's configuration: where, what is wrong, what to write instead. A finding is data;
// its words are those of the catalogue (text/messages.hpp).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_config/judge/terms.hpp"
#include "text/fact.hpp"

namespace scheduler_config {

/// Names are stable: they are the `code` in JSON.
enum class code : std::uint8_t {
  // what kube-scheduler cannot read
  not_yaml,
  not_json,
  no_kind,
  other_kind,
  policy,
  api_version_removed,
  api_version_later,
  api_version_unknown,
  written_twice,
  merged_twice,
  field_misplaced,
  field_unknown,
  field_of_other_version,
  algorithm_source,
  config_map_without,
  wrong_type,
  not_a_duration,
  not_base64,
  // what it reads and refuses
  value_refused,
  scheduler_name_missing,
  scheduler_name_twice,
  resource_lock,
  lease_times,
  backoff_order,
  weight_zero,
  two_binders,
  managed_twice,
  managed_name,
  plugin_unknown,
  plugin_removed,
  plugin_point,
  plugin_twice,
  plugin_set,
  plugin_without_args,
  queue_sort,
  plugin_config_twice,
  args_of_other_kind,
  insecure_with_ca,
  certificate_not_pem,
  key_of_other_certificate,
  no_kubeconfig,
  // the static pod
  flag_with_one_dash,
  flag_removed,
  flag_gone,
  flag_unknown,
  flag_of_other_version,
  flag_value,
  flag_without_value,
  flag_ends,
  argument,
  words_in_one,
  flags_in_one,
  gate_unknown,
  gate_of_other_version,
  gate_locked,
  gate_dependency,
  file_not_mounted,
  // what it starts with, and pods with cards still wait for ever
  no_config_flag,
  placeholder_left,
  url_folded,
  url_cut,
  url_malformed,
  url_of_service_name,
  service_proxy_without_certificate,
  not_offered_not_ignored,
  lease_name_malformed,
  extender_lost,
  // what works today
  kubelet_client_certificate,
  service_proxy_rights,
  single_api_server,
  https_without_ca,
  managed_incomplete,
  scheduler_name_malformed,
  pod_not_replaced,
  image_of_other_version,
  shell_not_followed,
  flags_not_judged,
  more_documents,
  // what is not judged here
  beyond_limits,
  other_program,
  other_file,
  // why nothing is written into a file
  no_safe_place,
  managed_by_another,
  bound_by_another,
  profile_there,
  profile_without_name,
  config_flag_there,
  nothing_of_ours,
  ours_was_edited,
};
inline constexpr std::size_t code_count = static_cast<std::size_t>(code::ours_was_edited) + 1;

/// What comes of it.
enum class effect : std::uint8_t {
  ends,      ///< kube-scheduler ends at start
  idle,      ///< it starts, and pods that ask for cards are not scheduled
  risk,      ///< it works, and will not always
  unjudged,  ///< it was not looked at, so no one knows
};

struct finding {
  code issue{};
  text::yaml::place location = {};
  std::string field = {};              ///< extenders[0].weight
  std::string value = {}, other = {};  ///< what stands there; what the words compare it with
  text::phrase allowed = {};           ///< where the table does not say it
  std::string hint = {};               ///< what was meant, or what to write; may be empty
  /// Of `value`, `other` and `hint` those that are no text of the file.
  std::vector<text::phrase_argument> terms = {};

  friend bool operator==(const finding&, const finding&) = default;
};
using findings = std::vector<finding>;

std::string_view to_string(code c) noexcept;
effect effect_of(code c) noexcept;
/// risk alone is a warning.
text::severity severity_of(code c) noexcept;
/// What stands there, as a person wrote it; of what is no text, its kind in English.
std::string value_of(const finding& finding);
bool any_ends(std::span<const finding> findings) noexcept;

/// It with the words of its code; what it puts into them is in this language.
text::fact fact_of(const finding& finding, text::language language);
std::string wrong_of(const finding& finding, text::language language);
std::string allowed_of(const finding& finding, text::language language);
std::string remedy_of(const finding& finding, text::language language);
/// "what is wrong; allowed: ...; what to do".
std::string message_of(const finding& finding, text::language language);

}  // namespace scheduler_config
