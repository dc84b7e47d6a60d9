#include "reconcilers/declarations/finding.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace reconcilers::declarations {
namespace {

using enum text::severity;

struct error_row {
  error_code code;
  std::string_view name;
  text::severity level;
};

constexpr std::array<error_row, code_count> table{{
    {error_code::missing, "missing", error},
    {error_code::not_in_vocabulary, "not_in_vocabulary", error},
    {error_code::key_without_domain, "key_without_domain", error},
    {error_code::key_native, "key_native", error},
    {error_code::key_malformed, "key_malformed", error},
    {error_code::default_not_a_number, "default_not_a_number", error},
    {error_code::default_not_legal, "default_not_legal", error},
    {error_code::group_differs, "group_differs", error},
    {error_code::impossible_requests, "impossible_requests", error},
    {error_code::related_and_excluded, "related_and_excluded", error},
    {error_code::enabled_missing, "enabled_missing", warning},
    {error_code::flag_not_boolean, "flag_not_boolean", warning},
    {error_code::data_type, "data_type", warning},
    {error_code::default_unused, "default_unused", warning},
    {error_code::unusable, "unusable", warning},
    {error_code::unknown_field, "unknown_field", warning},
    {error_code::more_unknown_fields, "more_unknown_fields", warning},
    {error_code::binary_data, "binary_data", warning},
    {error_code::group_missing, "group_missing", warning},
    {error_code::group_absent, "group_absent", warning},
    {error_code::group_malformed, "group_malformed", warning},
    {error_code::group_names_malformed, "group_names_malformed", warning},
    {error_code::unit_not_plain, "unit_not_plain", warning},
    {error_code::runtime_class_malformed, "runtime_class_malformed", warning},
    {error_code::list_item_malformed, "list_item_malformed", warning},
    {error_code::list_names_itself, "list_names_itself", warning},
    {error_code::list_too_long, "list_too_long", warning},
    {error_code::too_long, "too_long", warning},
    {error_code::not_text, "not_text", warning},
    {error_code::label_domains_differ, "label_domains_differ", warning},
    {error_code::name_without_prefix, "name_without_prefix", warning},
    {error_code::wrong_namespace, "wrong_namespace", warning},
    {error_code::too_large, "too_large", error},
    {error_code::duplicate_key, "duplicate_key", error},
    {error_code::group_excludes_member, "group_excludes_member", error},
    {error_code::related_unknown, "related_unknown", warning},
    {error_code::related_not_in_force, "related_not_in_force", warning},
    {error_code::exclusion_not_mutual, "exclusion_not_mutual", warning},
    {error_code::exclusion_not_answered, "exclusion_not_answered", warning},
    {error_code::group_names_differ, "group_names_differ", warning},
    {error_code::group_runtime_differs, "group_runtime_differs", warning},
    {error_code::group_member_off, "group_member_off", warning},
    {error_code::runtime_class_unknown, "runtime_class_unknown", warning},
    {error_code::device_label_key_malformed, "device_label_key_malformed", error},
    {error_code::device_label_value_malformed, "device_label_value_malformed", error},
    {error_code::device_label_shared, "device_label_shared", warning},
}};

static_assert(
    [] {
      for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i].code != static_cast<error_code>(i)) return false;
      }
      return true;
    }(),
    "one row a code, in the order of the enumeration");

const error_row& row_of(error_code c) { return table[static_cast<std::size_t>(c)]; }

}  // namespace

void sort(std::vector<finding>& findings) {
  const auto rank = [](const finding& f) {
    return std::tuple(severity_of(f), f.kind, std::string_view(f.field), std::string_view(f.value),
                      std::string_view(f.other));
  };
  std::ranges::sort(findings, {}, rank);
}

std::string_view to_string(text::severity s) noexcept { return s == text::severity::error ? "error" : "warning"; }
std::string_view to_string(error_code c) noexcept { return row_of(c).name; }
text::severity severity_of(error_code c) noexcept { return row_of(c).level; }

bool has_error(std::span<const finding> findings) {
  return std::ranges::any_of(findings, [](const finding& f) { return severity_of(f) == text::severity::error; });
}

text::fact fact_of(const finding& f, text::language locale) {
  text::fact out{.table = "declaration",
                 .code = to_string(f.kind),
                 .level = severity_of(f),
                 .parameters = {{"field", f.field},
                                {"value", f.value},
                                {"hint", f.hint},
                                {"other", f.other},
                                {"count", std::to_string(f.count)}},
                 .allowed = text::message(f.allowed, locale)};
  out.parameters.push_back({"allowed", text::allowed_of(out, locale)});
  return out;
}

std::string allowed_of(const finding& f, text::language locale) { return text::allowed_of(fact_of(f, locale), locale); }
std::string remedy_of(const finding& f, text::language locale) { return text::remedy_of(fact_of(f, locale), locale); }
std::string message_of(const finding& f, text::language locale) { return text::message_of(fact_of(f, locale), locale); }

}  // namespace reconcilers::declarations
