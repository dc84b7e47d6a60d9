#include "quota/explain.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "quota/forecast.hpp"
#include "quota/units.hpp"

namespace quota {
namespace {

constexpr std::int64_t parts_of_whole = 1'000'000;
/// From here on fewer is always easier, in every vocabulary. Below lie the two rules by which it is not: 99 cores are a
/// share with its own memory where 100 are a card, and fewer cards of one amount of memory are more on each.
constexpr std::int64_t even = 100;

__extension__ using wide = __int128;

std::int64_t millionths(std::int64_t part, std::int64_t total) {
  const wide divisor = std::max<std::int64_t>(total, 1);
  return static_cast<std::int64_t>(std::min<wide>((wide{part} * parts_of_whole + divisor - 1) / divisor, INT64_MAX));
}
/// The largest part that is no larger than `size`.
std::int64_t part_of(std::int64_t size, std::int64_t total) {
  return static_cast<std::int64_t>(
      std::min<wide>(wide{size} * std::max<std::int64_t>(total, 1) / parts_of_whole, INT64_MAX));
}

auto order(const change& change) {
  const std::int64_t difference = change.action == change::kind::amount ? std::abs(change.current - change.amount) : 0;
  return std::tuple{change.size,      change.action,
                    change.container, change.limit,
                    difference,       change.action == change::kind::amount ? change.amount : 0,
                    change.node,      change.card.value_or(0)};
}

void keep(std::optional<change>& best, const change& candidate) {
  if (!best || order(candidate) < order(*best)) best = candidate;
}

/// Nothing that someone changes lets a pod run where it is to wait.
bool takes_pods(const node_view& view) { return view.inventory != nullptr && !view.inventory->changes_mode; }

/// A node with nothing on it and all its cards in use.
class bare_node {
 public:
  explicit bare_node(const node_view& view)
      : inventory_(*view.inventory), used_(view.used.size()), counts_(view.counts_used.size()) {
    for (card& card : inventory_.cards) card.healthy = true, card.cordoned = false;
  }
  shortfall lack(const demand& demand, const selector* only) const {
    return fit(demand, {&inventory_, used_, counts_}, {.only = only, .any_order = true});
  }

 private:
  node_inventory inventory_;
  std::vector<card_use> used_;
  std::vector<std::int64_t> counts_;
};

/// Whether a node is too small for what it lacks now, and by how much.
void judge_size(cause& cause, const shortfall& bare) {
  const bool is_of_size = bare.code == reason::whole_cards || bare.code == reason::memory ||
                          bare.code == reason::cards || bare.code == reason::counted;
  if (!is_of_size || bare.available <= 0) return;
  cause.code = bare.code;
  cause.too_small = true;
  cause.needed = bare.needed;
  cause.available = bare.available;
}

/// What stands between the pod and one node: each container and counted key by itself, then all together.
std::vector<cause> causes_on(const demand& demanded, const node_view& view, const preferences& preferences) {
  std::vector<cause> out;
  const auto all = fit(demanded, view, preferences);
  if (all.fits()) return out;  // a container that the plugin alone would put elsewhere may fit next to the others
  const bare_node bare(view);
  demand only;
  for (const need& need : demanded.needs()) {
    only.clear();
    only.add(need);
    if (const auto no = fit(only, view, preferences); !no.fits()) {
      out.push_back({no.code, need.container, {}, 1});
      if (no.code == reason::cards) out.back().needed = no.needed, out.back().available = no.available;
      judge_size(out.back(), bare.lack(only, preferences.only));
    }
  }
  for (const counted_key& count : demanded.counts()) {
    only.clear();
    only.add(count);
    if (const auto no = fit(only, view, preferences); !no.fits()) {
      out.push_back({no.code, -1, count.key, 1});
      judge_size(out.back(), bare.lack(only, preferences.only));
    }
  }
  if (out.empty()) {
    out.push_back({all.code, -1, {}, 1});
    out.back().too_small =
        all.code == reason::together && bare.lack(demanded, preferences.only).code == reason::together;
  }
  return out;
}

/// The pod's amounts, one of them changed at a time.
class pod_amounts {
 public:
  pod_amounts(std::span<const limits> pod, std::span<const node_view> nodes, const selector* only)
      : nodes_(nodes), only_(only) {
    for (const limits& limits : pod) values_.emplace_back(limits.begin(), limits.end());
    views_.assign(values_.begin(), values_.end());
    for (std::size_t i = 0; i < pod.size(); ++i) views_[i].init = pod[i].init;
  }

