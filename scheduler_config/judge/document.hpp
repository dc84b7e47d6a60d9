#pragma once
// A scheduler's configuration as kube-scheduler reads it: the first document of the file alone, by JSON's rules where
// the file begins with a brace. Every node knows its first byte in the file, so that what is written into it can be
// written as text.

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "scheduler_config/judge/finding.hpp"

namespace scheduler_config {

struct document {
  std::string text;                        ///< the whole file
  text::yaml::source source;               ///< of the first document
  const text::yaml::node* root = nullptr;  ///< null: nothing but comments
  bool json = false;
  std::size_t base = 0;  ///< what text::yaml::node::from counts from, in `text`
  std::size_t end = 0;   ///< of the first document, in `text`: where "---" or "..." begins, else its size
  std::optional<text::yaml::place> more;  ///< where another document begins
};

/// code::not_yaml or code::not_json.
std::expected<document, finding> parse_document(std::string_view text);

/// What JSON makes of a node: text in quotes is text, `on` is a boolean.
enum class json_type : std::uint8_t { null, boolean, number, text, list, mapping };
json_type json_type_of(const text::yaml::node& node);
/// A whole number as Go takes it for an integer: 1.0 and 1e2 too.
std::optional<std::int64_t> integer_of(const text::yaml::node* node);
/// The text Kubernetes sees of a scalar; of a list or mapping its kind in words.
std::string shown_value(const text::yaml::node& node);
/// Its kind in place of the value, of a list and a mapping.
std::vector<text::phrase_argument> terms_of(const text::yaml::node& node);

/// Child paths: "a.b", "a[3]".
std::string below(std::string_view path, std::string_view key);
std::string below(std::string_view path, std::size_t index);

}  // namespace scheduler_config
