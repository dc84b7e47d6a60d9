#pragma once
// A person wrote bytes ("4Gi") for a memory that is counted in a larger unit: from 64 MiB on, because no node has so
// many of any unit.

#include <cstdint>
#include <string_view>

namespace quota {

/// What was meant, in the unit of the key; 0: the amount is no such mistake.
std::int64_t units_meant(std::string_view key, std::int64_t amount);

}  // namespace quota
