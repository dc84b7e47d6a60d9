#include "quota/place.hpp"

#include <algorithm>
#include <bitset>
#include <tuple>

#include "quota/gpu_manager.hpp"
#include "quota/topology.hpp"

namespace quota {
namespace {

using index = std::uint8_t;
static_assert(max_cards <= 256);

std::size_t cards_of(const node_view& on) { return std::min(on.used.size(), max_cards); }

/// A node as one pod may use it: without the cards it does not want.
struct site {
  site(const node_view& on_node, const wish& as) : on(on_node) {
    wanted.set();
    const bool any = as.only == nullptr || as.only->nothing();
    if (any && as.except_models.empty()) return;
    for (std::size_t i = 0; i < size(); ++i)
      wanted[i] = (any || as.only->allows(*on.what, card(i))) &&
                  std::ranges::find(as.except_models, card(i).model) == as.except_models.end();
  }

  std::size_t size() const { return cards_of(on); }
  const quota::card& card(std::size_t at) const { return on.what->cards[at]; }
  bool usable(std::size_t at) const { return wanted[at] && card(at).usable(); }
  bool admits(const need& what, std::size_t at, const card_use& now) const {
    if (!wanted[at]) return false;
    return what.whole ? admits_whole(card(at), now) : admits_share(card(at), now, what.cores, what.memory_on(card(at)));
  }

  const node_view& on;
  std::bitset<max_cards> wanted;
};

/// How many of a need's parts one card can take as it is now; a whole card, or a share that must lie alone: at most
/// one.
std::int64_t room(const need& what, const site& in, std::size_t at) {
  const card& of = in.card(at);
  const card_use& now = in.on.used[at];
  if (!in.admits(what, at, now)) return 0;
  if (what.whole || what.distinct) return 1;
  std::int64_t most = of.max_sharers - now.sharers;
  if (const auto mib = what.memory_on(of); mib > 0) most = std::min(most, (of.lendable_mib() - now.memory_mib) / mib);
  if (what.cores > 0) most = std::min<std::int64_t>(most, (whole_card - now.cores) / what.cores);
  return most;
}

/// First what gpu-manager chooses, then depth first over containers, parts and cards, in the policy's order. Two cards
/// in the same state are one choice.
class search {
 public:
  search(const demand& what, const site& in, const wish& as, placement* out)
      : needs_(what.needs()),
        in_(in),
        how_(as.only != nullptr ? as.only->on(*in.on.what, as.how) : in.on.what->placement.value_or(as.how)),
        out_(out) {
    std::ranges::copy(in.on.used.first(in.size()), used_.begin());
    for (std::size_t i = 0; i < needs_.size(); ++i)
      if (as.any_order || !gpu_manager::chooses(needs_[i], *in.on.what)) order_[size_++] = static_cast<index>(i);
    // Whole cards first, then the largest shares: what is hardest to place finds the most choice. Shares without cores
    // before those with: they need something left by others, and take nothing, so no other order fits where this does
    // not.
    std::ranges::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(size_), {}, [this](index at) {
      const need& one = needs_[at];
      return std::tuple{
          !one.whole, one.cores > 0, -one.memory_percent, -one.memory_mib, -one.cores, -std::int64_t{one.cards}, at};
    });
  }

  /// False where gpu-manager would take a card that cannot be: `refused` is the container.
  bool foretold(std::uint16_t& refused) {
    if (size_ == needs_.size()) return true;
    std::array<index, max_cards> taken;
    for (const need& one : needs_) {
      if (!gpu_manager::chooses(one, *in_.on.what)) continue;
      refused = one.container;
      const auto cards = gpu_manager::choose(one, *in_.on.what, std::span{used_}.first(in_.size()), taken);
      if (cards == 0) return false;
      for (const index pick : std::span{taken}.first(cards)) {
        if (!in_.admits(one, pick, used_[pick]) || !add(one, pick)) return false;
        take(one, in_.card(pick), used_[pick]);
      }
    }
    return true;
  }
  bool run() {
    if (out_ == nullptr || size_ == 0 || !needs_[order_[0]].whole || !knows_topology(*in_.on.what)) return next(0);
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
    for (std::size_t i = 0; i < in_.size(); ++i)
      if (in_.admits(needs_[order_[0]], i, used_[i])) free[size++] = static_cast<index>(i);
    if (best_together(*in_.on.what, std::span{free}.first(size), cards, best) == 0) return false;
    for (std::size_t which = 0; which < wholes_; ++which) {
      const need& what = needs_[order_[which]];
      best_together(*in_.on.what, std::span{best}.first(cards), what.cards, part);
      for (const index pick : std::span{part}.first(what.cards)) {
        if (!add(what, pick)) return false;
        take(what, in_.card(pick), used_[pick]);
        std::ranges::remove(best.begin(), best.begin() + cards--, pick);
      }
    }
    return true;
  }

