#include "quota/filter.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace quota {
namespace {

/// What is given out of the usable cards, and what they have, in hundredths of a card.
struct load {
  std::int64_t used = 0, of = 0;
};

std::int64_t hundredths(const card& of, const card_use& now) {
  if (now.wholes > 0) return whole_card;
  std::int64_t most = now.cores;
  if (const auto all = of.lendable_mib(); all > 0) most = std::max(most, now.memory_mib * 100 / all);
  if (of.max_sharers > 0) most = std::max<std::int64_t>(most, std::int64_t{now.sharers} * 100 / of.max_sharers);
  return std::clamp<std::int64_t>(most, 0, whole_card);
}

/// Reads the pod once for each kind of service; the oldest reading makes room where there are many kinds.
class reader {
 public:
  explicit reader(std::span<const limits> pod) : pod_(pod) {}

  const demand* on(const service& of) {
    if (size_ == 0 || !(readings_[last_].of == of)) last_ = find_or_read(of);
    const auto& now = readings_[last_];
    return now.no ? nullptr : &now.what;
  }
  /// Of the last `on`.
  shortfall refused() const {
    const refusal no = readings_[last_].no.value_or(refusal{});
    return {.why = reason_of(no), .container = no.container, .needed = no.value, .available = 0, .key = no.key};
  }

 private:
  struct reading {
    service of;
    demand what;
    std::optional<refusal> no;
  };

  std::size_t find_or_read(const service& of) {
    for (std::size_t i = 0; i < size_; ++i)
      if (readings_[i].of == of) return i;
    const auto at = size_ < readings_.size() ? size_++ : oldest_++ % readings_.size();
    readings_[at].of = of;
    readings_[at].no = read(pod_, of, readings_[at].what);
    return at;
  }

  std::span<const limits> pod_;
  std::array<reading, 6> readings_;
  std::size_t size_ = 0, oldest_ = 0, last_ = 0;
};

}  // namespace

int score(const placement& where, const node_view& on, policy how) {
  std::array<card_use, max_cards> used;
  const auto cards = std::min(on.used.size(), max_cards);
  std::ranges::copy(on.used.first(cards), used.begin());
  bool opens = false;
  for (const placed& one : where.all()) {
    card_use& now = used[one.card];
    opens |= !one.whole && on.used[one.card].untouched();
    if (one.whole) {
      ++now.wholes;
      continue;
    }
    ++now.sharers;
    now.cores += one.cores;
    now.memory_mib += one.memory_mib;
  }
  load all;
  for (std::size_t i = 0; i < cards; ++i) {
    if (!on.what->cards[i].usable()) continue;
    all.of += whole_card;
    all.used += hundredths(on.what->cards[i], used[i]);
  }
  if (all.of == 0) return 0;
  if (on.what->placement.value_or(how) == policy::spread) return static_cast<int>(10 * (all.of - all.used) / all.of);
  return static_cast<int>(9 * all.used / all.of) + (opens ? 0 : 1);
}

std::int64_t fragmentation(const node_view& on) {
  std::int64_t left = 0;
  if (on.what == nullptr) return left;
  for (std::size_t i = 0; i < std::min(on.used.size(), max_cards); ++i)
    if (on.what->cards[i].usable() && on.used[i].sharers > 0 && on.used[i].wholes == 0)
      left += whole_card - hundredths(on.what->cards[i], on.used[i]);
  return left;
}

void filter(std::span<const limits> pod, std::span<const node_view> nodes, std::span<shortfall> out,
            const selector* only) {
  reader what{pod};
  for (std::size_t i = 0; i < nodes.size() && i < out.size(); ++i) {
    if (nodes[i].what == nullptr) {
      out[i] = {.why = reason::no_node};
      continue;
    }
    const demand* const needs = what.on(nodes[i].what->serves);
    out[i] = needs == nullptr ? what.refused() : fit(*needs, nodes[i], {.only = only});
  }
}

void score(std::span<const limits> pod, std::span<const node_view> nodes, policy how, std::span<std::uint8_t> out,
           const selector* only) {
  reader what{pod};
  placement where;
  for (std::size_t i = 0; i < nodes.size() && i < out.size(); ++i) {
    out[i] = 0;
    if (nodes[i].what == nullptr) continue;
    const demand* const needs = what.on(nodes[i].what->serves);
    if (needs != nullptr && place(*needs, nodes[i], {.how = how, .only = only}, where).fits())
      out[i] = static_cast<std::uint8_t>(score(where, nodes[i], how));
  }
}

}  // namespace quota
