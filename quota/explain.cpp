#include "quota/explain.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "quota/gpu_manager.hpp"

namespace quota {
namespace {

constexpr std::int64_t whole = 1'000'000;
/// From here on fewer is always easier, in every vocabulary. Below lie the two rules by which it is not: 99 cores are a
/// share with its own memory where 100 are a card, and fewer cards of one amount of memory are more on each.
constexpr std::int64_t even = 100;

__extension__ using wide = __int128;

std::int64_t millionths(std::int64_t part, std::int64_t of) {
  const wide one = std::max<std::int64_t>(of, 1);
  return static_cast<std::int64_t>(std::min<wide>((wide{part} * whole + one - 1) / one, INT64_MAX));
}
/// The largest part that is no larger than `size`.
std::int64_t part_of(std::int64_t size, std::int64_t of) {
  return static_cast<std::int64_t>(std::min<wide>(wide{size} * std::max<std::int64_t>(of, 1) / whole, INT64_MAX));
}

auto order(const change& of) {
  const std::int64_t difference = of.what == change::kind::amount ? std::abs(of.from - of.to) : 0;
  return std::tuple{of.size,      of.what,
                    of.container, of.limit,
                    difference,   of.what == change::kind::amount ? of.to : 0,
                    of.node,      of.card.value_or(0)};
}

void keep(std::optional<change>& best, const change& one) {
  if (!best || order(one) < order(*best)) best = one;
}

/// What stands between the pod and one node: each container and counted key by itself, then all together.
std::vector<cause> causes_on(const demand& what, const node_view& on, const wish& as) {
  std::vector<cause> out;
  const auto all = fit(what, on, as);
  if (all.fits()) return out;  // a container that gpu-manager alone would put elsewhere may fit beside the others
  demand only;
  for (const need& one : what.needs()) {
    only.clear();
    only.add(one);
    if (const auto no = fit(only, on, as); !no.fits()) out.push_back({no.why, one.container, {}, 1});
  }
  for (const counted& one : what.counts()) {
    only.clear();
    only.add(one);
    if (const auto no = fit(only, on, as); !no.fits()) out.push_back({no.why, -1, one.key, 1});
  }
  if (out.empty()) out.push_back({all.why, -1, {}, 1});
  return out;
}

/// The pod's amounts, one of them changed at a time.
class amounts {
 public:
  amounts(std::span<const limits> pod, std::span<const node_view> nodes, const selector* only)
      : nodes_(nodes), only_(only) {
    for (const limits& one : pod) values_.emplace_back(one.begin(), one.end());
    views_.assign(values_.begin(), values_.end());
    for (std::size_t i = 0; i < pod.size(); ++i) views_[i].init = pod[i].init;
  }

  std::optional<change> smallest() {
    for (container_ = 0; container_ < values_.size(); ++container_) {
      hope_.assign(nodes_.size(), hope::unknown);
      for (limit_ = 0; limit_ < values_[container_].size(); ++limit_) {
        const auto& now = values_[container_][limit_];
        from_ = now.value;
        if (from_ <= 0 || !now.key.contains('/')) continue;
        foretold_ = now.key.starts_with("tencent.com/vcuda-");
        for (node_ = 0; node_ < nodes_.size(); ++node_)
          if (nodes_[node_].what != nullptr && may_help()) on_this_node();
        values_[container_][limit_].value = from_;
      }
    }
    return best_;
  }

 private:
  enum class answer : std::uint8_t { no, nothing_legal, fits };
  enum class hope : std::uint8_t { unknown, none, some };