  bool next(std::size_t which) {
    if (which == size_) return true;
    choices list;
    const auto size = choose(needs_[order_[which]], list);
    return part(which, 0, std::span{list}.first(size), 0);
  }

  /// The cards that take the need as they are now, the best first, cards in the same state side by side.
  std::size_t choose(const need& what, choices& out) const {
    std::size_t size = 0;
    for (std::size_t i = 0; i < in_.size(); ++i)
      if (in_.admits(what, i, used_[i])) out[size++] = static_cast<index>(i);
    std::ranges::sort(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size), {},
                      [&](index at) { return rank(what, at); });
    return size;
  }

  /// Lower is better.
  using place_in_order = std::tuple<bool, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, index>;
  place_in_order rank(const need& what, index at) const {
    const card& of = in_.card(at);
    const card_use& now = used_[at];
    const std::int64_t memory = of.lendable_mib() - now.memory_mib, cores = whole_card - now.cores,
                       sharers = now.sharers;
    if (what.whole || how_ == policy::binpack)
      return {now.untouched(), memory, cores, -sharers, of.memory_mib, of.max_sharers, at};
    return {false, sharers, -memory, -cores, of.memory_mib, of.max_sharers, at};
  }

  bool same(index a, index b) const {
    const card &left = in_.card(a), &right = in_.card(b);
    return used_[a] == used_[b] && left.memory_mib == right.memory_mib && left.memory_scale == right.memory_scale &&
           left.max_sharers == right.max_sharers;
  }

  /// Part `done` of the need, on one of list[from...]: parts are equal, so only ascending picks are tried.
  bool part(std::size_t which, std::uint32_t done, std::span<const index> list, std::size_t from) {
    const need& what = needs_[order_[which]];
    if (done == what.cards) return next(which + 1);
    if (what.distinct && list.size() - from < what.cards - done) return false;
    std::size_t failed = list.size();
    for (std::size_t at = from; at < list.size(); ++at) {
      const index pick = list[at];
      const card& of = in_.card(pick);
      if (failed != list.size() && same(list[failed], pick)) continue;
      if (!in_.admits(what, pick, used_[pick])) continue;
      if (--steps_ <= 0) return false;
      if (!add(what, pick)) return false;
      const auto before = used_[pick];
      take(what, of, used_[pick]);
      if (part(which, done + 1, list, what.distinct ? at + 1 : at)) return true;
      used_[pick] = before;
      pop();
      if (gave_up()) return false;
      failed = at;
    }
    return false;
  }

  bool add(const need& what, index pick) {
    if (parts_ == max_units) return false;
    ++parts_;
    return out_ == nullptr || out_->add(piece(what, pick));
  }
  void pop() {
    --parts_;
    if (out_ != nullptr) out_->pop();
  }

  static void take(const need& what, const card& of, card_use& now) {
    if (what.whole) {
      ++now.wholes;
      return;
    }
    ++now.sharers;
    now.cores += what.cores;
    now.memory_mib += what.memory_on(of);
  }

  placed piece(const need& what, index pick) const {
    const card& of = in_.card(pick);
    return {.container = what.container,
            .card = pick,
            .whole = what.whole,
            .cores = what.whole ? whole_card : what.cores,
            .burst_cores = what.burst_cores,
            .memory_mib = what.whole ? of.memory_mib : what.memory_on(of)};
  }

  std::span<const need> needs_;
  const site& in_;
  policy how_;
  placement* out_;  // nullptr: it is enough to know whether it fits
  std::size_t parts_ = 0;
  std::array<card_use, max_cards> used_;
  std::array<index, demand::max_needs> order_;  // of those that are searched for
  std::size_t size_ = 0, wholes_ = 0;
  int steps_ = search_steps;
};

shortfall short_of(const need& what, reason why, std::int64_t needed, std::int64_t available) {
  return {.why = why, .container = what.container, .needed = needed, .available = available};
}

/// Why a node has no usable card.
reason none(const site& in) { return in.size() == 0 ? reason::no_node : reason::no_cards; }

