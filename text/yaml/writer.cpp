#include "text/yaml/writer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/yaml/scalar.hpp"

namespace text::yaml {
namespace {

using nlohmann::ordered_json;

/// Words, names and paths; a blank or anything with a meaning in YAML is put in quotes.
bool is_plain(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_safe = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '/' || c == '-';
  };
  if (text.empty() || !is_letter(text.front()) || !std::ranges::all_of(text, is_safe)) return false;
  return type_of_plain(text) == type::text;
}

std::string scalar(const ordered_json& value) {
  if (value.is_string()) return plain_or_quoted(value.get_ref<const std::string&>());
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);  // {} and [] too
}

void write(const ordered_json& value, std::size_t indent, std::string& output) {
  const std::string margin(indent, ' ');
  const bool list = value.is_array();
  std::size_t count = 0;
  for (const auto& [key, member] : value.items()) {
    // The first line of an item of a list stands behind its dash.
    const bool after_dash = count++ == 0 && output.ends_with("- ");
    if (!after_dash) output += margin;
    output += list ? "- " : plain_or_quoted(key) + ":";
    if (!member.is_structured() || member.empty()) {
      output += (list ? "" : " ") + scalar(member) + "\n";
    } else if (list) {
      write(member, indent + 2, output);
    } else {
      output += "\n";
      write(member, indent + 2, output);
    }
  }
}

}  // namespace

std::string plain_or_quoted(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  return ordered_json(std::string(text)).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string write(const ordered_json& value) {
  std::string out;
  if (!value.is_structured() || value.empty()) return scalar(value) + "\n";
  write(value, 0, out);
  return out;
}

}  // namespace text::yaml