  /// Would the pod fit if this container asked for next to nothing? Most nodes are told by this alone.
  bool may_help() {
    const auto key = values_[container_][limit_].key;
    if (!known(key) || key == "nvidia.com/priority") return true;
    hope& here = hope_[node_];
    if (here != hope::unknown) return here == hope::some;
    rest_.clear();
    for (const amount& one : values_[container_])
      if (!known(one.key)) rest_.push_back(one);
    const limits all = std::exchange(views_[container_], rest_);
    views_[container_].init = all.init;
    const bool read_it = !read(views_, nodes_[node_].what->serves, what_);
    views_[container_] = all;
    // Takes neither memory nor cores, and needs some left, as everything does that runs beside the others.
    if (!all.init) what_.add(need{.cards = 1, .container = static_cast<std::uint16_t>(container_)});
    here = read_it && fit(what_, nodes_[node_], {.only = only_, .any_order = true}).fits() ? hope::some : hope::none;
    return here == hope::some;
  }

  void on_this_node() {
    if (const auto lower = lowered()) found(*lower);
    values_[container_][limit_].value = from_;
    const auto no = read(views_, nodes_[node_].what->serves, what_);
    if (no && is_this(*no) && no->above > from_ && fits_with(no->above)) found(no->above);
  }

  bool is_this(const refusal& no) const {
    return no.what == wrong::not_legal && no.container == container_ && no.key == values_[container_][limit_].key;
  }

  /// The largest amount below that fits, where it may still be the smallest change.
  std::optional<std::int64_t> lowered() {
    std::int64_t least = 1;
    if (best_) least = std::max(least, from_ - part_of(best_->size, from_));
    auto out = largest(std::max(least, even), from_ - 1);
    // The one amount that has to be equal to another: vcuda-core and its limit, for whole cards.
    for (const amount& other : values_[container_])
      if (other.value >= std::max({least, even, out.value_or(0) + 1}) && other.value < from_ && fits_with(other.value))
        out = other.value;
    if (out) return out;
    if (values_[container_][limit_].key != "aliyun.com/gpu-count") return largest(least, std::min(from_ - 1, even - 1));
    for (auto to = std::min(from_ - 1, even - 1); !out && to >= least; --to)
      if (fits_with(to)) out = to;
    return out;
  }

  /// Where fewer is easier. Not so for what gpu-manager is asked: with less it may take another card, one that cannot
  /// be; there an amount that would fit on some card is gone down from step by step.
  std::optional<std::int64_t> largest(std::int64_t least, std::int64_t most) {
    if (!foretold_) return even_part(least, most, false);
    const auto bound = even_part(least, most, true);
    std::int64_t to = 0;
    for (auto from = bound.value_or(0); from >= least && from > 0; from = to - 1) {
      const auto said = nearest_legal(from, least, to, false);
      if (said == answer::fits) return to;
      if (said == answer::nothing_legal) break;
    }
    return {};
  }

  std::optional<std::int64_t> even_part(std::int64_t least, std::int64_t most, bool any_order) {
    std::int64_t to = 0;
    if (most < least || nearest_legal(least, least, to, any_order) == answer::no) return {};
    std::int64_t good = least, bad = most + 1;
    while (bad - good > 1) {
      const auto middle = good + (bad - good) / 2;
      (nearest_legal(middle, least, to, any_order) == answer::no ? bad : good) = middle;
    }
    return nearest_legal(good, least, to, any_order) == answer::fits ? std::optional{to} : std::nullopt;
  }

  /// Of the amount at or below `from` that the node takes.
  answer nearest_legal(std::int64_t from, std::int64_t least, std::int64_t& to, bool any_order) {
    for (to = from;;) {
      values_[container_][limit_].value = to;
      const auto no = read(views_, nodes_[node_].what->serves, what_);
      if (!no) return fits_here(any_order) ? answer::fits : answer::no;
      if (!is_this(*no) || no->below >= to) return answer::no;
      if (no->below < least) return answer::nothing_legal;
      to = no->below;
    }
  }

  bool fits_here(bool any_order) const {
    return fit(what_, nodes_[node_], {.only = only_, .any_order = any_order}).fits();
  }

  bool fits_with(std::int64_t to) {
    values_[container_][limit_].value = to;
    return !read(views_, nodes_[node_].what->serves, what_) && fits_here(false);
  }

