#pragma once
// Which free cards of a node lie best together, for a pod that gets several of them whole.

#include <cstddef>
#include <cstdint>
#include <span>

#include "quota/inventory.hpp"

namespace quota {

/// How well two cards reach each other, as NVIDIA's allocator counts it: 100 for each NVLink and 10 (another NUMA node)
/// to 50 (one PCI bridge) for the way over PCI; 0 where it is not known. https://github.com/NVIDIA/go-gpuallocator,
/// gpuallocator/besteffort_policy.go
int quality(const link& link);

/// Up to so many free cards every set is looked at; of more, the best that grows from any one card.
inline constexpr std::size_t exact_cards = 16;

/// The best `cards` of `free` (indexes in the node's cards, ascending), into `out`, ascending:
/// 1. the highest sum of qualities over every two of them;
/// 2. the fewest NUMA nodes; cards that do not say are on one;
/// 3. the least memory in all;
/// 4. the lowest sum of qualities between them and those that stay free, so that the rest lies well together too;
/// 5. the first in the node's order.
/// @return `cards`, or 0 where there are not as many
std::size_t best_together(const node& node, std::span<const std::uint8_t> free, std::size_t cards,
                          std::span<std::uint8_t> out);

/// Does the node say anything by which one set is better than another?
bool knows_topology(const node& node);

}  // namespace quota
