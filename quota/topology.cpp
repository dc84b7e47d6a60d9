#include "quota/topology.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

namespace quota {
namespace {

using index = std::uint8_t;

/// Sets of free cards, of which the best so far is kept. Indexes are in the list of free cards.
class choice {
 public:
  choice(const node& on, std::span<const index> free, std::size_t cards)
      : on_(on), free_(free.first(std::min(free.size(), max_cards))), wanted_(cards) {
    for (std::size_t a = 0; a < free_.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) best_pair_ = std::max(best_pair_, between(a, b));
  }

  void every(std::size_t from, int sum) {
    if (size_ == wanted_) {
      offer(sum);
      return;
    }
    const auto missing = static_cast<int>(wanted_ - size_), have = static_cast<int>(size_);
    const int pairs = missing * have + missing * (missing - 1) / 2;
    if (found_ && sum + pairs * best_pair_ < best_sum_) return;
    for (auto at = from; at + (wanted_ - size_) <= free_.size(); ++at) {
      const int more = to_chosen(at);
      chosen_[size_++] = static_cast<index>(at);
      every(at + 1, sum + more);
      --size_;
    }
  }

  void grown() {
    for (std::size_t seed = 0; seed < free_.size(); ++seed) {
      size_ = 0;
      int sum = 0;
      chosen_[size_++] = static_cast<index>(seed);
      while (size_ < wanted_) {
        std::size_t next = free_.size();
        int most = -1;
        for (std::size_t at = 0; at < free_.size(); ++at)
          if (!has(at) && to_chosen(at) > most) next = at, most = to_chosen(at);
        chosen_[size_++] = static_cast<index>(next);
        sum += most;
      }
      const auto as_grown = chosen_;
      std::ranges::sort(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(size_));
      offer(sum);
      chosen_ = as_grown;
    }
  }

  void give(std::span<index> out) const {
    for (std::size_t i = 0; i < wanted_; ++i) out[i] = free_[best_[i]];
  }

 private:
  int between(std::size_t a, std::size_t b) const { return quality(on_.between(free_[a], free_[b])); }
  bool has(std::size_t at) const { return std::ranges::find(now(), at) != now().end(); }
  std::span<const index> now() const { return std::span{chosen_}.first(size_); }
  int to_chosen(std::size_t at) const {
    int sum = 0;
    for (const index one : now()) sum += between(at, one);
    return sum;
  }

  void offer(int sum) {
    if (found_ && sum < best_sum_) return;
    std::int64_t memory = 0;
    int cut = 0;
    std::array<std::int32_t, max_cards> numa;
    std::size_t numas = 0;
    for (const index one : now()) {
      const card& of = on_.cards[free_[one]];
      memory += of.memory_mib;
      if (std::ranges::find(numa.begin(), numa.begin() + static_cast<std::ptrdiff_t>(numas), of.numa) ==
          numa.begin() + static_cast<std::ptrdiff_t>(numas))
        numa[numas++] = of.numa;
    }
    for (std::size_t at = 0; at < free_.size(); ++at)
      if (!has(at)) cut += to_chosen(at);
    const std::tuple rest{numas, memory, cut};
    const bool better =
        !found_ || sum > best_sum_ || rest < best_rest_ ||
        (rest == best_rest_ && std::ranges::lexicographical_compare(now(), std::span{best_}.first(wanted_)));
    if (!better) return;
    found_ = true;
    best_sum_ = sum;
    best_rest_ = rest;
    best_ = chosen_;
  }

  const node& on_;
  std::span<const index> free_;
  std::size_t wanted_, size_ = 0;
  std::array<index, max_cards> chosen_, best_;
  int best_pair_ = 0, best_sum_ = 0;
  std::tuple<std::size_t, std::int64_t, int> best_rest_;
  bool found_ = false;
};

}  // namespace

int quality(const link& of) { return static_cast<int>(of.pci) * 10 + of.nvlinks * 100; }

std::size_t best_together(const node& on, std::span<const std::uint8_t> free, std::size_t cards,
                          std::span<std::uint8_t> out) {
  if (cards == 0 || cards > free.size() || cards > out.size()) return 0;
  choice of{on, free, cards};
  if (free.size() <= exact_cards)
    of.every(0, 0);
  else
    of.grown();
  of.give(out);
  return cards;
}

bool knows_topology(const node& on) {
  return on.links.size() == on.cards.size() * on.cards.size() ||
         std::ranges::any_of(on.cards, [](const card& one) { return one.numa >= 0; });
}

}  // namespace quota
