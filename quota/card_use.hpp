#pragma once
// What is given out of one card, and the one rule for what may be added: the ledger and the placement both ask here, so
// that a placement is never refused by the book.

#include <cstdint>

#include "quota/inventory.hpp"

namespace quota {

inline constexpr std::int32_t whole_card = 100;  ///< cores

/// Sums over those who hold a part of a card. A whole card counts as `wholes`, not in the sums.
struct card_use {
  std::int64_t memory_mib = 0;
  std::int32_t cores = 0;
  std::int32_t sharers = 0;
  std::int32_t wholes = 0;

  bool untouched() const { return sharers == 0 && wholes == 0; }
  friend bool operator==(const card_use&, const card_use&) = default;
};

inline bool admits_whole(const card& card, const card_use& now) { return card.usable() && now.untouched(); }

/// A share of 100 cores goes to a card no one uses and is joined by no one. A share without cores computes with what
/// the others leave, so something has to be left.
inline bool cores_left(const card_use& now, std::int32_t cores) {
  if (cores == 0) return now.cores < whole_card;
  if (cores == whole_card) return now.sharers == 0;
  return now.cores + cores <= whole_card;
}

inline bool admits_share(const card& card, const card_use& now, std::int32_t cores, std::int64_t memory_mib) {
  return card.usable() && now.wholes == 0 && now.sharers < card.max_sharers &&
         memory_mib <= card.lendable_mib() - now.memory_mib && cores_left(now, cores);
}

/// More is given out of the card than it has.
inline bool beyond(const card& card, const card_use& now) {
  if (now.wholes > 0) return now.wholes > 1 || now.sharers > 0;
  return now.cores > whole_card || now.memory_mib > card.lendable_mib() || now.sharers > card.max_sharers;
}

}  // namespace quota
