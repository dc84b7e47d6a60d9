#include "quota/place.hpp"

#include <algorithm>
#include <bitset>
#include <tuple>

#include "quota/forecast.hpp"
#include "quota/topology.hpp"

namespace quota {
namespace {

using index = std::uint8_t;
static_assert(max_cards <= 256);

std::size_t cards_of(const node_view& view) { return std::min(view.used.size(), max_cards); }

/// A node as one pod may use it: without the cards it does not want.
struct site {
  site(const node_view& on_node, const preferences& preferences) : view(on_node) {
    wanted.set();
    const bool any = preferences.only == nullptr || preferences.only->nothing();
    if (any && preferences.except_models.empty()) return;
    for (std::size_t i = 0; i < size(); ++i)
      wanted[i] = (any || preferences.only->allows(*view.inventory, card(i))) &&
                  std::ranges::find(preferences.except_models, card(i).model) == preferences.except_models.end();
  }

  std::size_t size() const { return cards_of(view); }
  const quota::card& card(std::size_t index) const { return view.inventory->cards[index]; }
  bool usable(std::size_t index) const { return wanted[index] && card(index).usable(); }
  bool admits(const need& need, std::size_t index, const card_use& now) const {
    if (!wanted[index]) return false;
    return need.whole ? admits_whole(card(index), now)
                      : admits_share(card(index), now, need.cores, need.memory_on(card(index)));
  }

  const node_view& view;
  std::bitset<max_cards> wanted;
};

/// How many of a need's parts one card can take as it is now; a whole card, or a share that must lie alone: at most
/// one.
std::int64_t room(const need& need, const site& site, std::size_t index) {
  const card& card = site.card(index);
  const card_use& now = site.view.used[index];
  if (!site.admits(need, index, now)) return 0;
  if (need.whole || need.distinct) return 1;
  std::int64_t most = card.max_sharers - now.sharers;
  if (const auto mib = need.memory_on(card); mib > 0)
    most = std::min(most, (card.lendable_mib() - now.memory_mib) / mib);
  if (need.cores > 0) most = std::min<std::int64_t>(most, (whole_card - now.cores) / need.cores);
  return most;
}

/// First what the plugin chooses by itself, then depth first over containers, parts and cards, in the policy's order.
/// Two cards in the same state are one choice.
class search {
 public:
  search(const demand& demand, const site& site, const preferences& preferences, placement* out)
      : needs_(demand.needs()),
        site_(site),
        policy_(preferences.only != nullptr ? preferences.only->on(*site.view.inventory, preferences.default_policy)
                                            : site.view.inventory->placement.value_or(preferences.default_policy)),
        out_(out) {
    std::ranges::copy(site.view.used.first(site.size()), used_.begin());
    for (std::size_t i = 0; i < needs_.size(); ++i)
      if (preferences.any_order || !forecast::chooses(needs_[i], *site.view.inventory))
        order_[size_++] = static_cast<index>(i);
    // Whole cards first, then the largest shares: what is hardest to place finds the most choice. Shares without cores
    // before those with: they need something left by others, and take nothing, so no other order fits where this does
    // not.
    std::ranges::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(size_), {}, [this](index index) {
      const need& need = needs_[index];
      return std::tuple{
          !need.whole, need.cores > 0, -need.memory_percent, -need.memory_mib, -need.cores, -std::int64_t{need.cards},
          index};
    });
  }

  /// False where the plugin would take a card that cannot be: `refused` is the container.
  bool foretold(std::uint16_t& refused) {
    if (size_ == needs_.size()) return true;
    std::array<index, max_cards> taken;
    for (const need& need : needs_) {
      if (!forecast::chooses(need, *site_.view.inventory)) continue;
      refused = need.container;
      const auto cards = forecast::choose(need, *site_.view.inventory, std::span{used_}.first(site_.size()), taken);
      if (cards == 0) return false;
      for (const index pick : std::span{taken}.first(cards)) {
        if (!site_.admits(need, pick, used_[pick]) || !add(need, pick)) return false;
        take(need, site_.card(pick), used_[pick]);
      }
    }
    return true;
  }
  bool run() {
    if (out_ == nullptr || size_ == 0 || !needs_[order_[0]].whole || !knows_topology(*site_.view.inventory))
      return next(0);
    const auto before = used_;
    const auto parts = parts_;
    if (together() && next(wholes_)) return true;
    used_ = before;
    while (parts_ > parts) pop();
    steps_ = search_steps;  // as if it had not been tried: what fits is placed
    return next(0);
  }
  bool gave_up() const { return steps_ <= 0; }

 private:
  using choices = std::array<index, max_cards>;