  void found(std::int64_t to) {
    change one{.what = change::kind::amount,
               .container = static_cast<std::uint16_t>(container_),
               .limit = limit_,
               .key = values_[container_][limit_].key,
               .from = from_,
               .to = to,
               .node = node_,
               .card = {},
               .size = millionths(std::abs(from_ - to), from_)};
    if (best_ && order(*best_) <= order(one)) return;
    if (fits_with(to) && place(what_, nodes_[node_], {.only = only_}, where_).fits())
      for (const placed& part : where_.all())
        if (part.container == container_ && !one.card) one.card = part.card;
    best_ = one;
  }

  std::vector<std::vector<amount>> values_;
  std::vector<limits> views_;
  std::vector<amount> rest_;  // what a container asks for beside cards
  std::span<const node_view> nodes_;
  const selector* only_;
  std::vector<hope> hope_;  // of the container, by node
  bool foretold_ = false;   // the amount is one gpu-manager goes by
  std::size_t container_ = 0, limit_ = 0, node_ = 0;
  std::int64_t from_ = 0;
  demand what_;
  placement where_;
  std::optional<change> best_;
};

/// One thing of one node, for a pod it reads and has no room for.
class repairs {
 public:
  repairs(const selector* only, std::optional<change>& best) : only_(only), best_(best) {}

  void try_all(const demand& what, const node_view& on, std::size_t at) {
    what_ = &what;
    on_ = &on;
    node_ = at;
    used_.assign(on.used.begin(), on.used.end());
    foretold_ = std::ranges::any_of(what.needs(), [&](const need& one) { return gpu_manager::chooses(one, *on.what); });
    const node& here = *on.what;
    const auto cards = std::min(used_.size(), max_cards);
    if (cards > 0 && here.cards.size() < max_cards && !better_card_helps()) return;
    for (std::size_t i = 0; i < cards; ++i) {
      const card& of = here.cards[i];
      if (of.usable() && used_[i].wholes == 0) {
        freed(change::kind::free_cores, i, on.used[i].cores, whole_card,
              [&](std::int64_t less) { used_[i].cores = on.used[i].cores - static_cast<std::int32_t>(less); });
        freed(change::kind::free_memory, i, on.used[i].memory_mib, of.memory_mib,
              [&](std::int64_t less) { used_[i].memory_mib = on.used[i].memory_mib - less; });
      }
      if (best_ && best_->size < whole) continue;
      if (of.usable() && !used_[i].untouched()) {
        used_[i] = {};
        if (fits(here)) found(change::kind::empty_card, i, 0, whole);
        used_[i] = on.used[i];
      }
      if (!of.mig && of.healthy == of.cordoned) repaired(i);
    }
    counted_keys();
    if ((best_ && best_->size < whole) || cards == 0 || here.cards.size() >= max_cards) return;
    more_ = here;
    more_.cards.push_back(*std::ranges::max_element(here.cards, {}, &card::memory_mib));
    more_.cards.back().uuid.clear();
    used_.emplace_back();
    more_.cards.back().healthy = true;
    more_.cards.back().cordoned = more_.cards.back().mig = false;
    if (fits(more_)) found(change::kind::add_card, {}, 0, whole);
  }

 private:
  bool fits(const node& as, bool any_order = false) const {
    return fit(*what_, {&as, used_, on_->counts_used}, {.only = only_, .any_order = any_order}).fits();
  }

  /// Whatever becomes of one card, it is no better than one more that is the best of all in everything.
  bool better_card_helps() {
    more_ = *on_->what;
    card best = more_.cards.front();
    best.healthy = true;
    best.cordoned = best.mig = false;
    for (const card& one : more_.cards) {
      best.memory_mib = std::max(best.memory_mib, one.memory_mib);
      best.memory_scale = std::max(best.memory_scale, one.memory_scale);
      best.max_sharers = std::max(best.max_sharers, one.max_sharers);
    }
    more_.cards.push_back(best);
    used_.emplace_back();
    needs_.clear();
    for (const need& one : what_->needs()) needs_.add(one);
    const bool helps = fit(needs_, {&more_, used_, {}}, {.any_order = true}).fits();
    used_.pop_back();
    return helps;
  }

