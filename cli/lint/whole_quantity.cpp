#include "cli/lint/whole_quantity.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace cli {
namespace {

/// A quantity without its sign and suffix, and without leading zeros.
struct amount_text {
  std::string_view whole, fraction;
};

std::string_view digits_of(std::string_view& text) {
  const auto digits = text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
  text.remove_prefix(digits.size());
  return digits;
}

// What follows is resource.ParseQuantity and Quantity.MilliValue of apimachinery, because the API server asks whether
// MilliValue() is a multiple of 1,000 (ValidateResourceQuantityValue): parts of less than a thousandth round up to one,
// and what an int64 cannot hold wraps around, or is 0.

__extension__ using wide = unsigned __int128;
constexpr std::int64_t int64_most = std::numeric_limits<std::int64_t>::max();

bool thousands(std::uint64_t milli) { return static_cast<std::int64_t>(milli) % 1000 == 0; }

long exponent_of(std::string_view suffix) {
  static constexpr std::array<std::pair<std::string_view, long>, 10> decimal{
      {{"", 0}, {"n", -9}, {"u", -6}, {"m", -3}, {"k", 3}, {"M", 6}, {"G", 9}, {"T", 12}, {"P", 15}, {"E", 18}}};
  const auto known = std::ranges::find(decimal, suffix, &std::pair<std::string_view, long>::first);
  if (known != decimal.end()) return known->second;
  long out = 0;
  const auto power = suffix.substr(suffix.size() > 1 && suffix[1] == '+' ? 2 : 1);
  std::from_chars(power.data(), power.data() + power.size(), out);
  return out;
}

bool whole_in_decimal(const amount_text& amount_text, long exponent) {
  const auto digits = std::string(amount_text.whole) + std::string(amount_text.fraction);
  const long milli = exponent - static_cast<long>(amount_text.fraction.size()) + 3;  // digits x 10^milli thousandths
  const bool fast = digits.size() <= 18 && milli >= -6;
  // Of a power that ParseQuantity multiplies by step by step.
  if (fast && milli > 3 && milli != 6 && milli != 9) return true;
  const auto kept =
      milli < 0 ? digits.substr(0, digits.size() - std::min(digits.size(), static_cast<std::size_t>(-milli))) : digits;
  const bool rest = digits.find_first_not_of('0', kept.size()) != std::string::npos;
  std::uint64_t value = 0;
  for (const char c : kept) value = value * 10 + static_cast<std::uint64_t>(c - '0');
  for (long i = 0; i < std::min(milli, 64L); ++i) value *= 10;
  return thousands(value + (rest ? 1 : 0));
}

/// x 2^exponent. Of the fraction 18 digits count.
bool whole_in_binary(const amount_text& amount_text, std::size_t exponent) {
  if (amount_text.whole.size() > 19) return true;  // as much as an int64 holds
  wide value = 0, part = 0, scale = 1;
  for (const char c : amount_text.whole) value = value * 10 + static_cast<unsigned>(c - '0');
  for (const char c : amount_text.fraction.substr(0, 18)) {
    part = part * 10 + static_cast<unsigned>(c - '0');
    scale *= 10;
  }
  part <<= exponent;
  value = (value << exponent) + part / scale;
  if (value > static_cast<wide>(int64_most) || (value == static_cast<wide>(int64_most) && part % scale != 0))
    return true;
  return thousands(static_cast<std::uint64_t>(value * 1000 + (part % scale * 1000 + scale - 1) / scale));
}

}  // namespace

bool is_whole(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  text.remove_prefix(std::min(text.find_first_not_of('0'), text.size()));
  amount_text amount_text;
  amount_text.whole = digits_of(text);
  if (amount_text.whole.empty()) amount_text.whole = "0";
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    amount_text.fraction = digits_of(text);
  }
  static constexpr std::string_view binary = "KMGTPE";
  if (text.size() == 2 && text.ends_with('i'))
    return whole_in_binary(amount_text, 10 * (binary.find(text.front()) + 1));
  return whole_in_decimal(amount_text, exponent_of(text));
}

}  // namespace cli
