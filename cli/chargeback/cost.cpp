#include "cli/chargeback/cost.hpp"

#include <algorithm>
#include <limits>

namespace cli {
namespace {

/// A month of a large cluster times a price has more than 64 bits.
__extension__ typedef __int128 wide_integer;

constexpr wide_integer hour = 3600, cores_per_card = 100;

/// Half up; both are at least 0. An amount that no currency has stays at the largest number.
std::int64_t quotient(wide_integer above, wide_integer below) {
  const auto rounded = (2 * above + below) / (2 * below);
  return static_cast<std::int64_t>(std::min<wide_integer>(rounded, std::numeric_limits<std::int64_t>::max() / 4));
}

}  // namespace

cost cost_of(std::int64_t card_hour, const quota::card_time& time, std::int64_t card_mib) {
  const wide_integer mib = std::max<std::int64_t>(card_mib, 1);
  const wide_integer of_cores = time.core_seconds * mib;
  const wide_integer of_memory = card_mib > 0 ? time.memory_mib_seconds * cores_per_card : 0;
  const wide_integer above = std::max<wide_integer>(std::max(of_cores, of_memory), 0) * card_hour;
  const wide_integer below = cores_per_card * mib * hour;
  return {quotient(above, below), quotient(above, below * 10'000)};
}

std::int64_t card_memory_mib(const quota::card_time& capacity) {
  if (capacity.core_seconds <= 0) return 0;
  constexpr std::int64_t largest = std::int64_t{1} << 30;  // 1 PiB
  const auto mib =
      quotient(std::max<std::int64_t>(capacity.memory_mib_seconds, 0) * cores_per_card, capacity.core_seconds);
  return std::min(mib, largest);
}

std::string decimal(std::int64_t amount, int decimals) {
  auto digits = std::to_string(amount < 0 ? -amount : amount);
  const auto fraction = static_cast<std::size_t>(decimals);
  if (digits.size() <= fraction) digits.insert(0, fraction + 1 - digits.size(), '0');
  if (fraction > 0) digits.insert(digits.size() - fraction, ".");
  return (amount < 0 ? "-" : "") + digits;
}

std::string card_hours(const quota::card_time& time) {
  return decimal(quotient(wide_integer{time.core_seconds} * 100, cores_per_card * hour), 2);
}

std::string memory_gib_hours(const quota::card_time& time) {
  return decimal(quotient(wide_integer{time.memory_mib_seconds} * 100, 1024 * hour), 2);
}

}  // namespace cli
