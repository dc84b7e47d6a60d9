#include "reconcilers/extender/sick_cards.hpp"

#include <algorithm>
#include <vector>

#include "reconcilers/extender/placement.hpp"
#include "reconcilers/extender/request.hpp"
#include "text/escape.hpp"
#include "text/list.hpp"

namespace reconcilers::extender {
namespace {

using controller::event_type;

/// The recorder writes five events a second.
constexpr controller::milliseconds of_an_event{200};
constexpr std::size_t most_pods = 32, most_named = 8;

/// "GPU-x (XID 48)", of what an agent wrote.
std::string named(const api::reported_card& card) {
  std::string out;
  text::append_escaped(out, card.uuid);
  out += " (";
  text::append_escaped(out, card.health);
  return out + ")";
}

/// Our choice is a wish there.
bool picks_cards(const quota::service& serves) {
  using quota::mode;
  return serves.has(mode::pgpu) || serves.has(mode::share) || serves.has(mode::topology);
}

struct user {
  const kube::pod* pod;
  bool guessed;
  std::vector<std::string> cards;  ///< sick ones that it holds or, where guessed, may hold
};

controller::object_reference reference_to(const kube::pod& pod) {
  controller::object_reference out;
  out.api_version = "v1";
  out.kind = "Pod";
  out.key = pod.key;
  out.uid = pod.id.to_string();
  return out;
}

}  // namespace

sick_cards::sick_cards(dependencies dependencies) : dependencies_(dependencies) {
  dependencies_.cards.observe([this](const api::accelerator_node* before, const api::accelerator_node* after) {
    if (before && after) note(before, *after);
  });
}

void sick_cards::note(const api::accelerator_node* before, const api::accelerator_node& after) {
  for (const auto& card : after.cards) {
    if (card.healthy()) continue;
    const auto was = [&] { return std::ranges::find(before->cards, card.uuid, &api::reported_card::uuid); };
    const bool is_new = !before || was() == before->cards.end() || was()->healthy();
    if (is_new) pending_[after.key.name].insert(card.uuid);
  }
}

void sick_cards::tell_again() {
  for (const auto& report : dependencies_.cards.all()) note(nullptr, report);
}

void sick_cards::turn(controller::milliseconds now) {
  if (pending_.empty() || now < not_before_) return;
  const auto [node, cards] = *pending_.begin();
  pending_.erase(pending_.begin());
  const auto* report = dependencies_.cards.find({{}, node});
  const auto events = report ? tell(*report, cards) : 0;
  not_before_ = now + static_cast<std::int64_t>(events) * of_an_event;
}

std::size_t sick_cards::tell(const api::accelerator_node& report, const std::set<std::string>& cards) {
  const auto& book = dependencies_.book;
  const auto* node = dependencies_.nodes.find(report.key);
  const auto view = book.book().view(report.key.name);
  if (!node || !view) return 0;
  std::vector<const api::reported_card*> sick;  // as they are now: one that is in order again needs no event
  for (const auto& card : report.cards)
    if (!card.healthy() && cards.contains(card.uuid)) sick.push_back(&card);
  if (sick.empty()) return 0;
  std::vector<user> users;
  for (const auto& pod : dependencies_.pods.all()) {
    if (pod.node_name != report.key.name || pod.finished()) continue;
    const auto* entry = book.book().find(pod.id.to_string());
    if (!entry || entry->held.node != report.key.name || entry->held.grants.empty()) continue;
    const auto origin = held_by(pod, *view, pod_request(pod, book.keys())).origin;
    const bool guessed =
        origin == source::guessed || (origin == source::planned && picks_cards(view->inventory->serves));
    user made{&pod, guessed, {}};
    for (const auto* card : sick)
      if (guessed || std::ranges::find(entry->held.grants, card->uuid, &quota::grant::card) != entry->held.grants.end())
        made.cards.push_back(named(*card));
    if (!made.cards.empty()) users.push_back(std::move(made));
  }
  if (users.empty()) return 0;
  std::ranges::sort(users, {}, [](const user& user) { return user.pod->key; });

  const bool is_held = book.brake().holds_back(report.key.name);
  const std::string fate = is_held ? "It still gets new pods: more nodes have sick cards than spec.health.maxWithdrawn "
                                     "of the AcceleratorPolicy allows."
                                   : "It gets no new pods.";
  std::vector<std::string> certain, possible, names;
  for (const auto& user : users) (user.guessed ? possible : certain).push_back(user.pod->key.to_string());
  for (const auto* card : sick) names.push_back(named(*card));
  std::string note = "sick: card " + text::some_of(names, most_named) + ".";
  if (!certain.empty()) note += " On it: pod " + text::some_of(certain, most_named) + ".";
  if (!possible.empty())
    note += " Perhaps on it, because the node's plugin picks cards by itself: pod " +
            text::some_of(possible, most_named) + ".";
  dependencies_.events.record({kube::resources::nodes, *node}, event_type::warning, "PodsOnSickCard", "Report",
                              note + (is_held ? " " + fate : "") + " These pods are left alone.");
  std::size_t events = 1;
  for (const auto& user : users) {
    if (events > most_pods) break;
    const auto list = "card " + text::some_of(user.cards, most_named) + " of node " + report.key.name;
    dependencies_.events.record(
        reference_to(*user.pod), event_type::warning, "CardUnhealthy", "Report",
        (user.guessed ? list + " is sick, and may be one that this pod uses: the node's plugin picks cards by itself. "
                      : list + ", which this pod uses, is sick. ") +
            fate + " This pod is left alone; it may fail or hang until you restart it.");
    ++events;
  }
  return events;
}

}  // namespace reconcilers::extender