  void found(change::kind what, std::optional<std::size_t> card, std::int64_t to, std::int64_t size) {
    change one{.what = what, .to = to, .node = node_, .card = {}, .size = size};
    if (card) one.card = static_cast<std::uint16_t>(*card);
    keep(best_, one);
  }

  template <class Less>
  void freed(change::kind what, std::size_t card, std::int64_t most, std::int64_t of, const Less& less) {
    if (best_) most = std::min(most, part_of(best_->size, of));
    if (most <= 0) return;
    const node& here = *on_->what;
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
      // gpu-manager may take another card once this one has more left, so what is enough on some card is gone up from,
      // by as much as it looks at: cores, or units of memory.
      auto from = smallest(0, most, true);
      while (from <= most) {
        const auto to = foretold_ ? last_alike(what, card, from, most) : most;
        less(to);
        if (!fits(here)) {
          from = to + 1;
          continue;
        }
        const auto enough = smallest(from - 1, to, false);
        found(what, card, enough, millionths(enough, of));
        break;
      }
    }
    less(0);
  }

  std::int64_t last_alike(change::kind what, std::size_t card, std::int64_t from, std::int64_t most) const {
    if (what == change::kind::free_cores) return from;
    const auto free = on_->what->cards[card].memory_mib - on_->used[card].memory_mib + from;
    const auto beyond = ((free % gpu_manager::unit_mib) + gpu_manager::unit_mib) % gpu_manager::unit_mib;
    return std::min(most, from + gpu_manager::unit_mib - 1 - beyond);
  }

  void repaired(std::size_t at) {
    more_ = *on_->what;
    const bool ill = !more_.cards[at].healthy;
    more_.cards[at].healthy = true;
    more_.cards[at].cordoned = false;
    if (fits(more_)) found(ill ? change::kind::heal_card : change::kind::uncordon_card, at, 0, whole);
  }

  /// Only where one key is what is short.
  void counted_keys() {
    const node& here = *on_->what;
    for (const counted& one : what_->counts()) {
      const auto at =
          static_cast<std::size_t>(std::ranges::find(here.counts, one.key, &count::key) - here.counts.begin());
      const bool there = at < here.counts.size();
      const auto missing = one.amount - (there ? here.counts[at].amount - on_->counts_used[at] : 0);
      if (missing <= 0) continue;
      node as = here;
      std::vector<std::int64_t> taken(on_->counts_used.begin(), on_->counts_used.end());
      if (there)
        as.counts[at].amount += missing;
      else
        as.counts.push_back({std::string{one.key}, missing}), taken.push_back(0);
      if (!fit(*what_, {&as, used_, taken}, {.only = only_}).fits()) return;
      keep(best_, {.what = change::kind::free_counted,
                   .key = one.key,
                   .to = missing,
                   .node = node_,
                   .card = {},
                   .size = millionths(missing, one.amount)});
      return;
    }
  }

  const demand* what_ = nullptr;
  const node_view* on_ = nullptr;
  std::size_t node_ = 0;
  const selector* only_;
  std::optional<change>& best_;
  std::vector<card_use> used_;
  bool foretold_ = false;
  demand needs_;
  node more_;  // the node with something changed; kept, so that its strings are allocated once
};

std::string name_of(const node_view& on) { return on.what == nullptr ? "?" : on.what->name; }

}  // namespace

const change* explanation::smallest() const {
  if (!of_pod || !of_node) return of_pod ? &*of_pod : of_node ? &*of_node : nullptr;
  return of_node->size < of_pod->size ? &*of_node : &*of_pod;
}

