#pragma once
// What a device plugin accepts for its resource, whatever a declaration says: where the two disagree this wins, because
// the plugin would refuse the container later and say less. The table is quota/resource_keys.hpp.

#include <string_view>

#include "quota/resource_keys.hpp"

namespace reconcilers::declarations {

/// Null for a key of which any amount is accepted, alone, whatever is written on the pod.
const quota::resource_key* vocabulary_of(std::string_view key) noexcept;
/// So much of `key` takes the place of another key: whole cards have all their memory, and a percentage of the memory
/// stands for a number of MiB. The other one is not missed next to it, and not filled in.
struct waiver {
  std::string_view key{};  ///< empty: nothing does
  std::int64_t least = 0;
};
waiver waiver_of(std::string_view key) noexcept;
/// So much of it needs its partner next to it.
bool needs_partner(const quota::resource_key& resource_key, std::int64_t amount) noexcept;

/// Of rule::one_only.
inline constexpr quota::amounts one_share{.max = 1, .words = "engine.refusal.one_share"};

}  // namespace reconcilers::declarations
