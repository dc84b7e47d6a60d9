#pragma once
// What we have to say of one declaration: which field, its value, what is allowed, what to do. A finding is data; its
// words are those of the catalogue (text/messages.hpp), so that every program that shows one says the same.
// Errors are what keeps a declaration from being enforced; warnings are what we did about something unclear.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/resource.hpp"
#include "text/fact.hpp"

namespace reconcilers::declarations {

/// Names are stable: they are in the verdict annotation as `code`, and rows of docs/declarations.md.
enum class error_code : std::uint8_t {
  // one field of one declaration
  missing,
  not_in_vocabulary,
  key_without_domain,
  key_native,
  key_malformed,
  default_not_a_number,
  default_not_legal,
  group_differs,
  impossible_requests,
  related_and_excluded,
  enabled_missing,
  flag_not_boolean,
  data_type,
  default_unused,
  unusable,
  unknown_field,
  more_unknown_fields,
  binary_data,
  group_missing,
  group_absent,
  group_malformed,
  group_names_malformed,
  unit_not_plain,
  runtime_class_malformed,
  list_item_malformed,
  list_names_itself,
  list_too_long,
  too_long,
  not_text,
  label_domains_differ,
  name_without_prefix,
  wrong_namespace,
  too_large,
  // between declarations
  duplicate_key,
  group_excludes_member,
  related_unknown,
  related_not_in_force,
  exclusion_not_mutual,
  exclusion_not_answered,
  group_names_differ,
  group_runtime_differs,
  group_member_off,
  runtime_class_unknown,
  // device configurations
  device_label_key_malformed,
  device_label_value_malformed,
  device_label_shared,
};
inline constexpr std::size_t code_count = static_cast<std::size_t>(error_code::device_label_shared) + 1;

/// All text members are already safe to show (text.hpp, `shown`).
struct finding {
  error_code kind{};
  kube::object_key config_map;
  std::string
      field;  ///< path in the ConfigMap: "data.limits", "metadata.labels[features.cpaas.io/enabled]", "metadata.name"
  std::string value;    ///< what stands there; empty when nothing does
  std::string allowed;  ///< a vocabulary, in the words to be written, or a key of words; empty: the table's own words
  std::string hint;     ///< what the person most likely meant; may be empty
  std::string other;    ///< another object, key or value the finding is about; may be empty
  std::size_t count = 0;

  friend bool operator==(const finding&, const finding&) = default;
};

/// Errors first, then by code, field and value: the order in which findings are shown, the same for the same set.
void sort(std::vector<finding>& findings);

std::string_view to_string(text::severity s) noexcept;
std::string_view to_string(error_code c) noexcept;
text::severity severity_of(error_code c) noexcept;
inline text::severity severity_of(const finding& f) noexcept { return severity_of(f.kind); }
bool has_error(std::span<const finding> findings);

/// It with the words of its code, whose {allowed} is in this language.
text::fact fact_of(const finding& f, text::language language);
/// What may stand there, e.g. "disabled, required, optional".
std::string allowed_of(const finding& f, text::language language);
/// What to do, e.g. `write "required"`.
std::string remedy_of(const finding& f, text::language language);
/// One line with all of it: what is wrong; what is allowed; what to do. At most about 800 bytes.
std::string message_of(const finding& f, text::language language);

}  // namespace reconcilers::declarations
