#pragma once
// The book of who holds what of which card: whole cards and shares of every vocabulary in one sum a card, so nothing is
// given twice. Entries are keyed by pod UID and say cards by UUID, so a node that is reported again, in another order
// or after its pods, changes nothing. No clock: times are the caller's, in milliseconds from any fixed start.
//
// An entry is *assumed* (we have decided, the API server has not answered) or *confirmed* (the API has it). What we
// assume never goes beyond a card; what the API already has is booked as it is, and said where it goes beyond. One
// thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "quota/card_use.hpp"
#include "quota/inventory.hpp"

namespace quota {

/// A part of a card that a container holds. A whole card is 100 cores and the card's full memory, whatever stands here.
struct grant {
  std::uint16_t container = 0;
  bool whole = false;
  std::int32_t cores = 0;
  std::int32_t burst_cores = 0;
  std::int64_t memory_mib = 0;
  std::string card;  ///< UUID

  friend bool operator==(const grant&, const grant&) = default;
};

/// What a pod holds, on one node.
struct holding {
  std::string node;
  std::vector<grant> grants;
  std::vector<count> counts;  ///< plain counted keys

  friend bool operator==(const holding&, const holding&) = default;
};

enum class booked : std::uint8_t {
  done,
  already,      ///< the same entry was there: nothing changed
  elsewhere,    ///< the pod has another entry; release it first
  no_node,      ///< not reported
  no_card,      ///< the node has no such card or key, or the card is not usable
  over_commit,  ///< a card or key would be given out beyond what it has
  over_given,   ///< `record` only: booked as it is, and a card or key is beyond what it has
};

/// A node with what is given out of it. Valid until the ledger changes.
struct node_view {
  const node_inventory* inventory = nullptr;
  std::span<const card_use> used;             ///< one a card, in the node's order
  std::span<const std::int64_t> counts_used;  ///< one a counted key, in the node's order
};

/// Adds (sign 1) or takes away (-1) what a pod holds of the node from sums of its cards and counted keys, in its order.
/// False where it holds something the node does not have; that is left out.
bool apply(const node_inventory& node, const holding& holding, int sign, std::span<card_use> used,
           std::span<std::int64_t> counts_used);

class ledger {
 public:
  ledger() = default;
  ledger(ledger&&) = default;
  ledger& operator=(ledger&&) = default;
  /// For trying something out; the original stays as it is.
  ledger(const ledger& other);
  ledger& operator=(const ledger& other) { return *this = ledger{other}; }
  ~ledger() = default;

  struct entry {
    holding held;
    bool confirmed = false;
    std::int64_t until_ms = 0;  ///< of an assumed one

    friend bool operator==(const entry&, const entry&) = default;
  };

  /// The node as it is now; what pods hold of it stays booked. Cost: its cards x what is held of them where something
  /// changed, one comparison where nothing did.
  void put(node_inventory node);
  /// Its pods stay booked until they are released: a node of the same name may come back.
  void remove(std::string_view name);
  /// Nothing where the node is not reported. O(1).
  std::optional<node_view> view(std::string_view name) const;

  /// Books what is about to be written, until `until_ms`. All or nothing. The same holding again renews the time.
  /// @return done, already, elsewhere, no_node, no_card, over_commit
  booked assume(std::string_view pod_uid, const holding& holding, std::int64_t until_ms);
  /// The API has what was assumed: it expires no more. False where there is no such entry: use `record`.
  bool confirm(std::string_view pod_uid);
  /// What the API says a pod holds, confirmed; replaces what the ledger thought.
  /// @return done, already, no_node or no_card (booked: the node or card may be reported later), over_given
  booked record(std::string_view pod_uid, const holding& holding);
  /// An entry as it was in another book, whatever the node has; replaces what was there.
  void restore(std::string_view pod_uid, const entry& entry);
  /// The pod is gone, finished, or its Binding was refused. False where there was no entry.
  bool release(std::string_view pod_uid);
  /// Releases what was assumed until `now_ms` or earlier and says whose it was. O(entries).
  std::vector<std::string> expire(std::int64_t now_ms);

  const entry* find(std::string_view pod_uid) const;
  std::size_t size() const { return entries_.size(); }
  /// Every entry, for the audit and for a rebuild; the order is not fixed.
  template <class Fn>
  void for_each(Fn&& fn) const {
    for (const auto& [uid, entry] : entries_) fn(uid, entry);
  }
  /// Every node that is reported; the order is not fixed.
  template <class Fn>
  void for_each_node(Fn&& fn) const {
    for (const auto& [name, book] : books_)
      if (book.reported) fn(node_view{&book.inventory, book.used, book.counts_used});
  }
  /// Of the node's cards and keys, how many are given out beyond what they have.
  std::size_t over_given(std::string_view node) const;

 private:
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  template <class T>
  using by_name = std::unordered_map<std::string, T, hash, std::equal_to<>>;

  struct book {
    bool reported = false;
    node_inventory inventory;
    std::vector<card_use> used;
    std::vector<std::int64_t> counts_used;
    std::vector<const entry*> holders;
  };

  static booked trial(const book& book, const holding& holding);
  static void recount(book& book);
  static std::size_t count_over_given(const book& book);
  void insert(std::string_view pod_uid, const holding& holding, bool confirmed, std::int64_t until_ms);
  void erase(by_name<entry>::iterator match);

  by_name<book> books_;  // a node that is not reported has one while pods hold something of it
  by_name<entry> entries_;
};

}  // namespace quota