  std::optional<change> smallest() {
    for (container_ = 0; container_ < values_.size(); ++container_) {
      prospects_.assign(nodes_.size(), prospect::unknown);
      for (limit_ = 0; limit_ < values_[container_].size(); ++limit_) {
        const auto& now = values_[container_][limit_];
        current_ = now.value;
        if (current_ <= 0 || !now.key.contains('/')) continue;
        foretold_ = now.key.starts_with("tencent.com/vcuda-");
        for (node_ = 0; node_ < nodes_.size(); ++node_)
          if (takes_pods(nodes_[node_]) && may_help()) on_this_node();
        values_[container_][limit_].value = current_;
      }
    }
    return best_;
  }

 private:
  enum class answer : std::uint8_t { no, nothing_legal, fits };
  enum class prospect : std::uint8_t { unknown, none, some };

  /// Would the pod fit if this container asked for almost nothing? Most nodes are explained by this alone.
  bool may_help() {
    const auto key = values_[container_][limit_].key;
    if (!known(key) || key == "nvidia.com/priority") return true;
    prospect& here = prospects_[node_];
    if (here != prospect::unknown) return here == prospect::some;
    rest_.clear();
    for (const amount& value : values_[container_])
      if (!known(value.key)) rest_.push_back(value);
    const limits all = std::exchange(views_[container_], rest_);
    views_[container_].init = all.init;
    const bool read_it = !read(views_, nodes_[node_].inventory->serves, demand_);
    views_[container_] = all;
    // Takes neither memory nor cores, and needs some left, as everything does that runs next to the others.
    if (!all.init) demand_.add(need{.cards = 1, .container = static_cast<std::uint16_t>(container_)});
    here = read_it && fit(demand_, nodes_[node_], {.only = only_, .any_order = true}).fits() ? prospect::some
                                                                                             : prospect::none;
    return here == prospect::some;
  }

  void on_this_node() {
    if (const auto lower = lowered()) found(*lower);
    values_[container_][limit_].value = current_;
    const auto no = read(views_, nodes_[node_].inventory->serves, demand_);
    if (no && is_this(*no) && no->above > current_ && fits_with(no->above)) found(no->above);
  }

  bool is_this(const refusal& no) const {
    return no.kind == wrong::not_legal && no.container == container_ && no.key == values_[container_][limit_].key;
  }

  /// The largest amount below that fits, where it may still be the smallest change.
  /// Of bytes that were written where the key counts units of memory: nothing above what they come to.
  std::optional<std::int64_t> lowered() {
    std::int64_t least = 1;
    const auto meant = units_meant(values_[container_][limit_].key, current_);
    const auto upper = meant > 0 ? std::min(meant, current_ - 1) : current_ - 1;
    if (best_) least = std::max(least, current_ - part_of(best_->size, current_));
    auto out = largest(std::max(least, even), upper);
    // The one amount that has to be equal to another: vcuda-core and its limit, for whole cards.
    for (const amount& other : values_[container_])
      if (other.value >= std::max({least, even, out.value_or(0) + 1}) && other.value <= upper && fits_with(other.value))
        out = other.value;
    if (out) return out;
    if (values_[container_][limit_].key != card_count.name) return largest(least, std::min(upper, even - 1));
    for (auto target = std::min(upper, even - 1); !out && target >= least; --target)
      if (fits_with(target)) out = target;
    return out;
  }

  /// Where fewer is easier. Not so for what a plugin that chooses is asked: with less it may take another card, one
  /// that cannot be; there an amount that would fit on some card is gone down from step by step.
  std::optional<std::int64_t> largest(std::int64_t least, std::int64_t most) {
    if (!foretold_) return even_part(least, most, false);
    const auto bound = even_part(least, most, true);
    std::int64_t target = 0;
    for (auto start = bound.value_or(0); start >= least && start > 0; start = target - 1) {
      const auto result = nearest_legal(start, least, target, false);
      if (result == answer::fits) return target;
      if (result == answer::nothing_legal) break;
    }
    return {};
  }

