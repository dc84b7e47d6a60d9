#include "reconcilers/declarations/vocabulary.hpp"

#include <algorithm>
#include <iterator>

namespace reconcilers::declarations {

const quota::resource_key* vocabulary_of(std::string_view key) noexcept {
  const auto* known = quota::resource_key_of(key);
  return known && (known->legal.limited() || !known->partner.empty() || !known->on_pod.name.empty()) ? known : nullptr;
}

waiver waiver_of(std::string_view key) noexcept {
  for (const auto& other : quota::resource_keys) {
    if (other.partner == key && other.legal.whole > 0) return {other.key, other.legal.whole};
    if (other.instead_of == key) return {other.key, 1};
  }
  return {};
}

bool needs_partner(const quota::resource_key& resource_key, std::int64_t amount) noexcept {
  return !resource_key.partner.empty() && amount > 0 &&
         (resource_key.legal.whole == 0 || amount < resource_key.legal.whole);
}

}  // namespace reconcilers::declarations
