#include "reconcilers/declarations/vocabulary.hpp"

#include <algorithm>
#include <iterator>

namespace reconcilers::crl {

const quota::resource_key* vocabulary_of(std::string_view key) noexcept {
  const auto* known = quota::resource_key_of(key);
  return known && (known->legal.limited() || !known->partner.empty() || !known->on_pod.name.empty()) ? known : nullptr;
}

const quota::resource_key* partner_of(std::string_view key) noexcept {
  const auto* at = std::ranges::find_if(quota::resource_keys, [key](const quota::resource_key& one) {
    return one.partner == key && one.legal.whole > 0;
  });
  return at == std::end(quota::resource_keys) ? nullptr : at;
}

bool needs_partner(const quota::resource_key& of, std::int64_t amount) noexcept {
  return !of.partner.empty() && amount > 0 && (of.legal.whole == 0 || amount < of.legal.whole);
}

}  // namespace reconcilers::crl