  std::optional<std::int64_t> even_part(std::int64_t least, std::int64_t most, bool any_order) {
    std::int64_t target = 0;
    if (most < least || nearest_legal(least, least, target, any_order) == answer::no) return {};
    std::int64_t good = least, bad = most + 1;
    while (bad - good > 1) {
      const auto middle = good + (bad - good) / 2;
      (nearest_legal(middle, least, target, any_order) == answer::no ? bad : good) = middle;
    }
    return nearest_legal(good, least, target, any_order) == answer::fits ? std::optional{target} : std::nullopt;
  }

  /// Of the amount at or below `start` that the node takes.
  answer nearest_legal(std::int64_t start, std::int64_t least, std::int64_t& target, bool any_order) {
    for (target = start;;) {
      values_[container_][limit_].value = target;
      const auto no = read(views_, nodes_[node_].inventory->serves, demand_);
      if (!no) return fits_here(any_order) ? answer::fits : answer::no;
      if (!is_this(*no) || no->below >= target) return answer::no;
      if (no->below < least) return answer::nothing_legal;
      target = no->below;
    }
  }

  bool fits_here(bool any_order) const {
    return fit(demand_, nodes_[node_], {.only = only_, .any_order = any_order}).fits();
  }

  bool fits_with(std::int64_t target) {
    values_[container_][limit_].value = target;
    return !read(views_, nodes_[node_].inventory->serves, demand_) && fits_here(false);
  }

  void found(std::int64_t target) {
    change candidate{.action = change::kind::amount,
                     .container = static_cast<std::uint16_t>(container_),
                     .limit = limit_,
                     .key = values_[container_][limit_].key,
                     .current = current_,
                     .amount = target,
                     .node = node_,
                     .card = {},
                     .size = millionths(std::abs(current_ - target), current_)};
    if (best_ && order(*best_) <= order(candidate)) return;
    if (fits_with(target) && place(demand_, nodes_[node_], {.only = only_}, placement_).fits())
      candidate.card = only_card();
    best_ = candidate;
  }

  /// Of the placement, where the container has one card alone.
  std::optional<std::uint16_t> only_card() const {
    std::optional<std::uint16_t> out;
    for (const placed& part : placement_.all()) {
      if (part.container != container_) continue;
      if (out && *out != part.card) return std::nullopt;
      out = part.card;
    }
    return out;
  }

  std::vector<std::vector<amount>> values_;
  std::vector<limits> views_;
  std::vector<amount> rest_;  // what a container asks for apart from cards
  std::span<const node_view> nodes_;
  const selector* only_;
  std::vector<prospect> prospects_;  // of the container, by node
  bool foretold_ = false;            // the amount is one the plugin goes by
  std::size_t container_ = 0, limit_ = 0, node_ = 0;
  std::int64_t current_ = 0;
  demand demand_;
  placement placement_;
  std::optional<change> best_;
};

/// One thing of one node, for a pod it reads and has no room for.
class repairs {
 public:
  repairs(const selector* only, std::optional<change>& best) : only_(only), best_(best) {}

  void try_all(const demand& demand, const node_view& view, std::size_t index) {
    demand_ = &demand;
    view_ = &view;
    node_ = index;
    used_.assign(view.used.begin(), view.used.end());
    foretold_ =
        std::ranges::any_of(demand.needs(), [&](const need& need) { return forecast::chooses(need, *view.inventory); });
    const node_inventory& here = *view.inventory;
    const auto cards = std::min(used_.size(), max_cards);
    if (cards > 0 && here.cards.size() < max_cards && !better_card_helps()) return;
    for (std::size_t i = 0; i < cards; ++i) {
      const card& card = here.cards[i];
      if (card.usable() && used_[i].wholes == 0) {
        freed(change::kind::free_cores, i, view.used[i].cores, whole_card,
              [&](std::int64_t less) { used_[i].cores = view.used[i].cores - static_cast<std::int32_t>(less); });
        freed(change::kind::free_memory, i, view.used[i].memory_mib, card.memory_mib,
              [&](std::int64_t less) { used_[i].memory_mib = view.used[i].memory_mib - less; });
      }
      if (best_ && best_->size < parts_of_whole) continue;
      if (card.usable() && !used_[i].untouched()) {
        used_[i] = {};
        if (fits(here)) found(change::kind::empty_card, i, 0, parts_of_whole);
        used_[i] = view.used[i];
      }
      if (!card.mig && card.healthy == card.cordoned) repaired(i);
    }
    counted_keys();
    if ((best_ && best_->size < parts_of_whole) || cards == 0 || here.cards.size() >= max_cards) return;
    if (std::ranges::all_of(here.cards, &card::mig)) return;  // its plugin would cut one more as well
    more_ = here;
    more_.cards.push_back(*std::ranges::max_element(here.cards, {}, &card::memory_mib));
    more_.cards.back().uuid.clear();
    used_.emplace_back();
    more_.cards.back().healthy = true;
    more_.cards.back().cordoned = more_.cards.back().mig = false;
    if (fits(more_)) found(change::kind::add_card, {}, 0, parts_of_whole);
  }