  /// Whole cards where they lie best together.
  bool together() {
    std::uint32_t cards = 0;
    for (wholes_ = 0; wholes_ < size_ && needs_[order_[wholes_]].whole; ++wholes_)
      cards += needs_[order_[wholes_]].cards;
    std::array<index, max_cards> free, best, part;
    std::size_t size = 0;
    for (std::size_t i = 0; i < site_.size(); ++i)
      if (site_.admits(needs_[order_[0]], i, used_[i])) free[size++] = static_cast<index>(i);
    if (best_together(*site_.view.inventory, std::span{free}.first(size), cards, best) == 0) return false;
    for (std::size_t rank = 0; rank < wholes_; ++rank) {
      const need& need = needs_[order_[rank]];
      best_together(*site_.view.inventory, std::span{best}.first(cards), need.cards, part);
      for (const index pick : std::span{part}.first(need.cards)) {
        if (!add(need, pick)) return false;
        take(need, site_.card(pick), used_[pick]);
        std::ranges::remove(best.begin(), best.begin() + cards--, pick);
      }
    }
    return true;
  }

  bool next(std::size_t index) {
    if (index == size_) return true;
    choices list;
    const auto size = choose(needs_[order_[index]], list);
    return part(index, 0, std::span{list}.first(size), 0);
  }

  /// The cards that take the need as they are now, the best first, cards in the same state side by side.
  std::size_t choose(const need& need, choices& out) const {
    std::size_t size = 0;
    for (std::size_t i = 0; i < site_.size(); ++i)
      if (site_.admits(need, i, used_[i])) out[size++] = static_cast<index>(i);
    std::ranges::sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size), {},
                      [&](index index) { return rank(need, index); });
    return size;
  }

  /// Lower is better.
  using place_in_order = std::tuple<bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, index>;
  place_in_order rank(const need& need, index index) const {
    const card& card = site_.card(index);
    const card_use& now = used_[index];
    const std::int64_t memory = card.lendable_mib() - now.memory_mib, cores = whole_card - now.cores,
                       sharers = now.sharers;
    if (need.whole || policy_ == policy::binpack)
      return {now.untouched(), memory, cores, -sharers, card.memory_mib, card.max_sharers, index};
    return {false, sharers, -memory, -cores, card.memory_mib, card.max_sharers, index};
  }

  bool same(index a, index b) const {
    const card &left = site_.card(a), &right = site_.card(b);
    return used_[a] == used_[b] && left.memory_mib == right.memory_mib && left.memory_scale == right.memory_scale &&
           left.max_sharers == right.max_sharers;
  }

  /// Part `done` of the need, on one of list[from...]: parts are equal, so only ascending picks are tried.
  bool part(std::size_t rank, std::uint32_t done, std::span<const index> list, std::size_t start) {
    const need& need = needs_[order_[rank]];
    if (done == need.cards) return next(rank + 1);
    if (need.distinct && list.size() - start < need.cards - done) return false;
    std::size_t failed = list.size();
    for (std::size_t position = start; position < list.size(); ++position) {
      const index pick = list[position];
      const card& card = site_.card(pick);
      if (failed != list.size() && same(list[failed], pick)) continue;
      if (!site_.admits(need, pick, used_[pick])) continue;
      if (--steps_ <= 0) return false;
      if (!add(need, pick)) return false;
      const auto before = used_[pick];
      take(need, card, used_[pick]);
      if (part(rank, done + 1, list, need.distinct ? position + 1 : position)) return true;
      used_[pick] = before;
      pop();
      if (gave_up()) return false;
      failed = position;
    }
    return false;
  }

  bool add(const need& need, index pick) {
    if (parts_ == max_units) return false;
    ++parts_;
    return out_ == nullptr || out_->add(piece(need, pick));
  }
  void pop() {
    --parts_;
    if (out_ != nullptr) out_->pop();
  }

  static void take(const need& need, const card& card, card_use& now) {
    if (need.whole) {
      ++now.wholes;
      return;
    }
    ++now.sharers;
    now.cores += need.cores;
    now.memory_mib += need.memory_on(card);
  }

  placed piece(const need& need, index pick) const {
    const card& card = site_.card(pick);
    return {.container = need.container,
            .card = pick,
            .whole = need.whole,
            .cores = need.whole ? whole_card : need.cores,
            .burst_cores = need.burst_cores,
            .memory_mib = need.whole ? card.memory_mib : need.memory_on(card)};
  }

  std::span<const need> needs_;
  const site& site_;
  policy policy_;
  placement* out_;  // nullptr: it is enough to know whether it fits
  std::size_t parts_ = 0;
  std::array<card_use, max_cards> used_;
  std::array<index, demand::max_needs> order_;  // of those that are searched for
  std::size_t size_ = 0, wholes_ = 0;
  int steps_ = search_steps;
};

