#include "text/yaml/scalar.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <initializer_list>
#include <optional>

namespace text::yaml {
namespace {

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}
bool is_false(std::string_view text) {
  return one_of(text, {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"});
}
bool is_true(std::string_view text) {
  return one_of(text, {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"});
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// As Go's ParseInt with base 0 reads it after the underscores are out; beyond 64 bits the digits stay text.
std::optional<std::string> whole_number(std::string_view text) {
  if (text.empty() || (!is_digit(text.front()) && text.front() != '+' && text.front() != '-')) return std::nullopt;
  std::string digits(text);
  std::erase(digits, '_');
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.erase(0, 1);
  int base = 10;
  const auto prefixed = [&](char letter) {
    return digits.size() > 2 && digits[0] == '0' && (digits[1] == letter || digits[1] == letter - 'a' + 'A');
  };
  if (prefixed('x'))
    base = 16;
  else if (prefixed('o'))
    base = 8;
  else if (prefixed('b'))
    base = 2;
  if (base != 10)
    digits.erase(0, 2);
  else if (digits.size() > 1 && digits[0] == '0')
    base = 8;
  const auto is_figure = [&](char c) {
    const int value = is_digit(c)            ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : 99;
    return value < base;
  };
  if (digits.empty() || !std::ranges::all_of(digits, is_figure)) return std::nullopt;
  if (base != 10) {
    errno = 0;
    const auto value = std::strtoull(digits.c_str(), nullptr, base);
    if (errno != 0) return std::nullopt;
    digits = std::to_string(value);
  }
  return (negative ? "-" : "") + digits;
}

/// ^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$, and the words for infinity and no number.
bool is_real(std::string_view text) {
  if (one_of(text,
             {".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"}))
    return true;
  const auto take_digits = [&] {
    const auto end = std::ranges::find_if_not(text, is_digit);
    const auto count = static_cast<std::size_t>(end - text.begin());
    text.remove_prefix(count);
    return count;
  };
  const auto take = [&](std::string_view any) {
    if (text.empty() || !any.contains(text.front())) return false;
    text.remove_prefix(1);
    return true;
  };
  take("+-");
  const auto whole = take_digits();
  const auto fraction = take(".") ? take_digits() : 0;
  if (whole + fraction == 0) return false;
  if (take("eE")) {
    take("+-");
    if (take_digits() == 0) return false;
  }
  return text.empty();
}

}  // namespace

type type_of_plain(std::string_view text) {
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) return type::null;
  if (is_true(text) || is_false(text)) return type::boolean;
  if (whole_number(text)) return type::integer;
  std::string digits(text);
  if (is_digit(text.front()) || text.front() == '+' || text.front() == '-') std::erase(digits, '_');
  return is_real(digits) ? type::real : type::text;
}

std::string canonical_plain(std::string_view text) {
  switch (type_of_plain(text)) {
    case type::null:
      return {};
    case type::boolean:
      return is_true(text) ? "true" : "false";
    case type::integer:
      return whole_number(text).value_or(std::string(text));
    case type::text:
    case type::real:
      break;
  }
  return std::string(text);
}

}  // namespace text::yaml
