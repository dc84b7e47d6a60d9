#pragma once
// The time of cards: who held how much of which card from when to when, and what the rest of each card was meanwhile.
// docs/decisions/014 has the rules. A timeline of whole seconds is kept until it is settled; settling a stretch of time
// is a pure sum over the timeline, so the same stretch settled twice gives the same numbers. No clock: times are the
// caller's, seconds since 1970. One thread.

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace quota {

using seconds = std::int64_t;  ///< since 1970, UTC

/// Compute and memory, times seconds. A card has 100 cores.
struct card_time {
  std::int64_t core_seconds = 0;
  std::int64_t memory_mib_seconds = 0;

  /// Stays at the largest number: someone may have edited what is read back.
  card_time& operator+=(const card_time& more) {
    core_seconds = sum_of(core_seconds, more.core_seconds);
    memory_mib_seconds = sum_of(memory_mib_seconds, more.memory_mib_seconds);
    return *this;
  }
  bool zero() const { return core_seconds == 0 && memory_mib_seconds == 0; }
  friend bool operator==(const card_time&, const card_time&) = default;

 private:
  static std::int64_t sum_of(std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    if (!__builtin_add_overflow(a, b, &out)) return out;
    return a < 0 ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
  }
};
inline card_time operator+(card_time a, const card_time& b) { return a += b; }
inline card_time operator-(const card_time& a, const card_time& b) {
  return {a.core_seconds - b.core_seconds, a.memory_mib_seconds - b.memory_mib_seconds};
}

/// What a bill is grouped by, within a namespace.
struct usage_key {
  std::string model;         ///< of the card; the resource key where it is only counted
  std::string mode;          ///< pGPU, vGPU, MPS, MIG, device
  std::string organization;  ///< empty: none
  std::int32_t priority = 0;

  friend auto operator<=>(const usage_key&, const usage_key&) = default;
};
using usage_rows = std::map<usage_key, card_time>;
/// Adds, and keeps at most `max_usage_rows`: what is a row too many goes to the row that is `other` in all keys.
void add(usage_rows& rows, const usage_key& key, const card_time& time);
inline constexpr std::size_t max_usage_rows = 256;

/// All cards of a model: parts + idle + unhealthy + unattributed = capacity + beyond.
struct model_time {
  card_time capacity, parts, idle, unhealthy, unattributed, beyond;

  model_time& operator+=(const model_time& more);
  bool adds_up() const { return parts + idle + unhealthy + unattributed == capacity + beyond; }
  friend bool operator==(const model_time&, const model_time&) = default;
};
using model_rows = std::map<std::string, model_time, std::less<>>;

/// A part of a card. Cards are found by a name that no other card has (UUID, or node and resource key).
struct usage_part {
  std::string card;
  std::string mode;
  std::int64_t cores = 0;  ///< 100 a card
  std::int64_t memory_mib = 0;

  friend bool operator==(const usage_part&, const usage_part&) = default;
};

/// What a pod holds, and for whom.
struct usage_holder {
  std::string name_space;
  std::string organization;
  std::int32_t priority = 0;
  std::vector<usage_part> parts;

  friend bool operator==(const usage_holder&, const usage_holder&) = default;
};

/// A card as it is from some time on.
struct usage_card {
  std::string model;
  std::int64_t cores = 100;  ///< more for a key that is only counted: 100 a piece
  std::int64_t memory_mib = 0;
  bool healthy = true;  ///< not withdrawn, not cordoned, and its node is Ready

  friend bool operator==(const usage_card&, const usage_card&) = default;
};

class usage_book {
 public:
  /// Nothing is known before `start` but what pods say themselves. Nothing is settled yet.
  explicit usage_book(seconds start) : start_(start) {}
  /// Everything up to `until` is settled: we begin there. What is between that and `start` is a gap: of it, only what
  /// pods that are still known held is attributed.
  void resume(seconds until);

  /// The card is so from `time` on. Equal to before: nothing.
  void put_card(std::string_view name, const usage_card& card, seconds time);
  /// The card is gone from `time` on.
  void remove_card(std::string_view name, seconds time);

  /// The pod holds this since `begin`, but not since before what is settled. Another holder for the same pod counts
  /// from `now` on.
  void hold(std::string_view pod, const usage_holder& holder, seconds begin, seconds now);
  /// It held it until `time`. False where it holds nothing.
  bool release(std::string_view pod, seconds time);
  /// It was seen last at `sure`, and is gone at `time`: what is between is attributed to no one.
  bool lose(std::string_view pod, seconds sure, seconds time);
  bool holds(std::string_view pod) const { return holdings_.contains(pod); }

  struct sums {
    std::map<std::string, usage_rows, std::less<>> namespaces;
    model_rows models;
  };
  /// Everything from what was settled last to `until`, which is settled then. Cost: cards, and what changed on each.
  sums settle(seconds until);
  /// The same in steps, for a caller that lets others run in between. The moment is fixed here: what is put, held or
  /// released between two steps counts from `until` on. Only where nothing is being settled.
  void begin_settling(seconds until);
  /// Sums up so many more cards. False: there are none left.
  bool settle_some(std::size_t count);
  /// Everything since `begin`. All cards are summed up, and nothing is being settled any more.
  struct settlement {
    seconds begin = 0;
    sums amounts;
  };
  settlement take_settled();
  bool is_settling() const { return settling_.has_value(); }
  /// Up to where the past is fixed: what has happened before counts no more.
  seconds settled() const { return settled_; }
  std::size_t cards() const { return cards_.size(); }
  std::size_t holders() const { return holdings_.size(); }

 private:
  static constexpr seconds open = std::numeric_limits<seconds>::max();
  /// Texts are kept once: there are as many cards and pods as nodes bring, and few models and teams.
  struct label {
    std::string name_space;
    usage_key key;  ///< without the model, which is the card's

    friend auto operator<=>(const label&, const label&) = default;
  };
  struct state {
    seconds begin = 0;
    const std::string* model = nullptr;
    std::int64_t cores = 0, memory_mib = 0;
    bool healthy = true, there = true;
  };
  struct stretch {
    seconds begin = 0, end = open;
    std::int64_t cores = 0, memory_mib = 0;
    std::uint64_t holding = 0;     ///< 0: it has ended
    const label* owner = nullptr;  ///< null: no one's
  };
  struct timeline {
    std::vector<state> states;       ///< by time; the first counts from the beginning of what is not settled
    std::vector<stretch> stretches;  ///< who holds a part of it
  };
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  template <class T>
  using by_name = std::unordered_map<std::string, T, hash, std::equal_to<>>;
  struct part {
    timeline* card = nullptr;
    std::int64_t cores = 0, memory_mib = 0;
    const label* owner = nullptr;

    friend bool operator==(const part&, const part&) = default;
  };
  struct holding {
    std::uint64_t number = 0;
    seconds begin = 0;
    std::vector<part> parts;
  };
  using holdings = by_name<holding>;

  std::vector<part> parts_of(const usage_holder& holder);
  static void close(const holding& held, seconds time);
  struct settling {
    settlement done;
    std::vector<timeline*> waiting;  ///< cards that are not summed up yet; they stay until `take_settled`
  };

  void settle(const timeline& line, seconds begin, seconds end, sums& out) const;
  void forget(timeline& line) const;
  void drop_unused();

  seconds start_, settled_ = 0;
  std::uint64_t last_number_ = 0;
  std::set<std::string, std::less<>> models_;
  std::set<label> labels_;
  by_name<timeline> cards_;
  holdings holdings_;
  std::optional<settling> settling_;
};

}  // namespace quota
