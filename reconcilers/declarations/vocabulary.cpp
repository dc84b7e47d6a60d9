#include "reconcilers/declarations/vocabulary.hpp"

#include <algorithm>
#include <iterator>

namespace reconcilers::declarations {

const quota::resource_key* vocabulary_of(std::string_view key) noexcept {
  const auto* known = quota::resource_key_of(key);
  return known && (known->legal.limited() || !known->partner.empty() || !known->on_pod.name.empty()) ? known : nullptr;
}

const quota::resource_key* partner_of(std::string_view key) noexcept {
  const auto* match = std::ranges::find_if(quota::resource_keys, [key](const quota::resource_key& resource_key) {
    return resource_key.partner == key && resource_key.legal.whole > 0;
  });
  return match == std::end(quota::resource_keys) ? nullptr : match;
}

bool needs_partner(const quota::resource_key& resource_key, std::int64_t amount) noexcept {
  return !resource_key.partner.empty() && amount > 0 &&
         (resource_key.legal.whole == 0 || amount < resource_key.legal.whole);
}

}  // namespace reconcilers::declarations
