#pragma once
// Which labels or annotations a projection keeps: exact keys, and prefixes (patterns that end in '/' or '_').

#include <algorithm>
#include <span>
#include <string_view>

namespace kube {

struct keep {
  std::span<const std::string_view> patterns;  ///< in static storage
  bool all = false;

  constexpr bool wants(std::string_view key) const {
    return all || std::ranges::any_of(patterns, [&](std::string_view pattern) {
             if (!key.starts_with(pattern.front())) return false;  // most keys, at the price of one byte
             const bool prefix = pattern.ends_with('/') || pattern.ends_with('_');
             return prefix ? key.starts_with(pattern) : key == pattern;
           });
  }
};
inline constexpr keep keep_all{{}, true};
inline constexpr keep keep_none{};
/// Annotations of our own, on any object.
inline constexpr std::string_view own_annotations[] = {"quartermaster.io/", "state.quartermaster.io/"};

}  // namespace kube
