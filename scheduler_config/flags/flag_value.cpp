#include "scheduler_config/flags/flag_value.hpp"

#include <algorithm>
#include <charconv>
#include <string>

namespace scheduler_config {

std::optional<bool> go_bool(std::string_view text) {
  for (const std::string_view word : {"1", "t", "T", "true", "True", "TRUE"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"0", "f", "F", "false", "False", "FALSE"}) {
    if (text == word) return false;
  }
  return std::nullopt;
}

std::optional<std::int64_t> go_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 8;
    text.remove_prefix(letter == 'x' || letter == 'o' || letter == 'b' ? 2 : 1);
  }
  // Go takes "_" between figures alone.
  if (text.ends_with('_') || text.contains("__") || (text.starts_with('_') && base == 10)) return std::nullopt;
  std::string digits(text);
  std::erase(digits, '_');
  std::uint64_t whole = 0;
  const auto* const end = digits.data() + digits.size();
  const auto [stopped, wrong] = std::from_chars(digits.data(), end, whole, base);
  if (wrong != std::errc{} || stopped != end || whole > INT64_MAX) return std::nullopt;
  return negative ? -static_cast<std::int64_t>(whole) : static_cast<std::int64_t>(whole);
}

}  // namespace scheduler_config