/// Why no usable card takes the share, where none does.
shortfall nowhere(const need& what, const site& in) {
  std::int64_t memory = -1, cores = -1, needed = 0, usable = 0;
  bool memory_fits = false, cores_fit = false, seats = false;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const card& of = in.card(i);
    const card_use& now = in.on.used[i];
    if (!in.usable(i)) continue;
    ++usable;
    const auto left = now.wholes > 0 ? 0 : std::max<std::int64_t>(of.lendable_mib() - now.memory_mib, 0);
    const auto mib = what.memory_on(of);
    if (left > memory) memory = left, needed = mib;
    cores = std::max<std::int64_t>(cores, now.wholes > 0 ? 0 : std::max(whole_card - now.cores, 0));
    if (now.wholes > 0) continue;
    memory_fits |= mib <= left;
    cores_fit |= cores_left(now, what.cores);
    seats |= now.sharers < of.max_sharers;
  }
  if (usable == 0) return short_of(what, none(in), what.cards, 0);
  if (!memory_fits && needed > 0) return short_of(what, reason::memory, needed, memory);
  if (!cores_fit) return short_of(what, reason::cores, std::max(what.cores, 1), cores);
  if (!seats) return short_of(what, reason::sharers, what.cards, 0);
  return short_of(what, reason::one_card, what.cards, 0);
}

/// One container by itself, wherever gpu-manager would put it. Exact, because its parts are equal.
shortfall alone_of(const need& what, const site& in) {
  std::int64_t have = 0;
  for (std::size_t i = 0; i < in.size(); ++i) have += room(what, in, i);
  if (have >= what.cards) return {};
  if (what.whole) {
    bool any = false;
    for (std::size_t i = 0; i < in.size(); ++i) any |= in.usable(i);
    return short_of(what, any ? reason::whole_cards : none(in), what.cards, have);
  }
  return have == 0 ? nowhere(what, in) : short_of(what, reason::cards, what.cards, have);
}

/// A wish for cards holds where the plugin picks by itself only if it can pick no other.
bool steered(const need& what, const site& in) {
  if (!picks_cards(what.by) || in.wanted.all()) return true;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in.card(i).usable() && !in.wanted[i]) return false;
  return true;
}

shortfall alone(const need& what, const site& in, bool any_order) {
  const auto no = alone_of(what, in);
  if (no.fits() && !any_order && !steered(what, in)) return short_of(what, reason::not_steered, what.cards, 0);
  if (no.fits() || in.wanted.all()) return no;
  const auto unselected = alone_of(what, site{in.on, {}});
  const bool none_wanted = no.why == reason::no_cards && unselected.why != reason::no_cards;
  return unselected.fits() || none_wanted
             ? short_of(what, reason::not_selected, what.cards,
                        no.why == reason::cards || no.why == reason::whole_cards ? no.available : 0)
             : no;
}

/// More parts than gpushare's plugin can be told of.
bool beyond_one_index(const demand& what, const site& in, const wish& as) {
  if (!in.on.what->serves.one_index || as.any_order || in.size() < 2) return false;
  std::uint64_t parts = 0;
  for (const need& one : what.needs()) parts += one.by == mode::gpushare ? one.cards : 0;
  return parts > 1;
}

shortfall count_short(const demand& what, const node_view& on) {
  for (const counted& one : what.counts()) {
    const auto at = std::ranges::find(on.what->counts, one.key, &count::key);
    std::int64_t left = 0;
    if (at != on.what->counts.end())
      left = at->amount - on.counts_used[static_cast<std::size_t>(at - on.what->counts.begin())];
    if (one.amount > left)
      return {
          .why = reason::counted, .needed = one.amount, .available = std::max<std::int64_t>(left, 0), .key = one.key};
  }
  return {};
}

/// Sums that cannot come out, so that a full node is not searched.
bool hopeless(const demand& what, const site& in) {
  std::int64_t parts = 0, wholes = 0, cores = 0, memory = 0, untouched = 0, cores_left_in_all = 0, memory_left = 0;
  for (const need& one : what.needs()) {
    parts += one.cards;
    if (one.whole) wholes += one.cards;
    cores += std::int64_t{one.cards} * (one.whole ? whole_card : one.cores);
    memory += one.whole ? 0 : one.cards * one.memory_mib;
  }
  if (parts > static_cast<std::int64_t>(max_units)) return false;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const card_use& now = in.on.used[i];
    if (!in.usable(i) || now.wholes > 0) continue;
    untouched += now.untouched() ? 1 : 0;
    cores_left_in_all += std::max(whole_card - now.cores, 0);
    memory_left += std::max<std::int64_t>(in.card(i).lendable_mib() - now.memory_mib, 0);
  }
  return wholes > untouched || cores > cores_left_in_all || memory > memory_left;
}

}  // namespace

void placement::sort() {
  std::ranges::sort(units_.begin(), units_.begin() + static_cast<std::ptrdiff_t>(size_), {},
                    [](const placed& one) { return std::pair{one.container, one.card}; });
}

