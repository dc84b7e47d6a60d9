#pragma once
// The keys by which a container asks for cards on nodes of one mode, by what each says.

#include <string_view>

#include "quota/inventory.hpp"

namespace quota {

/// Empty: that mode has none.
struct mode_keys {
  std::string_view whole, slot, cores, memory, percent;
};
/// Of keys that mean the same the one that the node offers.
mode_keys keys_of(mode mode, const service& service);

}  // namespace quota
