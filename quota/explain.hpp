#pragma once
// Why a pod fits on no node, for a person: how many nodes fail each of its needs, and the smallest single change that
// would let it run. For a waiting pod, not for every decision: allocates, and tries each node many times.
//
// A change is one thing: one amount of the pod, or one thing of one node. Those of the pod are
// - an amount lowered to any other the node takes, never to nothing; bytes (units.hpp) to what they come to at most;
// - the one amount a node refuses, raised to the next it takes. An amount of 0 or less is left as it is.
// Those of a node are `change::kind` from free_cores on. Of each sort the smallest is found, because the two are made
// by different people. Order, of both:
// 1. Size in millionths, rounded up: for an amount, the difference to what is asked; for cores, of a card; for memory,
//    of that card's memory; for a counted key, of what the pod asks; for all that concerns a card as a card, 1,000,000.
// 2. Of the pod: container, place among its limits, difference, the lower amount, node. Of a node: `kind`, node, card
// or
//    counted key in the pod's order.
// Nothing is named where no single thing is enough. Exact wherever `place` is: a try that ends with search_limit counts
// as not fitting.
//
// Cost: amounts x nodes x about a hundred placements, and cards x nodes x 2 log(memory), less what cannot be smaller
// than what was found before.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quota/faults.hpp"
#include "quota/place.hpp"

namespace quota {

/// One need and one reason. A container and a counted key are judged by themselves, so a node may count for several.
struct cause {
  reason code{};
  std::int32_t container = -1;  ///< -1: the whole pod, or a counted key
  std::string_view key{};       ///< of a counted key or a refused one
  std::size_t nodes = 0;        ///< how many fail
  std::int64_t needed = 0;      ///< of reason::cards: cards, and how many the best of the nodes has for it
  std::int64_t available = 0;
  /// The nodes would not do either with nothing on them and all their cards in use. `needed` and `available` are then
  /// those of the reason, of the largest of them; both 0 where it has none.
  bool too_small = false;
  std::optional<refusal> refused{};  ///< of reason::refused: what the nodes refuse

  /// But for how many nodes, and what the best of them has.
  bool is_like(const cause& other) const;
  friend bool operator==(const cause& left, const cause& right) {
    return left.is_like(right) && left.nodes == right.nodes && left.needed == right.needed &&
           left.available == right.available;
  }
};

struct change {
  enum class kind : std::uint8_t {
    amount,         ///< of the pod: limit `limit` of `container`, `key`, from `current` to `amount`
    free_cores,     ///< `amount` cores less in use on the card
    free_memory,    ///< `amount` MiB less in use on the card
    free_counted,   ///< `amount` more of `key` left on the node
    uncordon_card,  ///< healthy and not cut by MIG
    heal_card,      ///< not cordoned and not cut by MIG
    empty_card,     ///< all who use the card leave it
    add_card,       ///< one more, unused, like the node's first with the most memory
  };
  kind action{};
  std::uint16_t container = 0;
  std::size_t limit = 0;
  std::string_view key{};
  std::int64_t current = 0;
  std::int64_t amount = 0;
  std::size_t node = 0;               ///< where the pod fits then
  std::optional<std::uint16_t> card;  ///< of a node's change, the card; of an amount's, where its container goes first
  std::int64_t size = 0;              ///< millionths

  friend bool operator==(const change&, const change&) = default;
};

/// Views are into the pod's limits; nodes and cards are indexes in what was given.
struct explanation {
  std::size_t nodes = 0;
  std::size_t fitting = 0;
  std::vector<cause> causes;  ///< of the nodes where it does not fit; most nodes first, then container, key, reason
  std::optional<change> of_pod, of_node;  ///< only where `fitting` is 0
  std::optional<std::size_t> nearest;  ///< node of the smallest change; without one, the first that fails fewest needs
  std::vector<pod_fault> faults{};     ///< what no node takes, where `fitting` is 0 (faults.hpp)

  /// Of both; the pod's where they are of one size.
  const change* smallest() const;
};

/// @param only the cards the pod wants; nullptr: any
explanation explain(std::span<const limits> pod, std::span<const node_view> nodes, const selector* only = nullptr);

}  // namespace quota