namespace {

shortfall try_to(const demand& what, const node_view& on, const wish& as, placement* out) {
  if (on.what == nullptr) return {.why = reason::no_node};
  const site in{on, as};
  if (beyond_one_index(what, in, as)) return {.why = reason::one_index};
  if (auto no = count_short(what, on); !no.fits()) return no;
  for (const need& one : what.needs())
    if (auto no = alone(one, in, as.any_order); !no.fits()) return no;
  if (what.needs().size() > 1 && hopeless(what, in)) return {.why = reason::together};
  search through(what, in, as, out);
  std::uint16_t refused = 0;
  if (!through.foretold(refused)) return {.why = reason::plugin_choice, .container = refused};
  if (through.run()) return {};
  std::int64_t parts = 0;
  for (const need& one : what.needs()) parts += one.cards;
  const bool limit = through.gave_up() || parts > static_cast<std::int64_t>(max_units);
  return {.why = limit ? reason::search_limit : reason::together};
}

}  // namespace

shortfall place(const demand& what, const node_view& on, const wish& as, placement& out) {
  out.clear();
  const auto no = try_to(what, on, as, &out);
  if (no.fits())
    out.sort();
  else
    out.clear();
  return no;
}

shortfall place(const demand& what, const node_view& on, policy how, placement& out) {
  return place(what, on, wish{.how = how}, out);
}

shortfall fit(const demand& what, const node_view& on, const wish& as) {
  if (what.needs().size() > 1 || on.what == nullptr) return try_to(what, on, as, nullptr);
  if (auto no = count_short(what, on); !no.fits() || what.needs().empty()) return no;
  const need& only = what.needs().front();
  const site in{on, as};
  if (beyond_one_index(what, in, as)) return {.why = reason::one_index};
  if (auto no = alone(only, in, as.any_order); !no.fits()) return no;
  if (only.cards > max_units) return {.why = reason::search_limit};
  if (as.any_order || !gpu_manager::chooses(only, *on.what)) return {};
  std::array<index, max_cards> taken;
  const auto cards = gpu_manager::choose(only, *on.what, on.used.first(in.size()), taken);
  const bool admitted = cards > 0 && std::ranges::all_of(std::span{taken}.first(cards), [&](index pick) {
                          return in.admits(only, pick, on.used[pick]);
                        });
  return admitted ? shortfall{} : shortfall{.why = reason::plugin_choice, .container = only.container};
}

holding holding_of(const demand& what, const placement& where, const node& on) {
  holding out{.node = on.name, .grants = {}, .counts = {}};
  out.grants.reserve(where.all().size());
  for (const placed& one : where.all())
    out.grants.push_back(
        {one.container, one.whole, one.cores, one.burst_cores, one.memory_mib, on.cards[one.card].uuid});
  for (const counted& one : what.counts()) out.counts.push_back({std::string{one.key}, one.amount});
  return out;
}

std::string_view text_of(reason of) {
  switch (of) {
    case reason::fits:
      return "fits";
    case reason::refused:
      return "request not valid on this node";
    case reason::not_offered:
      return "resource not offered in the node's mode";
    case reason::no_node:
      return "cards not known yet";
    case reason::no_cards:
      return "no usable card";
    case reason::whole_cards:
      return "too few free cards";
    case reason::memory:
      return "no card with enough memory left";
    case reason::cores:
      return "no card with enough cores left";
    case reason::sharers:
      return "cards have as many shares as they may";
    case reason::cards:
      return "share fits on too few cards";
    case reason::one_card:
      return "memory and cores are left on different cards";
    case reason::counted:
      return "too little of a counted resource left";
    case reason::together:
      return "containers fit alone, not together";
    case reason::search_limit:
      return "too many containers to place";
    case reason::not_selected:
      return "no room on the cards the pod wants";
    case reason::plugin_choice:
      return "gpu-manager would take another card";
    case reason::one_index:
      return "gpushare's plugin gives a pod one card, for one container";
    case reason::not_steered:
      return "the node's plugin picks the card, and may pick one the pod does not want";
  }
  return "";
}

std::string text_of(const shortfall& of) {
  std::string out{text_of(of.why)};
  switch (of.why) {
    case reason::whole_cards:
    case reason::memory:
    case reason::cores:
    case reason::cards:
    case reason::counted:
    case reason::not_selected:
      break;
    case reason::not_offered:
      return out + ": " + std::string{of.key};
    case reason::refused:
      return out + ": " + std::string{of.key} + " is " + std::to_string(of.needed);
    default:
      return out;
  }
  if (!of.key.empty()) out += ": " + std::string{of.key};
  const std::string_view unit = of.why == reason::memory ? " MiB" : "";
  return out + ": needs " + std::to_string(of.needed) + std::string{unit} + ", has " + std::to_string(of.available) +
         std::string{unit};
}

}  // namespace quota
