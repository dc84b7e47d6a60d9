#pragma once
// One container's need in the keys of another kind of node: the amounts that mean the same there. Pure; views are into
// the table of keys.

#include <cstdint>
#include <optional>
#include <vector>

#include "quota/vocabulary.hpp"

namespace quota {

struct translation {
  std::vector<amount> limits;     ///< of the container, by the engine's names of keys
  std::uint32_t spread_over = 1;  ///< cards; more than one is written on the pod (card_count)
};

/// Never less than the need: what is no whole unit or step is rounded up. Nothing where those keys cannot say the same:
/// a share without a number of cores in a mode that wants one, memory in percent where it is counted, shares of several
/// cards where a container has one, burst cores, and seats of cards that are shared by time.
/// @param service of the node, for the unit of its memory and which of its keys it offers
std::optional<translation> translated(const need& need, mode target, const service& service);

}  // namespace quota