 private:
  bool fits(const node_inventory& node, bool any_order = false) const {
    return fit(*demand_, {&node, used_, view_->counts_used}, {.only = only_, .any_order = any_order}).fits();
  }

  /// Whatever becomes of one card, it is no better than one more that is the best of all in everything.
  bool better_card_helps() {
    more_ = *view_->inventory;
    card best = more_.cards.front();
    best.healthy = true;
    best.cordoned = best.mig = false;
    for (const card& card : more_.cards) {
      best.memory_mib = std::max(best.memory_mib, card.memory_mib);
      best.memory_scale = std::max(best.memory_scale, card.memory_scale);
      best.max_sharers = std::max(best.max_sharers, card.max_sharers);
    }
    more_.cards.push_back(best);
    used_.emplace_back();
    needs_.clear();
    for (const need& need : demand_->needs()) needs_.add(need);
    const bool helps = fit(needs_, {&more_, used_, {}}, {.any_order = true}).fits();
    used_.pop_back();
    return helps;
  }

  void found(change::kind kind, std::optional<std::size_t> card, std::int64_t amount, std::int64_t size) {
    change change{.action = kind, .amount = amount, .node = node_, .card = {}, .size = size};
    if (card) change.card = static_cast<std::uint16_t>(*card);
    keep(best_, change);
  }

  template <class Less>
  void freed(change::kind kind, std::size_t card, std::int64_t most, std::int64_t total, const Less& less) {
    if (best_) most = std::min(most, part_of(best_->size, total));
    if (most <= 0) return;
    const node_inventory& here = *view_->inventory;
    const auto smallest = [&](std::int64_t bad, std::int64_t good, bool any_order) {
      while (good - bad > 1) {
        const auto middle = bad + (good - bad) / 2;
        less(middle);
        (fits(here, any_order) ? good : bad) = middle;
      }
      return good;
    };
    less(most);
    if (fits(here, true)) {
      // The plugin may take another card once this one has more left, so what is enough on some card is gone up from,
      // by as much as it looks at: cores, or units of memory.
      auto start = smallest(0, most, true);
      while (start <= most) {
        const auto last = foretold_ ? last_alike(kind, card, start, most) : most;
        less(last);
        if (!fits(here)) {
          start = last + 1;
          continue;
        }
        const auto enough = smallest(start - 1, last, false);
        found(kind, card, enough, millionths(enough, total));
        break;
      }
    }
    less(0);
  }

  std::int64_t last_alike(change::kind kind, std::size_t card, std::int64_t start, std::int64_t most) const {
    if (kind == change::kind::free_cores) return start;
    const auto free = view_->inventory->cards[card].memory_mib - view_->used[card].memory_mib + start;
    const auto beyond = ((free % forecast::unit_mib) + forecast::unit_mib) % forecast::unit_mib;
    return std::min(most, start + forecast::unit_mib - 1 - beyond);
  }

  void repaired(std::size_t index) {
    more_ = *view_->inventory;
    const bool ill = !more_.cards[index].healthy;
    more_.cards[index].healthy = true;
    more_.cards[index].cordoned = false;
    if (fits(more_)) found(ill ? change::kind::heal_card : change::kind::uncordon_card, index, 0, parts_of_whole);
  }

