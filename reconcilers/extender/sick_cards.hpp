#pragma once
// Which pods run on a card that has become sick: an event on each of them, and one on the node with their names. When
// it is in order again, an event on each of them that is still there. Pods are left alone. The agent knows the card,
// the ledger knows the pods. Where a plugin picks cards by itself no one knows which pod has which card, and the events
// say so.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/recorder.hpp"
#include "controller/store.hpp"
#include "reconcilers/extender/account.hpp"

namespace reconcilers::extender {

class sick_cards {
 public:
  struct dependencies {
    controller::store<api::accelerator_node>& cards;
    const controller::store<kube::node>& nodes;
    const controller::store<kube::pod>& pods;
    const account& book;
    controller::recorder& events;
  };
  /// Everything given must outlive this. It observes `cards`.
  explicit sick_cards(dependencies dependencies);
  sick_cards(const sick_cards&) = delete;
  sick_cards& operator=(const sick_cards&) = delete;

  /// As the leader begins: an earlier one may have ended before it told. Equal events become one.
  void tell_again();
  /// One node; to be called a few times a second by the leader. O(pods) where there is something to tell, else O(1).
  /// A storm is reported at the rate at which events are written, so that no other event is lost in it.
  void turn(controller::milliseconds now);
  std::size_t pending() const { return pending_.size() + recovered_.size(); }

 private:
  struct user;
  using cards_of_nodes = std::map<std::string, std::set<std::string>>;

  void note(const api::accelerator_node* before, const api::accelerator_node& after);
  std::vector<user> users_of(const std::string& node, const std::vector<const api::reported_card*>& cards) const;
  std::size_t tell(const api::accelerator_node& report, const std::set<std::string>& cards);
  std::size_t tell_end(const api::accelerator_node& report, const std::set<std::string>& cards);

  dependencies dependencies_;
  cards_of_nodes pending_;    ///< cards that have become sick
  cards_of_nodes sick_;       ///< whose pods have an event
  cards_of_nodes recovered_;  ///< of those: in order again
  controller::milliseconds not_before_{0};
};

}  // namespace reconcilers::extender
