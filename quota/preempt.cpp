#include "quota/preempt.hpp"

#include <algorithm>
#include <utility>

namespace quota {
namespace {

/// How many go of each priority, the highest first, and who.
struct choice {
  std::vector<std::size_t> counts;
  std::vector<bool> gone;
};

class search {
 public:
  search(const demand& what, const node_view& on, const selector* only)
      : what_(what),
        on_(on),
        only_(only),
        used_(on.used.begin(), on.used.end()),
        counts_(on.counts_used.begin(), on.counts_used.end()) {}

  /// Most important first.
  void add(std::size_t index, std::int32_t priority, const holding& held) { all_.push_back({index, priority, &held}); }

  std::optional<victims> run() {
    std::ranges::sort(all_, {}, [](const member& one) { return std::pair{-std::int64_t{one.priority}, one.index}; });
    gone_.assign(all_.size(), false);
    if (fits()) return victims{};
    for (std::size_t i = 0; i < all_.size(); ++i) send(i);
    if (!could_fit()) return {};
    if (auto best = from(0); best && steps_ > 0) return named(best->gone, true);
    return steps_ > 0 ? std::nullopt : one_after_the_other();
  }

 private:
  struct member {
    std::size_t index;
    std::int32_t priority;
    const holding* held;
  };

  bool fit_as(bool any_order) const {
    return fit(what_, {on_.what, used_, counts_}, {.only = only_, .any_order = any_order}).fits();
  }
  bool fits() const { return fit_as(false); }
  /// Holds for whoever leaves beside; what gpu-manager takes does not.
  bool could_fit() const { return fit_as(true); }

  void send(std::size_t at) {
    apply(*on_.what, *all_[at].held, -1, used_, counts_);
    gone_[at] = true;
  }
  void keep(std::size_t at) {
    apply(*on_.what, *all_[at].held, 1, used_, counts_);
    gone_[at] = false;
  }

  /// The best way from here on, with all less important ones gone. Leaves everything as it was.
  std::optional<choice> from(std::size_t first) {
    if (first == all_.size()) return fits() ? std::optional{choice{{}, gone_}} : std::nullopt;
    auto last = first;
    while (last < all_.size() && all_[last].priority == all_[first].priority) ++last;
    for (auto at = first; at < last; ++at) keep(at);
    std::optional<choice> best;
    for (std::size_t leave = 0; leave <= last - first && !best && steps_ > 0; ++leave)
      some(first, last, last, leave, best);
    for (auto at = first; at < last; ++at) send(at);
    return best;
  }

  /// Every set of `leave` from [first, end); the later ones first.
  void some(std::size_t first, std::size_t end, std::size_t last, std::size_t leave, std::optional<choice>& best) {
    if (leave == 0) {
      if (--steps_ <= 0 || !could_fit()) return;
      auto found = from(last);
      if (!found) return;
      const auto here = static_cast<std::size_t>(std::count(gone_.begin() + static_cast<std::ptrdiff_t>(first),
                                                            gone_.begin() + static_cast<std::ptrdiff_t>(last), true));
      found->counts.insert(found->counts.begin(), here);
      if (!best || found->counts < best->counts) best = std::move(found);
      return;
    }
    for (auto at = end; at-- > first + leave - 1 && steps_ > 0;) {
      send(at);
      some(first, at, last, leave - 1, best);
      keep(at);
    }
  }

  std::optional<victims> one_after_the_other() {
    if (!fits()) return {};
    for (std::size_t at = 0; at < all_.size(); ++at) {
      keep(at);
      if (!fits()) send(at);
    }
    return named(gone_, false);
  }

  victims named(const std::vector<bool>& gone, bool smallest) const {
    victims out{.which = {}, .smallest = smallest};
    for (std::size_t at = 0; at < all_.size(); ++at)
      if (gone[at]) out.which.push_back(all_[at].index);
    std::ranges::sort(out.which);
    return out;
  }

  const demand& what_;
  const node_view& on_;
  const selector* only_;
  std::vector<card_use> used_;
  std::vector<std::int64_t> counts_;
  std::vector<member> all_;
  std::vector<bool> gone_;
  int steps_ = preempt_steps;
};

}  // namespace

std::optional<victims> preempt(std::span<const limits> pod, const ledger& book, std::string_view node,
                               std::span<const candidate> candidates, const selector* only) {
  const auto on = book.view(node);
  demand what;
  if (!on || read(pod, on->what->serves, what)) return {};
  search of{what, *on, only};
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto* const entry = book.find(candidates[i].pod_uid);
    const bool again =
        std::ranges::find(candidates.first(i), candidates[i].pod_uid, &candidate::pod_uid) != candidates.first(i).end();
    if (entry != nullptr && entry->held.node == node && !again) of.add(i, candidates[i].priority, entry->held);
  }
  return of.run();
}

}  // namespace quota
