#pragma once
// The word a person most likely meant. Small lists only (a vocabulary, the names of our fields); both sides are cut at
// 64 bytes, so the cost of a hostile word is bounded.

#include <span>
#include <string_view>

namespace text {

/// Optimal string alignment distance (insert, delete, replace, swap of neighbours) without regard to ASCII case.
std::size_t distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or empty when none is near: at most a third of the longer word may differ, but one
/// letter always may. Of two equally near the first wins.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace text
