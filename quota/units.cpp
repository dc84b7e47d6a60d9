#include "quota/units.hpp"

#include "quota/vocabulary.hpp"

namespace quota {
namespace {

/// 64 MiB in bytes. Read as so many MiB it is 64 TiB, which no node has of card memory.
constexpr std::int64_t least_bytes = std::int64_t{64} << 20;

}  // namespace

std::int64_t units_meant(std::string_view key, std::int64_t amount) {
  const auto* known = resource_key_of(key);
  return known && known->unit_mib > 0 && amount >= least_bytes ? in_unit(*known, amount) : 0;
}

}  // namespace quota
