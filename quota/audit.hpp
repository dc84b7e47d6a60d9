#pragma once
// The book beside what the API says: what is in it as a value that can be kept, and where two books differ. The caller
// recomputes one from the API and compares; what to do about a difference (count it, say it, record anew) is its
// matter.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quota/ledger.hpp"

namespace quota {

/// All that a book says, in a fixed order: two books that say the same give the same.
struct snapshot {
  std::vector<node> nodes;                                  ///< by name
  std::vector<std::pair<std::string, ledger::entry>> pods;  ///< by UID

  friend bool operator==(const snapshot&, const snapshot&) = default;
};
snapshot snapshot_of(const ledger& book);
/// A book that says the same, and expires what is assumed in it at the same times.
ledger book_of(const snapshot& from);

struct difference {
  enum class kind : std::uint8_t {
    missing,     ///< the API has the pod on cards, the book does not know
    extra,       ///< the book has it confirmed, the API does not have it
    different,   ///< on another node or on other cards, or with other amounts
    over_given,  ///< by the API, more of a card or key is given out than it has
  };
  kind what{};
  std::string pod;   ///< UID; empty for over_given
  std::string node;  ///< where the API has it; of an extra one, where the book has it
  std::string card;  ///< or key, of over_given

  friend bool operator==(const difference&, const difference&) = default;
};
std::string_view text_of(difference::kind of);
/// One line for a person.
std::string text_of(const difference& of);

/// Sorted by kind, pod, node and card. What is only assumed and not known to the API is no difference: its answer is on
/// the way, or it expires. Of a holding counts what is booked: node, cards, amounts, keys; neither the order nor which
/// container it is for, nor what a whole card says of itself.
std::vector<difference> compare(const ledger& book, const ledger& recomputed);

}  // namespace quota
