#include "quota/filter.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace quota {
namespace {

/// What is given out of the usable cards, and what they have, in hundredths of a card.
struct load {
  std::int64_t used = 0, total = 0;
};

std::int64_t hundredths(const card& card, const card_use& now) {
  if (now.wholes > 0) return whole_card;
  std::int64_t most = now.cores;
  if (const auto all = card.lendable_mib(); all > 0) most = std::max(most, now.memory_mib * 100 / all);
  if (card.max_sharers > 0) most = std::max<std::int64_t>(most, std::int64_t{now.sharers} * 100 / card.max_sharers);
  return std::clamp<std::int64_t>(most, 0, whole_card);
}

/// Reads the pod once for each kind of service; the oldest reading makes room where there are many kinds.
class pod_reader {
 public:
  explicit pod_reader(std::span<const limits> pod) : pod_(pod) {}

  const demand* on(const service& service) {
    if (size_ == 0 || !(readings_[last_].offer == service)) last_ = find_or_read(service);
    const auto& now = readings_[last_];
    return now.no ? nullptr : &now.pod_demand;
  }
  /// Of the last `on`.
  shortfall refused() const {
    const refusal no = readings_[last_].no.value_or(refusal{});
    return {.code = reason_of(no), .container = no.container, .needed = no.value, .available = 0, .key = no.key};
  }

 private:
  struct reading {
    service offer;
    demand pod_demand;
    std::optional<refusal> no;
  };

  std::size_t find_or_read(const service& service) {
    for (std::size_t i = 0; i < size_; ++i)
      if (readings_[i].offer == service) return i;
    const auto position = size_ < readings_.size() ? size_++ : oldest_++ % readings_.size();
    readings_[position].offer = service;
    readings_[position].no = read(pod_, service, readings_[position].pod_demand);
    return position;
  }

  std::span<const limits> pod_;
  std::array<reading, 6> readings_;
  std::size_t size_ = 0, oldest_ = 0, last_ = 0;
};

}  // namespace

int score(const placement& placement, const node_view& view, policy default_policy) {
  std::array<card_use, max_cards> used;
  const auto cards = std::min(view.used.size(), max_cards);
  std::ranges::copy(view.used.first(cards), used.begin());
  bool opens = false;
  for (const placed& place : placement.all()) {
    card_use& now = used[place.card];
    opens |= !place.whole && view.used[place.card].untouched();
    if (place.whole) {
      ++now.wholes;
      continue;
    }
    ++now.sharers;
    now.cores += place.cores;
    now.memory_mib += place.memory_mib;
  }
  load all;
  for (std::size_t i = 0; i < cards; ++i) {
    if (!view.inventory->cards[i].usable()) continue;
    all.total += whole_card;
    all.used += hundredths(view.inventory->cards[i], used[i]);
  }
  if (all.total == 0) return 0;
  if (view.inventory->placement.value_or(default_policy) == policy::spread)
    return static_cast<int>(10 * (all.total - all.used) / all.total);
  return static_cast<int>(9 * all.used / all.total) + (opens ? 0 : 1);
}

std::int64_t fragmentation(const node_view& view) {
  std::int64_t left = 0;
  if (view.inventory == nullptr) return left;
  for (std::size_t i = 0; i < std::min(view.used.size(), max_cards); ++i)
    if (view.inventory->cards[i].usable() && view.used[i].sharers > 0 && view.used[i].wholes == 0)
      left += whole_card - hundredths(view.inventory->cards[i], view.used[i]);
  return left;
}

void filter(std::span<const limits> pod, std::span<const node_view> nodes, std::span<shortfall> out,
            const selector* only) {
  pod_reader reader{pod};
  for (std::size_t i = 0; i < nodes.size() && i < out.size(); ++i) {
    if (nodes[i].inventory == nullptr) {
      out[i] = {.code = reason::no_node};
      continue;
    }
    if (nodes[i].inventory->changes_mode) {  // what it does not serve now it may serve in a moment
      out[i] = {.code = reason::changes_mode};
      continue;
    }
    const demand* const needs = reader.on(nodes[i].inventory->serves);
    out[i] = needs == nullptr ? reader.refused() : fit(*needs, nodes[i], {.only = only});
  }
}

void score(std::span<const limits> pod, std::span<const node_view> nodes, policy policy, std::span<std::uint8_t> out,
           const selector* only) {
  pod_reader reader{pod};
  placement placement;
  for (std::size_t i = 0; i < nodes.size() && i < out.size(); ++i) {
    out[i] = 0;
    if (nodes[i].inventory == nullptr) continue;
    const demand* const needs = reader.on(nodes[i].inventory->serves);
    if (needs != nullptr && place(*needs, nodes[i], {.default_policy = policy, .only = only}, placement).fits())
      out[i] = static_cast<std::uint8_t>(score(placement, nodes[i], policy));
  }
}

}  // namespace quota
