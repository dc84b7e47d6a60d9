#pragma once
// The resources a kube-scheduler asks our extender about, and whether a kubelet advertises them: of the table
// quota/resource_keys.hpp those that one of our modules, or one it takes over, offers.

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quota/resource_keys.hpp"

namespace scheduler_config {

struct managed_key {
  std::string_view key;
  bool offered = true;            ///< false: no node ever advertises it, so kube-scheduler must not look for room
  std::string_view partner = {};  ///< an extender that manages the one and not the other misses pods
};
inline constexpr auto managed_keys = [] {
  constexpr auto count = std::ranges::count(quota::resource_keys, true, &quota::resource_key::managed);
  std::array<managed_key, static_cast<std::size_t>(count)> out;
  auto position = out.begin();
  for (const auto& resource_key : quota::resource_keys) {
    if (resource_key.managed) *position++ = {resource_key.key, resource_key.offered, resource_key.partner};
  }
  return out;
}();
/// Null for any other key.
const managed_key* managed_key_of(std::string_view key) noexcept;

}  // namespace scheduler_config
