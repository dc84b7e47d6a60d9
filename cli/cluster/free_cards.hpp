#pragma once
// What new pods get of a node's cards right now: the one rule of FREE in `top`, `inspect nodes`, `report capacity` and
// on the console.

#include <cstddef>
#include <vector>

#include "kube/projections/node.hpp"
#include "quota/ledger.hpp"

namespace cli {

/// Of each card, in the order of the node: no pod has a part of it, and a new pod gets all of it. Where the plugin
/// takes cards by a rule of its own (quota/forecast.hpp), only those that it takes before it would take one that may
/// not be used: from then on no pod gets a whole card there. No more than a plugin of whole cards offers.
std::vector<bool> free_cards(const kube::node& node, const quota::node_view& view);

/// Of each card: a new pod gets a share of it, large or small. By the same rule.
std::vector<bool> cards_with_shares_left(const kube::node& node, const quota::node_view& view);

/// How many cards that may be used and have room get no new share all the same: by the same rule, the plugin would take
/// one that may not be used.
std::size_t withheld_cards(const kube::node& node, const quota::node_view& view);

}  // namespace cli
