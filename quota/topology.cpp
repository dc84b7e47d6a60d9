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
  choice(const node_inventory& node, std::span<const index> free, std::size_t cards)
      : node_(node), free_(free.first(std::min(free.size(), max_cards))), wanted_(cards) {
    for (std::size_t a = 0; a < free_.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) best_pair_ = std::max(best_pair_, between(a, b));
  }

  void every(std::size_t start, int sum) {
    if (size_ == wanted_) {
      offer(sum);
      return;
    }
    const auto missing = static_cast<int>(wanted_ - size_), have = static_cast<int>(size_);
    const int pairs = missing * have + missing * (missing - 1) / 2;
    if (found_ && sum + pairs * best_pair_ < best_sum_) return;
    for (auto position = start; position + (wanted_ - size_) <= free_.size(); ++position) {
      const int more = to_chosen(position);
      chosen_[size_++] = static_cast<index>(position);
      every(position + 1, sum + more);
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
        for (std::size_t index = 0; index < free_.size(); ++index)
          if (!has(index) && to_chosen(index) > most) next = index, most = to_chosen(index);
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
  int between(std::size_t a, std::size_t b) const { return quality(node_.between(free_[a], free_[b])); }
  bool has(std::size_t index) const { return std::ranges::find(now(), index) != now().end(); }
  std::span<const index> now() const { return std::span{chosen_}.first(size_); }
  int to_chosen(std::size_t position) const {
    int sum = 0;
    for (const index index : now()) sum += between(position, index);
    return sum;
  }

  void offer(int sum) {
    if (found_ && sum < best_sum_) return;
    std::int64_t memory = 0;
    int cut = 0;
    std::array<std::int32_t, max_cards> numa;
    std::size_t numas = 0;
    for (const index index : now()) {
      const card& card = node_.cards[free_[index]];
      memory += card.memory_mib;
      if (std::ranges::find(numa.begin(), numa.begin() + static_cast<std::ptrdiff_t>(numas), card.numa) ==
          numa.begin() + static_cast<std::ptrdiff_t>(numas))
        numa[numas++] = card.numa;
    }
    for (std::size_t index = 0; index < free_.size(); ++index)
      if (!has(index)) cut += to_chosen(index);
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

  const node_inventory& node_;
  std::span<const index> free_;
  std::size_t wanted_, size_ = 0;
  std::array<index, max_cards> chosen_, best_;
  int best_pair_ = 0, best_sum_ = 0;
  std::tuple<std::size_t, std::int64_t, int> best_rest_;
  bool found_ = false;
};

}  // namespace

int quality(const link& link) { return static_cast<int>(link.pci) * 10 + link.nvlinks * 100; }

std::size_t best_together(const node_inventory& node, std::span<const std::uint8_t> free, std::size_t cards,
                          std::span<std::uint8_t> out) {
  if (cards == 0 || cards > free.size() || cards > out.size()) return 0;
  choice choice{node, free, cards};
  if (free.size() <= exact_cards)
    choice.every(0, 0);
  else
    choice.grown();
  choice.give(out);
  return cards;
}

bool knows_topology(const node_inventory& node) {
  return node.links.size() == node.cards.size() * node.cards.size() ||
         std::ranges::any_of(node.cards, [](const card& card) { return card.numa >= 0; });
}

}  // namespace quota
