#include "scheduler_config/judge/finding.hpp"

#include <algorithm>
#include <array>

#include "text/text.hpp"

namespace scheduler_config {
namespace {

using text::language, text::shown;
using enum effect;

struct issue_row {
  code issue;
  std::string_view name;
  effect comes;
};

constexpr std::array<issue_row, code_count> table{{
    {code::not_yaml, "not_yaml", ends},
    {code::not_json, "not_json", ends},
    {code::no_kind, "no_kind", ends},
    {code::other_kind, "other_kind", ends},
    {code::policy, "policy", ends},
    {code::api_version_removed, "api_version_removed", ends},
    {code::api_version_later, "api_version_later", ends},
    {code::api_version_unknown, "api_version_unknown", ends},
    {code::written_twice, "written_twice", ends},
    {code::merged_twice, "merged_twice", ends},
    {code::field_misplaced, "field_misplaced", ends},
    {code::field_unknown, "field_unknown", ends},
    {code::field_of_other_version, "field_of_other_version", ends},
    {code::algorithm_source, "algorithm_source", ends},
    {code::config_map_without, "config_map_without", unjudged},
    {code::wrong_type, "wrong_type", ends},
    {code::not_a_duration, "not_a_duration", ends},
    {code::not_base64, "not_base64", ends},
    {code::value_refused, "value_refused", ends},
    {code::scheduler_name_missing, "scheduler_name_missing", ends},
    {code::scheduler_name_twice, "scheduler_name_twice", ends},
    {code::resource_lock, "resource_lock", ends},
    {code::lease_times, "lease_times", ends},
    {code::backoff_order, "backoff_order", ends},
    {code::weight_zero, "weight_zero", ends},
    {code::two_binders, "two_binders", ends},
    {code::managed_twice, "managed_twice", ends},
    {code::managed_name, "managed_name", ends},
    {code::plugin_unknown, "plugin_unknown", ends},
    {code::plugin_removed, "plugin_removed", ends},
    {code::plugin_point, "plugin_point", ends},
    {code::plugin_twice, "plugin_twice", ends},
    {code::plugin_set, "plugin_set", ends},
    {code::plugin_without_args, "plugin_without_args", ends},
    {code::queue_sort, "queue_sort", ends},
    {code::plugin_config_twice, "plugin_config_twice", ends},
    {code::args_of_other_kind, "args_of_other_kind", ends},
    {code::insecure_with_ca, "insecure_with_ca", ends},
    {code::certificate_not_pem, "certificate_not_pem", ends},
    {code::key_of_other_certificate, "key_of_other_certificate", ends},
    {code::no_kubeconfig, "no_kubeconfig", ends},
    {code::flag_with_one_dash, "flag_with_one_dash", ends},
    {code::flag_removed, "flag_removed", ends},
    {code::flag_gone, "flag_gone", ends},
    {code::flag_unknown, "flag_unknown", ends},
    {code::flag_of_other_version, "flag_of_other_version", ends},
    {code::flag_value, "flag_value", ends},
    {code::flag_without_value, "flag_without_value", ends},
    {code::flag_ends, "flag_ends", ends},
    {code::argument, "argument", ends},
    {code::words_in_one, "words_in_one", ends},
    {code::flags_in_one, "flags_in_one", ends},
    {code::gate_unknown, "gate_unknown", ends},
    {code::gate_of_other_version, "gate_of_other_version", ends},
    {code::gate_locked, "gate_locked", ends},
    {code::gate_dependency, "gate_dependency", ends},
    {code::file_not_mounted, "file_not_mounted", ends},
    {code::no_config_flag, "no_config_flag", idle},
    {code::placeholder_left, "placeholder_left", idle},
    {code::url_folded, "url_folded", idle},
    {code::url_cut, "url_cut", idle},
    {code::url_malformed, "url_malformed", idle},
    {code::url_of_service_name, "url_of_service_name", idle},
    {code::service_proxy_without_certificate, "service_proxy_without_certificate", idle},
    {code::not_offered_not_ignored, "not_offered_not_ignored", idle},
    {code::lease_name_malformed, "lease_name_malformed", idle},
    {code::extender_lost, "extender_lost", idle},
    {code::kubelet_client_certificate, "kubelet_client_certificate", risk},
    {code::service_proxy_rights, "service_proxy_rights", risk},
    {code::single_api_server, "single_api_server", risk},
    {code::https_without_ca, "https_without_ca", risk},
    {code::managed_incomplete, "managed_incomplete", risk},
    {code::scheduler_name_malformed, "scheduler_name_malformed", risk},
    {code::pod_not_replaced, "pod_not_replaced", risk},
    {code::image_of_other_version, "image_of_other_version", risk},
    {code::shell_not_followed, "shell_not_followed", risk},
    {code::flags_not_judged, "flags_not_judged", risk},
    {code::more_documents, "more_documents", risk},
    {code::beyond_limits, "beyond_limits", unjudged},
    {code::other_program, "other_program", unjudged},
    {code::other_file, "other_file", unjudged},
    {code::no_safe_place, "no_safe_place", idle},
    {code::managed_by_another, "managed_by_another", idle},
    {code::bound_by_another, "bound_by_another", idle},
    {code::profile_there, "profile_there", idle},
    {code::profile_without_name, "profile_without_name", idle},
    {code::config_flag_there, "config_flag_there", idle},
    {code::nothing_of_ours, "nothing_of_ours", idle},
    {code::ours_was_edited, "ours_was_edited", idle},
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i].issue != static_cast<code>(i)) return false;
      }
      return true;
    }(),
    "one row a code, in the order of the enumeration");

const issue_row& row_of(code c) { return table[static_cast<std::size_t>(c)]; }

}  // namespace

std::string_view to_string(code c) noexcept { return row_of(c).name; }
effect effect_of(code c) noexcept { return row_of(c).comes; }
text::severity severity_of(code c) noexcept {
  return effect_of(c) == risk ? text::severity::warning : text::severity::error;
}
bool any_ends(std::span<const finding> findings) noexcept {
  return std::ranges::any_of(findings, [](const finding& finding) { return effect_of(finding.issue) == ends; });
}

std::string value_of(const finding& finding) {
  const auto kind = std::ranges::find(finding.terms, "value", &text::phrase_argument::name);
  return kind == finding.terms.end() ? finding.value : words_of(kind->inner, language::en);
}

text::fact fact_of(const finding& finding, language locale) {
  text::fact out{.table = "scheduler_config",
                 .code = to_string(finding.issue),
                 .level = severity_of(finding.issue),
                 .location = finding.location,
                 .parameters = {{"field", finding.field},
                                {"value", shown(finding.value, 200)},
                                {"other", shown(finding.other, 240)},
                                {"allowed", words_of(finding.allowed, locale)},
                                {"hint", shown(finding.hint, 400)}}};
  for (const auto& [name, values, words] : finding.terms)
    std::ranges::find(out.parameters, name, &text::parameter::name)->value = words_of(words, locale);
  return out;
}

std::string wrong_of(const finding& finding, language locale) { return wrong_of(fact_of(finding, locale), locale); }
std::string allowed_of(const finding& finding, language locale) { return allowed_of(fact_of(finding, locale), locale); }
std::string remedy_of(const finding& finding, language locale) { return remedy_of(fact_of(finding, locale), locale); }
std::string message_of(const finding& finding, language locale) { return message_of(fact_of(finding, locale), locale); }

}  // namespace scheduler_config
