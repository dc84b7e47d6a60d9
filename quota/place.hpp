#pragma once
// Whether a pod fits on a node, and on which of its cards. Pure and deterministic: the same demand, node and book give
// the same cards. Nothing here allocates; what is found lies in the caller's `placement`.
//
// Exact: when there is a way to place all containers it is found, not only when the first try in the policy's order
// works (equal cards are tried once, so ordinary nodes take one pass). The search ends after `search_steps` tries of a
// card; a node where that is not enough is skipped with `search_limit`. Cost of the ordinary case: needs x cards,
// and cards x log cards for their order.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quota/ledger.hpp"
#include "quota/selector.hpp"
#include "quota/vocabulary.hpp"

namespace quota {

inline constexpr std::size_t max_units = 512;  ///< cards and shares of one pod
inline constexpr int search_steps = 4096;

enum class reason : std::uint8_t {
  fits,
  refused,        ///< an amount that is allowed nowhere: quota::read says which
  not_offered,    ///< the node's mode does not serve `key`, which the pod asks for
  no_node,        ///< the node, or which cards it has, is not reported
  no_cards,       ///< the node has no usable card
  cut_cards,      ///< every card of the node is cut by MIG
  whole_cards,    ///< needs `needed` cards no one uses, has `available`
  memory,         ///< needs `needed` MiB of one card, the card with most has `available` left
  cores,          ///< needs `needed` cores of one card, the card with most has `available` left
  sharers,        ///< every card with room has as many shares as it may have
  cards,          ///< needs the share on `needed` cards, has it on `available`
  one_card,       ///< memory and cores are there, not on one card
  counted,        ///< needs `needed` of `key`, has `available` left
  together,       ///< each container fits alone, not all of them
  search_limit,   ///< too many ways to try, or more than `max_units` parts
  not_selected,   ///< needs `needed` of the cards the pod wants, has `available`; without its selection it may fit
  plugin_choice,  ///< the plugin would take a card that cannot be, and refuse what is promised on another
  one_index,      ///< the plugin gives a pod one card, for one container (service::one_index)
  not_steered,    ///< the plugin picks any card of the node, and it has some that the pod does not want
  changes_mode,   ///< the node gets nothing new until its change of mode is over (node_inventory::changes_mode)
};
inline reason reason_of(const refusal& no) {
  return no.kind == wrong::not_served ? reason::not_offered : reason::refused;
}

struct shortfall {
  reason code = reason::fits;
  std::uint16_t container = 0;
  std::int64_t needed = 0;
  std::int64_t available = 0;
  std::string_view key{};  ///< of a counted key or a refused one; valid as long as the pod's limits are

  bool fits() const { return code == reason::fits; }
  friend bool operator==(const shortfall&, const shortfall&) = default;
};

struct placed {
  std::uint16_t container = 0;
  std::uint16_t card = 0;  ///< index in the node's cards
  bool whole = false;
  std::int32_t cores = 0;
  std::int32_t burst_cores = 0;
  std::int64_t memory_mib = 0;

  friend bool operator==(const placed&, const placed&) = default;
};

class placement {
 public:
  std::span<const placed> all() const { return {units_.data(), size_}; }
  void clear() { size_ = 0; }
  bool add(const placed& place) {
    if (size_ == max_units) return false;
    units_[size_++] = place;
    return true;
  }
  void pop() { --size_; }
  /// By container, then by card.
  void sort();

 private:
  std::array<placed, max_units> units_;
  std::size_t size_ = 0;
};

/// The message next to the demand.
struct preferences {
  policy default_policy = policy::binpack;  ///< for shares, where neither the pod nor the node says otherwise
  const selector* only = nullptr;           ///< which cards the pod wants; none: any
  /// As if plugins took any card they are asked to take, also while the node changes its mode: more fits than really
  /// does.
  bool any_order = false;
  std::span<const std::string> except_models{};  ///< cards of these models are left alone
};

/// Fills `out` when all of it fits. `default_policy` is for shares where the node has no placement of its own. Whole
/// cards are those that lie best together (topology.hpp) as far as the rest of the pod fits next to them. Where the
/// node does not say how they lie, they are the smallest free ones, in the node's order. binpack puts a share on the
/// used card that has the least left, and on an unused card only when it must. spread puts it on the card with the
/// fewest shares and the most left.
///
/// Where the plugin chooses, its shares and whole cards lie where it will put them (forecast.hpp), container after
/// container, whatever the policy; what other vocabularies ask for next to them goes to what is left.
shortfall place(const demand& demand, const node_view& view, const preferences& preferences, placement& out);
shortfall place(const demand& demand, const node_view& view, policy policy, placement& out);
shortfall fit(const demand& demand, const node_view& view, const preferences& preferences = {});

/// What the ledger records of a placement. Allocates.
holding holding_of(const demand& demand, const placement& placement, const node_inventory& node);

}  // namespace quota
