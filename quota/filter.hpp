#pragma once
// One pod against many nodes, as a scheduler extender is asked: which fit, and how good each is. Allocates nothing;
// linear in nodes and their cards, flat in placed pods.

#include <cstdint>
#include <span>

#include "quota/place.hpp"

namespace quota {

/// 0 to 10, higher is better: how full (binpack) or empty (spread) the node's usable cards are with this placement. One
/// point of binpack's ten is for a placement that starts no card no one uses.
int score(const placement& placement, const node_view& view, policy policy);

/// What is left of cards that are shared, in hundredths of a card: no whole card will be made of it until they leave.
std::int64_t fragmentation(const node_view& view);

/// One pod against many nodes: `out[i]` is for `nodes[i]`; one without an inventory is no_node. The pod is read once
/// for each kind of service among neighbours in the list, so equal nodes side by side cost one reading. Linear in
/// nodes, flat in placed pods.
/// @param out as long as nodes
/// @param only the cards the pod wants; nullptr: any
void filter(std::span<const limits> pod, std::span<const node_view> nodes, std::span<shortfall> out,
            const selector* only = nullptr);

/// As filter, and the scores of those that fit (0 for the others).
void score(std::span<const limits> pod, std::span<const node_view> nodes, policy policy, std::span<std::uint8_t> out,
           const selector* only = nullptr);

}  // namespace quota
