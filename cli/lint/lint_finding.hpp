#pragma once
// What lint reports about a file: a finding on a declaration with its place, an objection to a pod, or a finding of its
// own. All have the same words and the same form, as text for people and JSON for programs.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <string>

#include "cli/lint/manifest.hpp"
#include "reconcilers/declarations/evaluate.hpp"
#include "reconcilers/declarations/finding.hpp"
#include "text/fact.hpp"

namespace cli {

/// Names are stable: they are the `code` in JSON, as are those of declarations::code.
enum class lint_code : std::uint8_t {
  // what YAML makes of an object
  not_an_object,
  not_a_string,
  not_a_mapping,
  written_twice,
  object_twice,
  name_malformed,
  name_long,
  not_selected,
  declaration_of_other_kind,
  spec_unreadable,
  wrong_form,
  unknown_field,
  field_missing,
  choice_missing,
  choices_many,
  not_judged,
  kind_unknown,
  api_version,
  api_version_missing,
  values_file,
  config_not_judged,
  // Kubernetes' own rule for extended resources
  resource_name,
  resource_of_kubernetes,
  amount_malformed,
  amount_fraction,
  amount_fraction_of_share,
  amount_missing,
  amount_of_larger_unit,
  restart_policy,
  restart_policy_missing,
  amount_negative,
  amount_too_large,
  amount_in_bytes,
  amount_beyond_cards,
  amount_not_judged,
  resources_of_pod,
  resources_of_ephemeral,
  containers_missing,
  container_twice,
  part_name_malformed,
  label_key_malformed,
  label_value_malformed,
  selector_mismatch,
  selector_generated,
  refused_together,
  volume_missing,
  item_twice,
  medium_unknown,
  operator_unknown,
  value_unknown,
  claim_missing,
  claims_not_judged,
  devices_not_judged,
  class_not_judged,
  template_text,
  quota_counts_nothing,
  quota_key,
  request_without_limit,
  request_differs,
  request_above_limit,
  // the declared rules, in the order of declarations::objection_kind
  resource_forbidden,
  amount_not_legal,
  partner_missing,
  pod_amount_not_legal,
  required_missing,
  excluded_together,
  request_unequal,
  too_large,
  related_missing,
  not_offered,
  // what the names of the declarations and of the modules are
  unfamiliar_resource,
  count_missing,
  modes_mixed,
  amounts_refused,
  amount_beyond_nodes,
  annotation_unfamiliar,
  annotation_not_read,
  unit_differs,
  default_beyond_card,
  annotation_value,
  // what a container does past its resources
  visible_devices,
  cuda_devices,
  privileged_container,
  limits_disabled,
  node_named,
  // what a cluster knows
  unknown_resource,
  declaration_refused,
  unserved_resource,
  // what its pods need of driver and card (reconcilers/cuda)
  compatibility,
};
inline constexpr std::size_t lint_code_count = static_cast<std::size_t>(lint_code::compatibility) + 1;

struct lint_finding {
  std::string file;
  text::yaml::place location;
  text::severity level{};
  std::string kind;
  kube::object_key object;
  std::string code, field, value, allowed, remedy, message;
  std::optional<bool> start_fails;  ///< of a scheduler's configuration: kube-scheduler ends at start because of it
};

/// What the words of a code are filled with; made safe to show by `finding_of`.
struct lint_details {
  std::string_view field = {}, value = {};
  std::string_view key = {};    ///< a resource
  std::string_view other = {};  ///< what it is compared with
  std::string_view hint = {};   ///< what was meant; may be empty
};

std::string_view to_string(lint_code c) noexcept;
lint_finding finding_of(const text::fact& fact, const manifest& about, text::language language);
lint_finding finding_of(lint_code code, const manifest& about, text::yaml::place place, const lint_details& details,
                        text::language language);
/// `judged` is what declarations/ says of the same field, and knows better what to write there; may be null.
lint_finding finding_of(const config_map_file::not_text& not_text, const manifest& about, text::language language,
                        const reconcilers::declarations::finding* judged = nullptr);
lint_finding finding_of(const reconcilers::declarations::finding& finding, const manifest& about,
                        text::yaml::place place, text::language language);
lint_finding finding_of(const reconcilers::declarations::objection& objection, const manifest& about,
                        text::yaml::place place, std::string_view field, text::language language);

/// What compat says of a pod, in its words: they say what to do.
lint_finding finding_of_compatibility(std::string_view text, const manifest& about, text::yaml::place place,
                                      std::string_view field);

/// One line a finding: "FILE:LINE:COLUMN: error: KIND NAMESPACE/NAME: MESSAGE [CODE]".
void print_text(std::span<const lint_finding> findings, text::language language, std::ostream& out);
/// An array of {file,line,column,severity,kind,namespace,name,code,field,value,allowed,remedy,message}, with startFails
/// where it is known.
nlohmann::ordered_json to_json(std::span<const lint_finding> findings);

}  // namespace cli