explanation explain(std::span<const limits> pod, std::span<const node_view> nodes, const selector* only) {
  explanation out{.nodes = nodes.size(), .fitting = 0, .causes = {}, .of_pod = {}, .of_node = {}, .nearest = {}};
  std::size_t fewest = SIZE_MAX;
  demand what;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::vector<cause> here;
    if (nodes[i].what == nullptr)
      here.push_back({reason::no_node, -1, {}, 1});
    else if (const auto no = read(pod, nodes[i].what->serves, what))
      here.push_back({reason_of(*no), no->container, no->key, 1});
    else if (here = causes_on(what, nodes[i], {.only = only}); here.empty())
      ++out.fitting;
    else if (here.size() < fewest)
      fewest = here.size(), out.nearest = i;
    for (const cause& one : here) {
      const auto same = std::ranges::find_if(out.causes, [&](const cause& other) {
        return std::tie(one.why, one.container, one.key) == std::tie(other.why, other.container, other.key);
      });
      if (same == out.causes.end())
        out.causes.push_back(one);
      else
        ++same->nodes;
    }
  }
  std::ranges::sort(out.causes, {}, [](const cause& one) {
    return std::tuple{-static_cast<std::int64_t>(one.nodes), one.container, one.key, one.why};
  });
  if (out.fitting > 0) {
    out.nearest.reset();
    return out;
  }
  out.of_pod = amounts{pod, nodes, only}.smallest();
  repairs of_nodes{only, out.of_node};
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].what != nullptr && !read(pod, nodes[i].what->serves, what)) of_nodes.try_all(what, nodes[i], i);
  if (const auto* const first = out.smallest()) out.nearest = first->node;
  return out;
}

std::string text_of(const change& of, std::span<const node_view> nodes) {
  const auto& on = nodes[of.node];
  const std::string node = "node " + name_of(on), amount = std::to_string(of.to);
  const std::string card =
      of.card && on.what != nullptr ? "card " + on.what->cards[*of.card].uuid + " of " + node : node;
  switch (of.what) {
    case change::kind::amount:
      return (of.to < of.from ? "lower " : "raise ") + std::string{of.key} + " of container " +
             std::to_string(of.container) + " from " + std::to_string(of.from) + " to " + amount + " (fits on " + card +
             ")";
    case change::kind::free_cores:
      return "free " + amount + " cores on " + card;
    case change::kind::free_memory:
      return "free " + amount + " MiB on " + card;
    case change::kind::free_counted:
      return "free or add " + amount + " " + std::string{of.key} + " on " + node;
    case change::kind::uncordon_card:
      return "put " + card + " back into use";
    case change::kind::heal_card:
      return "repair " + card;
    case change::kind::empty_card:
      return "free " + card + " entirely";
    case change::kind::add_card:
      return "add a card to " + node;
  }
  return "";
}

std::string text_of(const explanation& of, std::span<const node_view> nodes) {
  std::string out = "fits on " + std::to_string(of.fitting) + " of " + std::to_string(of.nodes) + " nodes";
  for (std::size_t i = 0; i < of.causes.size(); ++i) {
    const cause& one = of.causes[i];
    out += (i == 0 ? ": " : ", ") + std::to_string(one.nodes) + " " + std::string{text_of(one.why)};
    if (!one.key.empty()) out += " (" + std::string{one.key} + ")";
    if (one.key.empty() && one.container >= 0) out += " (container " + std::to_string(one.container) + ")";
  }
  if (of.fitting > 0) return out;
  if (of.nearest) out += "; nearest: node " + name_of(nodes[*of.nearest]);
  if (of.of_pod) out += "; smallest change of the pod: " + text_of(*of.of_pod, nodes);
  if (of.of_node) out += "; smallest change of a node: " + text_of(*of.of_node, nodes);
  if (!of.of_pod && !of.of_node) out += "; no single change is enough";
  return out;
}

}  // namespace quota