  /// Only where one key is what is short.
  void counted_keys() {
    const node_inventory& here = *view_->inventory;
    for (const counted_key& entry : demand_->counts()) {
      const auto match =
          static_cast<std::size_t>(std::ranges::find(here.counts, entry.key, &count::key) - here.counts.begin());
      const bool there = match < here.counts.size();
      const auto missing = entry.amount - (there ? here.counts[match].amount - view_->counts_used[match] : 0);
      if (missing <= 0) continue;
      node_inventory node = here;
      std::vector<std::int64_t> taken(view_->counts_used.begin(), view_->counts_used.end());
      if (there)
        node.counts[match].amount += missing;
      else
        node.counts.push_back({std::string{entry.key}, missing}), taken.push_back(0);
      if (!fit(*demand_, {&node, used_, taken}, {.only = only_}).fits()) return;
      keep(best_, {.action = change::kind::free_counted,
                   .key = entry.key,
                   .amount = missing,
                   .node = node_,
                   .card = {},
                   .size = millionths(missing, entry.amount)});
      return;
    }
  }

  const demand* demand_ = nullptr;
  const node_view* view_ = nullptr;
  std::size_t node_ = 0;
  const selector* only_;
  std::optional<change>& best_;
  std::vector<card_use> used_;
  bool foretold_ = false;
  demand needs_;
  node_inventory more_;  // the node with something changed; kept, so that its strings are allocated once
};

}  // namespace

bool cause::is_like(const cause& other) const {
  const auto facts = [](const cause& cause) {
    const auto no = cause.refused.value_or(refusal{});
    return std::tuple{cause.code, cause.container, cause.key, cause.too_small, no.kind,
                      no.key,     no.value,        no.other,  no.legal};
  };
  return facts(*this) == facts(other);
}

const change* explanation::smallest() const {
  if (!of_pod || !of_node) return of_pod ? &*of_pod : of_node ? &*of_node : nullptr;
  return of_node->size < of_pod->size ? &*of_node : &*of_pod;
}

namespace {

cause cause_of(const refusal& no) {
  cause out{reason_of(no), no.container, no.key, 1};
  if (out.code == reason::refused) out.refused = no;
  return out;
}

}  // namespace

explanation explain(std::span<const limits> pod, std::span<const node_view> nodes, const selector* only) {
  explanation out{.nodes = nodes.size(), .fitting = 0, .causes = {}, .of_pod = {}, .of_node = {}, .nearest = {}};
  std::size_t fewest = SIZE_MAX;
  demand demand;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<cause> here;
    if (nodes[i].inventory == nullptr)
      here.push_back({reason::no_node, -1, {}, 1});
    else if (nodes[i].inventory->changes_mode)
      here.push_back({reason::changes_mode, -1, {}, 1});
    else if (const auto no = read(pod, nodes[i].inventory->serves, demand))
      here.push_back(cause_of(*no));
    else if (here = causes_on(demand, nodes[i], {.only = only}); here.empty())
      ++out.fitting;
    else if (here.size() < fewest)
      fewest = here.size(), out.nearest = i;
    for (const cause& entry : here) {
      const auto same = std::ranges::find_if(out.causes, [&](const cause& other) { return entry.is_like(other); });
      if (same == out.causes.end())
        out.causes.push_back(entry);
      else
        ++same->nodes, same->available = std::max(same->available, entry.available);
    }
  }
  std::ranges::sort(out.causes, {}, [](const cause& cause) {
    const auto no = cause.refused.value_or(refusal{});
    return std::tuple{-static_cast<std::int64_t>(cause.nodes),
                      cause.container,
                      cause.key,
                      cause.code,
                      cause.too_small,
                      no.kind,
                      no.legal,
                      no.other};
  });
  if (out.fitting > 0) {
    out.nearest.reset();
    return out;
  }
  out.faults = faults_among(pod, nodes);
  out.of_pod = pod_amounts{pod, nodes, only}.smallest();
  repairs of_nodes{only, out.of_node};
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (takes_pods(nodes[i]) && !read(pod, nodes[i].inventory->serves, demand)) of_nodes.try_all(demand, nodes[i], i);
  if (const auto* const first = out.smallest()) out.nearest = first->node;
  return out;
}

}  // namespace quota
