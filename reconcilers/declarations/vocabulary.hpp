#pragma once
// What a device plugin accepts for its resource, whatever a declaration says: where the two disagree this wins, because
// the plugin would refuse the container later and say less. The table is quota/resource_keys.hpp.

#include <string_view>

#include "quota/resource_keys.hpp"

namespace reconcilers::declarations {

/// Null for a key of which any amount is accepted, alone, whatever is written on the pod.
const quota::resource_key* vocabulary_of(std::string_view key) noexcept;
/// The cores whose shares need this key next to them; whole cards need none of it and get none.
const quota::resource_key* partner_of(std::string_view key) noexcept;
/// So much of it needs its partner next to it.
bool needs_partner(const quota::resource_key& resource_key, std::int64_t amount) noexcept;

}  // namespace reconcilers::declarations
