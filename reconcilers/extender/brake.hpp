#pragma once
// Limits on how many nodes cards may be withdrawn at once. Agents report which cards are sick, and are believed on as
// many nodes as spec.health.maxWithdrawn allows. The sick cards of the other nodes are held back: they still get pods,
// and a condition names the nodes.
//
// It counts nodes and not cards: the token of an agent speaks for one node, so a stolen one takes one place, however
// many cards it invents. Nodes that have been sick for longest come first. So the answer follows from the objects
// alone, and every replica and every restart finds the same one. Pure.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/accelerator_node.hpp"
#include "controller/conditions.hpp"

namespace reconcilers::extender {

class brake {
 public:
  /// @param max_withdrawn a number of nodes, or "20%" of those whose agent reports cards (rounded up, at least 2)
  explicit brake(std::string_view max_withdrawn = "20%") : max_withdrawn_(max_withdrawn) {}

  /// @return the nodes whose sick cards are now held back or no longer are
  std::vector<std::string> allow(std::string_view max_withdrawn);
  /// A change of a node's report, as a store's observer sees it. Cost: O(log n) of n nodes with sick cards.
  /// @return the nodes whose sick cards are now held back or no longer are, apart from this one
  std::vector<std::string> take(const api::accelerator_node* before, const api::accelerator_node* after);

  /// The node has sick cards, and they still get pods.
  bool holds_back(const std::string& node) const;

  std::size_t reporting() const { return reporting_; }  ///< nodes whose agent reports cards
  std::size_t allowed() const;                          ///< nodes that may have withdrawn cards
  std::size_t sick() const { return withdrawn_.size() + held_.size(); }
  std::size_t held() const { return held_.size(); }
  std::size_t held_cards() const { return held_cards_; }
  /// The first nodes that are held back, those that have been sick for longest.
  std::vector<std::string> held_nodes(std::size_t most) const;

 private:
  using entry = std::pair<std::string, std::string>;  ///< since (RFC 3339), node
  struct sickness {
    std::string since;
    std::size_t cards = 0;
  };
  void shift(std::set<entry>& source, std::set<entry>::iterator position, std::set<entry>& target,
             std::vector<std::string>& moved);
  std::vector<std::string> settle();

  std::string max_withdrawn_;
  std::size_t reporting_ = 0, held_cards_ = 0;
  std::unordered_map<std::string, sickness> sick_;
  std::set<entry> withdrawn_, held_;  ///< every node of `sick_` is in one of them
};

/// A condition of the policy, there while the extender runs.
inline constexpr std::string_view withdrawals_held_back = "WithdrawalsHeldBack";
controller::condition held_back_condition(const brake& brake, std::int64_t generation);

}  // namespace reconcilers::extender