shortfall short_of(const need& need, reason reason, std::int64_t needed, std::int64_t available) {
  return {.code = reason, .container = need.container, .needed = needed, .available = available};
}

/// Why a node has no usable card.
reason none(const site& site) {
  if (site.size() == 0) return reason::no_node;
  for (std::size_t i = 0; i < site.size(); ++i)
    if (!site.card(i).mig) return reason::no_cards;
  return reason::cut_cards;
}

/// Why no usable card takes the share, where none does.
shortfall nowhere(const need& need, const site& site) {
  std::int64_t memory = -1, cores = -1, needed = 0, usable = 0;
  bool memory_fits = false, cores_fit = false, seats = false;
  for (std::size_t i = 0; i < site.size(); ++i) {
    const card& card = site.card(i);
    const card_use& now = site.view.used[i];
    if (!site.usable(i)) continue;
    ++usable;
    const auto left = now.wholes > 0 ? 0 : std::max<std::int64_t>(card.lendable_mib() - now.memory_mib, 0);
    const auto mib = need.memory_on(card);
    if (left > memory) memory = left, needed = mib;
    cores = std::max<std::int64_t>(cores, now.wholes > 0 ? 0 : std::max(whole_card - now.cores, 0));
    if (now.wholes > 0) continue;
    memory_fits |= mib <= left;
    cores_fit |= cores_left(now, need.cores);
    seats |= now.sharers < card.max_sharers;
  }
  if (usable == 0) return short_of(need, none(site), need.cards, 0);
  if (need.distinct && need.cards > usable) return short_of(need, reason::cards, need.cards, usable);
  if (!memory_fits && needed > 0) return short_of(need, reason::memory, needed, memory);
  if (!cores_fit) return short_of(need, reason::cores, std::max(need.cores, 1), cores);
  if (!seats) return short_of(need, reason::sharers, need.cards, 0);
  return short_of(need, reason::one_card, need.cards, 0);
}

/// One container by itself, wherever the plugin would put it. Exact, because its parts are equal.
shortfall alone_of(const need& need, const site& site) {
  std::int64_t have = 0;
  for (std::size_t i = 0; i < site.size(); ++i) have += room(need, site, i);
  if (have >= need.cards) return {};
  if (need.whole) {
    bool any = false;
    for (std::size_t i = 0; i < site.size(); ++i) any |= site.usable(i);
    return short_of(need, any ? reason::whole_cards : none(site), need.cards, have);
  }
  return have == 0 ? nowhere(need, site) : short_of(need, reason::cards, need.cards, have);
}

/// A wish for cards holds where the plugin picks by itself only if it can pick no other.
bool steered(const need& need, const site& site) {
  if (!picks_cards(need.node_mode) || site.wanted.all()) return true;
  for (std::size_t i = 0; i < site.size(); ++i)
    if (site.card(i).usable() && !site.wanted[i]) return false;
  return true;
}

shortfall alone(const need& need, const site& cards, bool any_order) {
  const auto no = alone_of(need, cards);
  if (no.fits() && !any_order && !steered(need, cards)) return short_of(need, reason::not_steered, need.cards, 0);
  if (no.fits() || cards.wanted.all()) return no;
  const auto unselected = alone_of(need, site{cards.view, {}});
  const bool none_wanted = no.code == reason::no_cards && unselected.code != reason::no_cards;
  return unselected.fits() || none_wanted
             ? short_of(need, reason::not_selected, need.cards,
                        no.code == reason::cards || no.code == reason::whole_cards ? no.available : 0)
             : no;
}

bool is_closed(const node_view& view, const preferences& preferences) {
  return view.inventory->changes_mode && !preferences.any_order;
}

/// More parts than the plugin can be told of.
bool beyond_one_index(const demand& demand, const site& site, const preferences& preferences) {
  if (!site.view.inventory->serves.one_index || preferences.any_order || site.size() < 2) return false;
  std::uint64_t parts = 0;
  for (const need& need : demand.needs()) parts += spreads_memory(need.node_mode) ? need.cards : 0;
  return parts > 1;
}

shortfall count_short(const demand& demand, const node_view& view) {
  for (const counted_key& entry : demand.counts()) {
    const auto match = std::ranges::find(view.inventory->counts, entry.key, &count::key);
    std::int64_t left = 0;
    if (match != view.inventory->counts.end())
      left = match->amount - view.counts_used[static_cast<std::size_t>(match - view.inventory->counts.begin())];
    if (entry.amount > left)
      return {.code = reason::counted,
              .needed = entry.amount,
              .available = std::max<std::int64_t>(left, 0),
              .key = entry.key};
  }
  return {};
}

