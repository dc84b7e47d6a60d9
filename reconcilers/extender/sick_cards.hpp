#pragma once
// Which pods run on a card that has become sick: an event on each of them, and one on the node with their names. Pods
// are left alone. The agent knows the card, the ledger knows the pods. Where a plugin picks cards by itself no one
// knows which pod has which card, and the events say so.

#include <functional>
#include <map>
#include <set>
#include <string>

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
  std::size_t pending() const { return pending_.size(); }

 private:
  void note(const api::accelerator_node* before, const api::accelerator_node& after);
  std::size_t tell(const api::accelerator_node& report, const std::set<std::string>& cards);

  dependencies dependencies_;
  std::map<std::string, std::set<std::string>> pending_;  ///< by node: cards that have become sick
  controller::milliseconds not_before_{0};
};

}  // namespace reconcilers::extender
