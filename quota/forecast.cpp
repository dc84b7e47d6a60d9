#include "quota/forecast.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>

namespace quota::forecast {
namespace {

constexpr std::size_t max_leaves = 32;  // its masks are as wide
constexpr int root = -1;

/// The tree the plugin builds from the PCI paths between cards (its pkg/device/nvidia/tree.go): one group of cards a
/// subtree, a group of a level above the groups of closer levels it meets.
class tree {
 public:
  tree(const node_inventory& node, std::uint32_t free) : cards_(static_cast<unsigned>(node.cards.size())), free_(free) {
    for (unsigned a = 0; a < cards_; ++a)
      for (unsigned b = a + 1; b < cards_; ++b) join(level_of(node.between(a, b).pci), bit(a) | bit(b));
    parents_.fill(root);
    for (unsigned leaf = 0; leaf < cards_; ++leaf) climb(leaf);
  }

  /// Down from the root into the subtree with the fewest free cards that is enough.
  std::uint32_t for_one() const {
    int index = root;
    for (;;) {
      int next = index;
      for (int i = 0; i < size_; ++i)
        if (group(i).parent == index && count(i) > 0 && (next == index || count(i) < count(next))) next = i;
      if (next == index) return free_of(index);
      index = next;
    }
  }

  /// Up from each card to the first subtree that has enough; of those the closest, then the one with the fewest.
  std::uint32_t for_several(int cards) const {
    int best = root;
    const auto order = [&](int i) { return std::tuple{group(i).level, count(i), i}; };
    for (unsigned leaf = 0; leaf < cards_; ++leaf) {
      int index = parents_[leaf];
      while (index != root && count(index) < cards) index = group(index).parent;
      if (index != root && (best == root || order(index) < order(best))) best = index;
    }
    return free_of(best);
  }

 private:
  struct subtree {
    std::uint32_t cards = 0;
    int level = 0;
    int parent = root;
  };
  static constexpr int levels = 5;

  static std::uint32_t bit(unsigned position) { return std::uint32_t{1} << position; }
  /// 0 is the closest.
  static int level_of(path link) {
    return link == path::unknown ? levels - 1 : static_cast<int>(path::bridge) - static_cast<int>(link);
  }
  const subtree& group(int index) const { return groups_[static_cast<std::size_t>(index)]; }
  std::uint32_t free_of(int index) const { return index == root ? free_ : group(index).cards & free_; }
  int count(int index) const { return std::popcount(free_of(index)); }

  void join(int level, std::uint32_t cards) {
    for (int i = 0; i < size_; ++i)
      if (auto& group = groups_[static_cast<std::size_t>(i)]; group.level == level && (group.cards & cards) != 0) {
        group.cards |= cards;
        return;
      }
    groups_[static_cast<std::size_t>(size_++)] = {.cards = cards, .level = level, .parent = root};
  }

  void climb(unsigned leaf) {
    std::uint32_t self = bit(leaf);
    int below = root;
    for (int level = 0; level < levels; ++level)
      for (int i = 0; i < size_; ++i) {
        if (group(i).level != level || (group(i).cards & self) == 0) continue;
        (below == root ? parents_[leaf] : groups_[static_cast<std::size_t>(below)].parent) = i;
        below = i;
        self = group(i).cards;
        break;
      }
  }

  unsigned cards_;
  std::uint32_t free_;
  std::array<int, max_leaves> parents_;
  // Two groups of one level share no card where a path through a third is no shorter than either part, as PCI's are;
  // where someone says otherwise there may be a group for every two cards.
  std::array<subtree, max_leaves * max_leaves / 2> groups_;
  int size_ = 0;
};

std::size_t share(const need& need, const node_inventory& node, std::span<const card_use> used,
                  std::span<std::uint8_t> out) {
  using order = std::tuple<std::int32_t, std::int64_t, std::int32_t>;
  std::size_t best = SIZE_MAX;
  order least;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const auto cores = used[i].wholes > 0 ? 0 : std::max(whole_card - used[i].cores, 0);
    const auto memory =
        used[i].wholes > 0 ? 0 : std::max<std::int64_t>(node.cards[i].memory_mib - used[i].memory_mib, 0);
    if (cores < need.cores || memory < need.memory_mib) continue;
    const order now{cores, memory / unit_mib, used[i].sharers};
    if (best == SIZE_MAX || now < least) best = i, least = now;
  }
  if (best == SIZE_MAX) return 0;
  out[0] = static_cast<std::uint8_t>(best);
  return 1;
}

}  // namespace

std::size_t choose(const need& need, const node_inventory& node, std::span<const card_use> used,
                   std::span<std::uint8_t> out) {
  if (!need.whole) return share(need, node, used, out);
  if (need.cards > used.size() || need.cards > out.size()) return 0;
  std::size_t found = 0;
  if (used.size() > max_leaves || node.links.size() != node.cards.size() * node.cards.size()) {
    for (std::size_t i = 0; i < used.size() && found < need.cards; ++i)
      if (used[i].untouched()) out[found++] = static_cast<std::uint8_t>(i);
    return found == need.cards ? found : 0;
  }
  std::uint32_t free = 0;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i].untouched()) free |= std::uint32_t{1} << i;
  if (std::popcount(free) < static_cast<int>(need.cards)) return 0;
  const tree tree{node, free};
  auto chosen = need.cards == 1 ? tree.for_one() : tree.for_several(static_cast<int>(need.cards));
  for (; chosen != 0 && found < need.cards; chosen &= chosen - 1)
    out[found++] = static_cast<std::uint8_t>(std::countr_zero(chosen));
  return found;
}

}  // namespace quota::forecast
