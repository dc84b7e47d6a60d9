#pragma once
// Money and amounts of time as people read them. Integers all the way: a bill that is added up by hand must come out
// the same.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "quota/usage.hpp"

namespace cli {

/// An amount of money, not negative, rounded half up from the exact quotient in two ways. They are not rounded one from
/// the other.
struct cost {
  std::int64_t millionths = 0;
  std::int64_t hundredths = 0;

  cost& operator+=(const cost& more) {
    constexpr auto largest = std::numeric_limits<std::int64_t>::max();
    millionths += std::min(more.millionths, largest - millionths);
    hundredths += std::min(more.hundredths, largest - hundredths);
    return *this;
  }
  friend bool operator==(const cost&, const cost&) = default;
};

/// What a part of a card costs: the larger of its part of the cores and its part of the memory, because that is what
/// no one else can have. `card_hour`: price of a whole card for an hour, in millionths. `card_mib`: memory of such a
/// card; 0: the cores alone count.
cost cost_of(std::int64_t card_hour, const quota::card_time& time, std::int64_t card_mib);

/// Memory of one card of which this is the time; 0: it has none.
std::int64_t card_memory_mib(const quota::card_time& capacity);

/// 1234567 with 6 decimals is "1.234567".
std::string decimal(std::int64_t amount, int decimals);
/// Core-seconds as hours of whole cards, "12.50".
std::string card_hours(const quota::card_time& time);
/// MiB-seconds as GiB-hours, "480.00".
std::string memory_gib_hours(const quota::card_time& time);

}  // namespace cli
