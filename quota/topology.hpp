#pragma once
// Selects the best connected free cards of a node, for a pod that gets several whole cards.

#include <cstddef>
#include <cstdint>
#include <span>

#include "quota/inventory.hpp"

namespace quota {

/// Scores the link of two cards as NVIDIA's allocator does: 100 per NVLink, plus 10 (across NUMA nodes) to 50 (one PCI
/// bridge) for the PCI path. An unknown link scores 0. Source: https://github.com/NVIDIA/go-gpuallocator,
/// gpuallocator/besteffort_policy.go
int quality(const link& link);

/// Up to this many free cards, every set is compared. With more, one set is grown from each card and the best is taken.
inline constexpr std::size_t exact_cards = 16;

/// Writes the best set of `cards` cards from `free` to `out`. Both hold indexes in the node's cards, ascending.
/// Sets are compared by, in this order:
/// 1. the highest sum of `quality` over all pairs;
/// 2. the fewest NUMA nodes; all cards of unknown NUMA node count as one node;
/// 3. the least total memory;
/// 4. the lowest sum of `quality` between chosen and remaining cards, so that the remaining cards stay well connected;
/// 5. the first in the node's order.
/// @return `cards`, or 0 when `free` or `out` is shorter than `cards`
std::size_t best_together(const node_inventory& node, std::span<const std::uint8_t> free, std::size_t cards,
                          std::span<std::uint8_t> out);

/// Does the node report links or NUMA nodes, by which sets differ?
bool knows_topology(const node_inventory& node);

}  // namespace quota
