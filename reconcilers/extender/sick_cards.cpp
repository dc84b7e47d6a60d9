#include "reconcilers/extender/sick_cards.hpp"

#include <algorithm>
#include <vector>

#include "api/node_words.hpp"
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

std::vector<std::string> names_of(const std::vector<const api::reported_card*>& cards) {
  std::vector<std::string> out;
  for (const auto* card : cards) out.push_back(named(*card));
  return out;
}

constexpr std::string_view after_fault = "it may fail or hang until you restart it.",
                           after_mps =
                               "its programs get CUDA error 806, or hang. MPS starts again when the last program has "
                               "left the card: delete the pods on it that hang.";

/// Our choice is a wish there.
bool picks_cards(const quota::service& serves) {
  using quota::mode;
  return serves.has(mode::pgpu) || serves.has(mode::share) || serves.has(mode::topology);
}

controller::object_reference reference_to(const kube::pod& pod) {
  controller::object_reference out;
  out.api_version = "v1";
  out.kind = "Pod";
  out.key = pod.key;
  out.uid = pod.id.to_string();
  return out;
}

}  // namespace

struct sick_cards::user {
  const kube::pod* pod;
  bool guessed;
  std::vector<const api::reported_card*> cards;  ///< of those asked for, which it holds or, where guessed, may hold
};

sick_cards::sick_cards(dependencies dependencies) : dependencies_(dependencies) {
  dependencies_.cards.observe([this](const api::accelerator_node* before, const api::accelerator_node* after) {
    if (before && after) note(before, *after);
    if (before && !after) sick_.erase(before->key.name);
  });
}

void sick_cards::note(const api::accelerator_node* before, const api::accelerator_node& after) {
  auto& sick_before = sick_[after.key.name];
  for (const auto& card : after.cards) {
    if (card.healthy()) {
      if (sick_before.erase(card.uuid) > 0) recovered_[after.key.name].insert(card.uuid);
      continue;
    }
    const auto was = [&] { return std::ranges::find(before->cards, card.uuid, &api::reported_card::uuid); };
    const bool is_new = !before || was() == before->cards.end() || was()->healthy();
    // MPS fails with its card, and is known first.
    const bool is_worse = !is_new && before && was()->health == api::mps_failed && card.health != api::mps_failed;
    if (is_new || is_worse) pending_[after.key.name].insert(card.uuid);
  }
  if (sick_before.empty()) sick_.erase(after.key.name);
}

void sick_cards::tell_again() {
  for (const auto& report : dependencies_.cards.all()) note(nullptr, report);
}

void sick_cards::turn(controller::milliseconds now) {
  if (pending() == 0 || now < not_before_) return;
  const bool is_recovery = pending_.empty();
  auto& waiting = is_recovery ? recovered_ : pending_;
  const auto [node, cards] = *waiting.begin();
  waiting.erase(waiting.begin());
  const auto* report = dependencies_.cards.find({{}, node});
  const auto events = !report ? 0 : is_recovery ? tell_end(*report, cards) : tell(*report, cards);
  not_before_ = now + static_cast<std::int64_t>(events) * of_an_event;
}

std::vector<sick_cards::user> sick_cards::users_of(const std::string& node,
                                                   const std::vector<const api::reported_card*>& cards) const {
  const auto& book = dependencies_.book;
  const auto view = book.book().view(node);
  std::vector<user> out;
  if (!view || cards.empty()) return out;
  for (const auto& pod : dependencies_.pods.all()) {
    if (pod.node_name != node || pod.finished()) continue;
    const auto* entry = book.book().find(pod.id.to_string());
    if (!entry || entry->held.node != node || entry->held.grants.empty()) continue;
    const auto origin = held_by(pod, *view, pod_request(pod, book.keys())).origin;
    const bool guessed =
        origin == source::guessed || (origin == source::planned && picks_cards(view->inventory->serves));
    user made{&pod, guessed, {}};
    for (const auto* card : cards)
      if (guessed || std::ranges::find(entry->held.grants, card->uuid, &quota::grant::card) != entry->held.grants.end())
        made.cards.push_back(card);
    if (!made.cards.empty()) out.push_back(std::move(made));
  }
  std::ranges::sort(out, {}, [](const user& user) { return user.pod->key; });
  return out;
}

std::size_t sick_cards::tell(const api::accelerator_node& report, const std::set<std::string>& cards) {
  const auto* node = dependencies_.nodes.find(report.key);
  if (!node) return 0;
  std::vector<const api::reported_card*> sick;  // as they are now: one that is in order again needs no event
  for (const auto& card : report.cards)
    if (!card.healthy() && cards.contains(card.uuid)) sick.push_back(&card);
  const auto users = users_of(report.key.name, sick);
  if (users.empty()) return 0;
  for (const auto* card : sick) sick_[report.key.name].insert(card->uuid);

  const bool is_held = dependencies_.book.brake().holds_back(report.key.name);
  const std::string fate = is_held ? "It still gets new pods: more nodes have sick cards than spec.health.maxWithdrawn "
                                     "of the AcceleratorPolicy allows."
                                   : "It gets no new pods.";
  std::vector<std::string> certain, possible;
  for (const auto& user : users) (user.guessed ? possible : certain).push_back(user.pod->key.to_string());
  std::string note = "sick: card " + text::some_of(names_of(sick), most_named) + ".";
  if (!certain.empty()) note += " On it: pod " + text::some_of(certain, most_named) + ".";
  if (!possible.empty())
    note += " Perhaps on it, because the node's plugin picks cards by itself: pod " +
            text::some_of(possible, most_named) + ".";
  dependencies_.events.record({kube::resources::nodes, *node}, event_type::warning, "PodsOnSickCard", "Report",
                              note + (is_held ? " " + fate : "") + " These pods are left alone.");
  std::size_t events = 1;
  for (const auto& user : users) {
    if (events > most_pods) break;
    const auto list = "card " + text::some_of(names_of(user.cards), most_named) + " of node " + report.key.name;
    const bool is_mps =
        std::ranges::all_of(user.cards, [](const api::reported_card* card) { return card->health == api::mps_failed; });
    dependencies_.events.record(
        reference_to(*user.pod), event_type::warning, "CardUnhealthy", "Report",
        (user.guessed ? list + " is sick, and may be one that this pod uses: the node's plugin picks cards by itself. "
                      : list + ", which this pod uses, is sick. ") +
            fate + " This pod is left alone; " + std::string(is_mps ? after_mps : after_fault));
    ++events;
  }
  return events;
}

std::size_t sick_cards::tell_end(const api::accelerator_node& report, const std::set<std::string>& cards) {
  std::vector<const api::reported_card*> well;  // one that is sick again has an event of its own
  for (const auto& card : report.cards)
    if (card.healthy() && cards.contains(card.uuid)) well.push_back(&card);
  std::size_t events = 0;
  for (const auto& user : users_of(report.key.name, well)) {
    if (events == most_pods) break;
    std::vector<std::string> names;
    for (const auto* card : user.cards) text::append_escaped(names.emplace_back(), card->uuid);
    dependencies_.events.record(reference_to(*user.pod), event_type::normal, "CardHealthy", "Report",
                                "card " + text::some_of(names, most_named) + " of node " + report.key.name +
                                    " is in order again. A program of this pod that has failed or hangs since needs a "
                                    "restart.");
    ++events;
  }
  return events;
}

}  // namespace reconcilers::extender
