#pragma once
// Times of the certificates in the tests, in seconds. All worlds begin at `start`.

#include <cstdint>

namespace reconcilers {

inline constexpr std::int64_t minute = 60, day = 86'400, year = 365 * day, start = 1'800'000'000;

}  // namespace reconcilers
