#pragma once
// Which cards a plugin that chooses by itself takes for a container: it chooses again when the kubelet asks it, and
// refuses a share that was promised on another card. So on its nodes a placement is foretold, not chosen. What it goes
// by is what it gave out: it knows neither health nor cordons, and a card it would take that may not be used is a pod
// that may not come.
//
// What cannot be foretold: between cards with the same cores and memory left it goes by the processes that run there,
// which no one outside the node knows; here the number of shares stands for them. Between subtrees of the PCI tree with
// as many free cards it goes by memory in use; here the first one counts. Whole cards it does not compare with what was
// promised.

#include <cstddef>
#include <cstdint>
#include <span>

#include "quota/card_use.hpp"
#include "quota/vocabulary.hpp"

namespace quota::forecast {

inline constexpr std::int64_t unit_mib = 256;  ///< it tells no smaller differences of memory

/// Does it choose for this need?
inline bool chooses(const need& need, const node_inventory& node) {
  return need.node_mode == mode::vgpu && node.serves.plugin_chooses;
}

/// The cards it takes, in `out`. For a share: of the cards with enough, the one with the fewest cores left, then the
/// least memory in units of 256 MiB, then the first. For one whole card: a free one of the subtree with the fewest
/// free. For several: the free ones of the closest subtree that has enough. Without links the cards are one subtree.
/// The containers of a pod come in their order, so `used` has those before it.
/// @return how many: as many as are needed, or 0
std::size_t choose(const need& need, const node_inventory& node, std::span<const card_use> used,
                   std::span<std::uint8_t> out);

}  // namespace quota::forecast