/// Sums that cannot come out, so that a full node is not searched.
bool hopeless(const demand& demand, const site& site) {
  std::int64_t parts = 0, wholes = 0, cores = 0, memory = 0, untouched = 0, cores_left_in_all = 0, memory_left = 0;
  for (const need& need : demand.needs()) {
    parts += need.cards;
    if (need.whole) wholes += need.cards;
    cores += std::int64_t{need.cards} * (need.whole ? whole_card : need.cores);
    memory += need.whole ? 0 : need.cards * need.memory_mib;
  }
  if (parts > static_cast<std::int64_t>(max_units)) return false;
  for (std::size_t i = 0; i < site.size(); ++i) {
    const card_use& now = site.view.used[i];
    if (!site.usable(i) || now.wholes > 0) continue;
    untouched += now.untouched() ? 1 : 0;
    cores_left_in_all += std::max(whole_card - now.cores, 0);
    memory_left += std::max<std::int64_t>(site.card(i).lendable_mib() - now.memory_mib, 0);
  }
  return wholes > untouched || cores > cores_left_in_all || memory > memory_left;
}

}  // namespace

void placement::sort() {
  std::ranges::sort(units_.begin(), units_.begin() + static_cast<std::ptrdiff_t>(size_), {},
                    [](const placed& place) { return std::pair{place.container, place.card}; });
}

namespace {

shortfall try_to(const demand& demand, const node_view& view, const preferences& preferences, placement* out) {
  if (view.inventory == nullptr) return {.code = reason::no_node};
  if (is_closed(view, preferences)) return {.code = reason::changes_mode};
  const site site{view, preferences};
  if (beyond_one_index(demand, site, preferences)) return {.code = reason::one_index};
  if (auto no = count_short(demand, view); !no.fits()) return no;
  for (const need& need : demand.needs())
    if (auto no = alone(need, site, preferences.any_order); !no.fits()) return no;
  if (demand.needs().size() > 1 && hopeless(demand, site)) return {.code = reason::together};
  search placement_search(demand, site, preferences, out);
  std::uint16_t refused = 0;
  if (!placement_search.foretold(refused)) return {.code = reason::plugin_choice, .container = refused};
  if (placement_search.run()) return {};
  std::int64_t parts = 0;
  for (const need& need : demand.needs()) parts += need.cards;
  const bool limit = placement_search.gave_up() || parts > static_cast<std::int64_t>(max_units);
  return {.code = limit ? reason::search_limit : reason::together};
}

}  // namespace

shortfall place(const demand& demand, const node_view& view, const preferences& preferences, placement& out) {
  out.clear();
  const auto no = try_to(demand, view, preferences, &out);
  if (no.fits())
    out.sort();
  else
    out.clear();
  return no;
}

shortfall place(const demand& demand, const node_view& view, policy policy, placement& out) {
  return place(demand, view, preferences{.default_policy = policy}, out);
}

shortfall fit(const demand& demand, const node_view& view, const preferences& preferences) {
  if (demand.needs().size() > 1 || view.inventory == nullptr || is_closed(view, preferences))
    return try_to(demand, view, preferences, nullptr);
  if (auto no = count_short(demand, view); !no.fits() || demand.needs().empty()) return no;
  const need& only = demand.needs().front();
  const site site{view, preferences};
  if (beyond_one_index(demand, site, preferences)) return {.code = reason::one_index};
  if (auto no = alone(only, site, preferences.any_order); !no.fits()) return no;
  if (only.cards > max_units) return {.code = reason::search_limit};
  if (preferences.any_order || !forecast::chooses(only, *view.inventory)) return {};
  std::array<index, max_cards> taken;
  const auto cards = forecast::choose(only, *view.inventory, view.used.first(site.size()), taken);
  const bool admitted = cards > 0 && std::ranges::all_of(std::span{taken}.first(cards), [&](index pick) {
                          return site.admits(only, pick, view.used[pick]);
                        });
  return admitted ? shortfall{} : shortfall{.code = reason::plugin_choice, .container = only.container};
}

holding holding_of(const demand& demand, const placement& placement, const node_inventory& node) {
  holding out{.node = node.name, .grants = {}, .counts = {}};
  out.grants.reserve(placement.all().size());
  for (const placed& place : placement.all())
    out.grants.push_back(
        {place.container, place.whole, place.cores, place.burst_cores, place.memory_mib, node.cards[place.card].uuid});
  for (const counted_key& count : demand.counts()) out.counts.push_back({std::string{count.key}, count.amount});
  return out;
}

}  // namespace quota
