#include "quota/units.hpp"

#include "quota/vocabulary.hpp"

namespace quota {

std::int64_t units_meant(std::string_view key, std::int64_t amount) {
  const auto* known = resource_key_of(key);
  return known && known->unit_mib > 0 && amount > most ? in_unit(*known, amount) : 0;
}

}  // namespace quota
