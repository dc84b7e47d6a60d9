#include "kube/quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace kube {
namespace {

__extension__ using wide = unsigned __int128;
constexpr std::int64_t cap = std::numeric_limits<std::int64_t>::max();

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Cuts the digits off the front of `text`.
std::string_view take_digits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const std::string_view digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

struct scale {
  int base;
  std::int64_t exponent;
};

std::optional<scale> read_suffix(std::string_view suffix) {
  struct row {
    std::string_view suffix;
    scale means;
  };
  static constexpr std::array<row, 16> known{{{"", {10, 0}},
                                              {"n", {10, -9}},
                                              {"u", {10, -6}},
                                              {"m", {10, -3}},
                                              {"k", {10, 3}},
                                              {"M", {10, 6}},
                                              {"G", {10, 9}},
                                              {"T", {10, 12}},
                                              {"P", {10, 15}},
                                              {"E", {10, 18}},
                                              {"Ki", {2, 10}},
                                              {"Mi", {2, 20}},
                                              {"Gi", {2, 30}},
                                              {"Ti", {2, 40}},
                                              {"Pi", {2, 50}},
                                              {"Ei", {2, 60}}}};
  if (const auto match = std::ranges::find(known, suffix, &row::suffix); match != known.end()) return match->means;
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  suffix.remove_prefix(1);
  if (suffix[0] == '+') {
    suffix.remove_prefix(1);
    if (suffix.empty() || !is_digit(suffix[0])) return std::nullopt;
  }
  std::int64_t exponent = 0;
  const auto [end, failed] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), exponent);
  if (failed != std::errc() || end != suffix.data() + suffix.size()) return std::nullopt;
  return scale{10, std::clamp<std::int64_t>(exponent, -10'000, 10'000)};
}

/// whole.fraction x 10^exponent, rounded up: the decimal point is moved through the text.
std::int64_t decimal(std::string_view whole, std::string_view fraction, std::int64_t exponent) {
  std::string digits(whole);
  digits += fraction;
  const std::size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, zeros);
  if (digits.empty()) return 0;
  const std::int64_t before_point =
      static_cast<std::int64_t>(digits.size()) - static_cast<std::int64_t>(fraction.size()) + exponent;
  if (before_point <= 0) return 1;
  if (before_point > std::numeric_limits<std::int64_t>::digits10 + 1) return cap;
  wide value = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(before_point); ++i) {
    value = value * 10 + static_cast<unsigned>(i < digits.size() ? digits[i] - '0' : 0);
  }
  const bool rest = digits.find_first_not_of('0', static_cast<std::size_t>(before_point)) != digits.npos;
  return static_cast<std::int64_t>(std::min<wide>(value + rest, static_cast<wide>(cap)));
}

/// whole.fraction x 2^exponent, rounded up. Of the fraction 18 digits count.
std::int64_t binary(std::string_view whole, std::string_view fraction, std::int64_t exponent) {
  constexpr std::size_t most_digits = 18;
  wide value = 0;
  for (const char c : whole) {
    value = value * 10 + static_cast<unsigned>(c - '0');
    if (value > static_cast<wide>(cap)) return cap;
  }
  value <<= exponent;
  wide part = 0, scale = 1;
  for (const char c : fraction.substr(0, most_digits)) {
    part = part * 10 + static_cast<unsigned>(c - '0');
    scale *= 10;
  }
  value += ((part << exponent) + scale - 1) / scale;
  return static_cast<std::int64_t>(std::min<wide>(value, static_cast<wide>(cap)));
}

}  // namespace

std::optional<std::int64_t> parse_quantity(std::string_view text) {
  if (text.empty()) return std::nullopt;
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  const std::string_view whole = take_digits(text);
  std::string_view fraction;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    fraction = take_digits(text);
  }
  const auto suffix = read_suffix(text);
  if (!suffix) return std::nullopt;
  const std::int64_t size =
      suffix->base == 10 ? decimal(whole, fraction, suffix->exponent) : binary(whole, fraction, suffix->exponent);
  return negative ? -size : size;
}

std::int64_t amount(const quantities& quantities, std::string_view name) {
  const auto match =
      std::ranges::lower_bound(quantities, name, {}, [](const auto& entry) { return std::string_view(entry.first); });
  return match != quantities.end() && match->first == name ? match->second : 0;
}

bool is_extended_resource(std::string_view name) {
  return name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.");
}

}  // namespace kube
