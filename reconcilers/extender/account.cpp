#include "reconcilers/extender/account.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "api/engine_words.hpp"
#include "api/gpu_quota.hpp"
#include "api/names.hpp"
#include "controller/log.hpp"
#include "quota/place.hpp"
#include "text/messages.hpp"

namespace reconcilers::extender {
namespace {

/// Of one node, by priority: what more pods than this need is not set aside, so that a call stays short.
constexpr std::size_t most_nominated = 64;
constexpr auto for_ever = std::numeric_limits<std::int64_t>::max();  // what is assumed ends by what the API says

bool bound(const kube::pod& pod) { return !pod.node_name.empty() && !pod.finished(); }

quota::traits traits_of(const kube::pod& pod, const quota::node_inventory& node) {
  return {.priority = pod.priority, .isolated = quota::isolation_of(node.serves)};
}

/// Nothing of what is booked follows from the difference.
bool same(const kube::pod& a, const kube::pod& b) {
  return a.id == b.id && a.node_name == b.node_name && a.finished() == b.finished() && a.annotations == b.annotations &&
         a.containers == b.containers;
}

/// Do the same grants cost the same on both?
bool charged_alike(const quota::node_inventory& a, const quota::node_inventory& b) {
  return a.pool == b.pool && a.serves == b.serves &&
         std::ranges::equal(a.cards, b.cards, [](const quota::card& card, const quota::card& other) {
           return card.uuid == other.uuid && card.model == other.model && card.memory_mib == other.memory_mib;
         });
}

std::ptrdiff_t usable_cards(const api::accelerator_node* node) {
  return node ? std::ranges::count_if(node->cards, &api::reported_card::healthy) : 0;
}

/// Below 1.31 a kubelet overlooks resources that its node does not offer in `containers` alone; with one of an init
/// container or a sidecar it rejects the pod, OutOf<resource> (pkg/kubelet/lifecycle/predicate.go,
/// removeMissingExtendedResources). @return what a person needs to know; empty: nothing is wrong
std::string kubelet_rejects(const kube::pod& pod, const kube::node* node) {
  int major = 0, minor = 0;
  if (!node || std::sscanf(node->kubelet_version.c_str(), "v%d.%d", &major, &minor) != 2) return {};
  if (std::pair(major, minor) >= std::pair(1, 31)) return {};
  for (const auto& container : pod.containers) {
    if (container.kind == kube::container::role::main) continue;
    for (const auto& [key, amount] : container.limits)
      if (amount > 0 && kube::amount(node->allocatable, key) == 0)
        return text::message(
            "engine.kubelet_rejects", text::language::en,
            {{"version", node->kubelet_version}, {"key", std::string(key)}, {"container", container.name}});
  }
  return {};
}

/// Cards that keep their number and have another name: an agent has begun to report them, or does no more.
using names_by_name = std::unordered_map<std::string, std::string>;
names_by_name renamed_cards(const quota::node_inventory& before, const quota::node_inventory& now) {
  const auto number = [](const quota::node_inventory& node, std::size_t index) {
    return node.cards[index].minor >= 0 ? static_cast<std::size_t>(node.cards[index].minor) : index;
  };
  const auto has = [](const quota::node_inventory& node, const std::string& uuid) {
    return std::ranges::find(node.cards, uuid, &quota::card::uuid) != node.cards.end();
  };
  names_by_name out;
  for (std::size_t i = 0; i < before.cards.size(); ++i) {
    if (has(now, before.cards[i].uuid)) continue;  // wherever it is now
    for (std::size_t j = 0; j < now.cards.size(); ++j)
      if (number(before, i) == number(now, j) && !has(before, now.cards[j].uuid))
        out[before.cards[i].uuid] = now.cards[j].uuid;
  }
  return out;
}

}  // namespace

account::account(stores known, controller::registry& metrics, std::string plugins)
    : known_(known),
      gaps_(std::move(plugins)),
      differences_(metrics.counters("quartermaster_ledger_differences_total",
                                    "Entries of the ledger that differed from the API and were repaired: missing, "
                                    "extra, different, charge (of limits).",
                                    {"kind"})),
      confirmed_entries_(metrics.make_gauge("quartermaster_ledger_confirmed_entries", "Pods that hold something.")),
      assumed_entries_(metrics.make_gauge("quartermaster_ledger_assumed_entries",
                                          "Pods whose Binding was sent and is not seen yet.")),
      over_given_(metrics.make_gauge("quartermaster_ledger_over_given",
                                     "Cards and keys of which more is given out than there is, at the last audit.")),
      sick_nodes_(metrics.make_gauge("quartermaster_sick_nodes", "Nodes whose agent reports sick cards.")),
      held_nodes_(metrics.make_gauge("quartermaster_held_back_nodes",
                                     "Nodes whose sick cards still get pods, because more nodes have sick cards than "
                                     "spec.health.maxWithdrawn of the policy allows.")),
      held_cards_(metrics.make_gauge("quartermaster_held_back_cards", "The sick cards of those nodes.")),
      withdrawal_limit_(
          metrics.make_gauge("quartermaster_withdrawal_limit_nodes", "Nodes that may have withdrawn cards at once.")) {
  if (const auto* rules = policy()) brake_.allow(rules->health.max_withdrawn);
  for (const auto& report : known.cards.all()) brake_.take(nullptr, &report);
  renamed_ = renamed_keys(policy());
  learn_keys(known.rules.find(api::compiled_rules::only()));
  for (const auto& entry : known.quotas.all()) learn_limits(entry.key.ns);
  for (const auto& entry : known.old_quotas.all()) learn_old_limits(&entry);
  for (const auto& pod : known.pods.all()) gaps_.take(nullptr, &pod, controller::boot_now());
  for (const auto& node : known.nodes.all()) put(node);
  for (const auto& pod : known.pods.all()) note_nomination(nullptr, &pod), book(pod);
  known.quotas.observe([this](const api::accelerator_quota* before, const api::accelerator_quota* after) {
    learn_limits((after ? after : before)->key.ns);
    if (on_room_) on_room_();
  });
  known.old_quotas.observe([this](const kube::config_map*, const kube::config_map* after) {
    learn_old_limits(after);
    if (on_room_) on_room_();
  });
  known.nodes.observe([this](const auto* before, const auto* after) { take_in(before, after); });
  known.pods.observe([this](const auto* before, const auto* after) { take_in(before, after); });
  known.cards.observe([this](const auto* before, const auto* after) { take_in(before, after); });
  known.policies.observe([this](const auto* before, const auto* after) { take_in(before, after); });
  known.rules.observe([this](const api::compiled_rules*, const api::compiled_rules* after) {
    if (!after || after->key == api::compiled_rules::only()) learn_keys(after);
  });
}

bool account::synced() const {
  return known_.pods.synced() && known_.nodes.synced() && known_.rules.synced() && known_.quotas.synced() &&
         known_.old_quotas.synced() && known_.cards.synced();
}

const accelerator_policy* account::policy() const { return known_.policies.find(policy_key); }

void account::learn_keys(const api::compiled_rules* now) {
  decltype(declared_) keys;
  if (now) {
    for (auto& key : now->keys()) keys.insert(std::move(key));
  }
  if (keys == declared_) return;
  declared_ = std::move(keys);
  all_anew();
}

void account::all_anew() {
  for (const auto& node : known_.nodes.all()) put(node);
  for (const auto& pod : known_.pods.all()) book(pod);
}

void account::put(const kube::node& node) {
  const auto* reports = known_.cards.find(node.key);
  auto cards = reports ? std::span(reports->cards) : std::span<const api::reported_card>();
  std::vector<api::reported_card> usable;
  if (brake_.holds_back(node.key.name)) {
    usable.assign(cards.begin(), cards.end());
    for (auto& card : usable) card.health.clear();
    cards = usable;
  }
  std::optional<accelerator_policy> in_place;
  if (const auto* rules = policy()) in_place = policy_in_place(*rules, node, gaps_.follows_placement(node.key.name));
  auto now = node_of(node, in_place ? &*in_place : policy(), keys(), cards);
  const bool is_served = node.labels.contains(api::names::module_label);
  now.changes_mode = now.changes_mode || (is_served && gaps_.has(node.key.name));
  const auto before = book_.view(node.key.name);
  const auto renamed = before ? renamed_cards(*before->inventory, now) : names_by_name();
  const bool same_charges = before && charged_alike(*before->inventory, now);
  book_.put(std::move(now));
  if (!renamed.empty()) rename(node.key.name, renamed);
  if (!same_charges && !limited_.empty()) charge_holders(*book_.view(node.key.name)->inventory);
  const auto match = waiting_.find(node.key.name);
  if (match == waiting_.end()) return;
  const auto pods = std::move(match->second);
  waiting_.erase(match);
  for (const auto& key : pods)
    if (const auto* pod = known_.pods.find(key)) book(*pod);
}

void account::rename(const std::string& node, const std::unordered_map<std::string, std::string>& cards) {
  std::vector<std::pair<std::string, quota::ledger::entry>> changed;
  book_.for_each([&](const std::string& uid, const quota::ledger::entry& entry) {
    if (entry.held.node == node) changed.emplace_back(uid, entry);
  });
  for (auto& [uid, entry] : changed) {
    for (auto& grant : entry.held.grants)
      if (const auto match = cards.find(grant.card); match != cards.end()) grant.card = match->second;
    book_.restore(uid, entry);
  }
}

void account::put(const std::string& name) {
  if (const auto* node = known_.nodes.find({{}, name})) put(*node);
}

void account::take_in(const api::accelerator_node* before, const api::accelerator_node* after) {
  const auto& name = (after ? after : before)->key.name;
  const bool was_held = brake_.holds_back(name);
  const auto others = brake_.take(before, after);
  const bool is_held = brake_.holds_back(name);
  if (!before || !after || before->cards != after->cards || was_held != is_held) put(name);
  for (const auto& other : others) put(other);
  publish_brake();
  if (on_room_ && (!others.empty() || usable_cards(after) > usable_cards(before))) on_room_();
}

void account::take_in(const accelerator_policy* before, const accelerator_policy* after) {
  if (const auto* rules = policy(); !rules || !before || !after || before->health != after->health) {
    for (const auto& node : brake_.allow((rules ? rules->health : health_spec()).max_withdrawn)) put(node);
    publish_brake();
    if (on_room_) on_room_();
  }
  if (before && after && before->modules == after->modules) return;
  auto renamed = renamed_keys(policy());
  if (renamed != renamed_) {
    renamed_ = std::move(renamed);
    return all_anew();
  }
  for (const auto& node : known_.nodes.all()) put(node);
}

void account::publish_brake() {
  sick_nodes_.set(static_cast<double>(brake_.sick()));
  held_nodes_.set(static_cast<double>(brake_.held()));
  held_cards_.set(static_cast<double>(brake_.held_cards()));
  withdrawal_limit_.set(static_cast<double>(brake_.allowed()));
  const bool is_holding = brake_.held() > 0;
  if (on_brake_ && (is_holding || was_holding_)) on_brake_();
  was_holding_ = is_holding;
}

void account::take_in(const kube::node* before, const kube::node* after) {
  if (!after) return book_.remove(before->key.name);
  put(*after);
  if (on_room_) on_room_();
}

void account::take_in(const kube::pod* before, const kube::pod* after) {
  note_nomination(before, after);
  if (const auto node = gaps_.take(before, after, controller::boot_now()); !node.empty()) {
    put(node);
    if (on_room_ && !gaps_.has(node)) on_room_();
  }
  if (before && after && same(*before, *after)) return;
  if (before && (!after || after->id != before->id)) release(before->id);
  if (after) book(*after);
}

void account::note_nomination(const kube::pod* before, const kube::pod* after) {
  const auto waits = [](const kube::pod* pod) {
    return pod && !pod->nominated_node.empty() && pod->node_name.empty() && !pod->finished() && !pod->deleting;
  };
  const bool was = waits(before), is = waits(after);
  if (was && is && before->nominated_node == after->nominated_node) return;
  if (was)
    if (const auto match = nominated_.find(before->nominated_node.front()); match != nominated_.end()) {
      match->second.erase(before->key);
      if (match->second.empty()) nominated_.erase(match);
    }
  if (is) nominated_[after->nominated_node.front()].insert(after->key);
  if (was && !is && on_room_) on_room_();
}

std::vector<const kube::pod*> account::nominated(const kube::pod& pod, std::string_view node) const {
  std::vector<const kube::pod*> out;
  const auto match = nominated_.find(node);
  if (match == nominated_.end()) return out;
  for (const auto& key : match->second) {
    const auto* other = known_.pods.find(key);
    if (!other || other->id == pod.id || other->priority < pod.priority) continue;
    if (!book_.find(other->id.to_string())) out.push_back(other);  // else it is counted already
  }
  std::ranges::sort(out, {}, [](const kube::pod* candidate) {
    return std::tuple(-std::int64_t{candidate->priority}, candidate->key);
  });
  if (out.size() > most_nominated) out.resize(most_nominated);
  return out;
}

/// What pods that are leaving hold of the node.
std::vector<const quota::holding*> account::leaving(std::string_view node, std::span<const std::string> gone) const {
  std::vector<const quota::holding*> out;
  for (const auto& pod : known_.pods.all()) {
    if (!pod.deleting || pod.node_name != node) continue;
    const auto uid = pod.id.to_string();
    const auto* entry = book_.find(uid);
    if (entry && entry->held.node == node && std::ranges::find(gone, uid) == gone.end()) out.push_back(&entry->held);
  }
  return out;
}

/// On the cards it would get now, or else on those it will get when the pods that are leaving have left.
void account::set_aside(quota::node_trial& trial, const kube::pod& pod,
                        std::span<const quota::holding* const> leaving) const {
  const pod_request request(pod, keys());
  const auto now = trial.view();
  quota::demand needs;
  if (request.nothing() || quota::read(request.containers(), now.inventory->serves, needs)) return;
  quota::placement placement;
  if (!quota::place(needs, now, {.only = request.only()}, placement).fits()) {
    if (leaving.empty()) return;
    auto later = trial;
    for (const auto* held : leaving) later.remove(*held);
    if (!quota::place(needs, later.view(), {.only = request.only()}, placement).fits()) return;
  }
  trial.add(quota::holding_of(needs, placement, *now.inventory));
}

/// Sets aside what pods before it need; the one with which it fits no more, where it fitted before. A plugin that
/// chooses knows of no nomination: where it would put the pod on another card than ours, there is no room for it
/// either.
const kube::pod* account::first_in_the_way(quota::node_trial& trial, const kube::pod& pod, const pod_request& request,
                                           const quota::demand& needs, std::span<const std::string> gone) const {
  const auto& node = *trial.view().inventory;
  const auto others = nominated(pod, node.name);
  const auto place = [&](quota::placement& placement) {
    return quota::place(needs, trial.view(), {.only = request.only()}, placement).fits();
  };
  quota::placement before, now;
  if (others.empty() || !place(before)) return nullptr;
  const auto free_soon = leaving(node.name, gone);
  for (const auto* other : others) {
    set_aside(trial, *other, free_soon);
    if (!place(now)) return other;
    if (node.serves.plugin_chooses && !std::ranges::equal(before.all(), now.all())) return other;
  }
  return nullptr;
}

const kube::pod* account::goes_before(const kube::pod& pod, const pod_request& request, std::string_view node) const {
  if (!nominated_.contains(node)) return nullptr;
  const auto node_view = book_.view(node);
  quota::demand needs;
  if (!node_view || quota::read(request.containers(), node_view->inventory->serves, needs)) return nullptr;
  quota::node_trial trial(*node_view);
  return first_in_the_way(trial, pod, request, needs, {});
}

void account::book(const kube::pod& pod) {
  if (pod.finished()) return release(pod.id);
  if (!asks(pod, keys())) return;
  if (!bound(pod)) return book_decided(pod);
  const auto view = book_.view(pod.node_name);
  if (!view) return wait_for(pod.node_name, pod.key);
  const pod_request request(pod, keys());
  const auto uid = pod.id.to_string();
  auto found = held_by(pod, *view, request);
  if (found.origin == source::none) return wait_for(pod.node_name, pod.key);  // until the node serves what it asks for
  const auto* now = book_.find(uid);
  const bool known = now && now->confirmed && now->held.node == pod.node_name;
  if (found.origin == source::guessed && known) return;
  open_.erase(uid);
  if (found.origin == source::guessed) {
    guess(pod);
  } else {
    if (const auto guesses = guessed_.find(pod.node_name); guesses != guessed_.end()) guesses->second.erase(pod.key);
    book_.record(uid, found.holding);
    charge(pod, found.holding);
    guess_again(pod.node_name);
  }
  if (const auto* entry = book_.find(uid); entry && is_over_given(entry->held))
    controller::log::warn("more of a card is given out than it has",
                          {{"node", pod.node_name}, {"pod", pod.key.to_string()}, {"source", to_string(found.origin)}});
  publish();
}

void account::guess(const kube::pod& pod) {
  book_.release(pod.id.to_string());
  guessed_[pod.node_name][pod.key] = pod.id.to_string();
  guess_again(pod.node_name, pod.key, &pod);
}

/// Guesses follow from what is recorded and from the names of pods alone, so that every replica and every start makes
/// the same, and none is in the way of a record that came later. Those of pods from `first` on are made again.
/// `newcomer` may be missing in the store.
void account::guess_again(const std::string& node, const kube::object_key& first, const kube::pod* newcomer) {
  const auto guesses = guessed_.find(node);
  if (guesses == guessed_.end()) return;
  std::vector<std::pair<const kube::pod*, std::string>> pods;
  for (auto entry = guesses->second.lower_bound(first); entry != guesses->second.end(); ++entry) {
    const auto* pod = newcomer && entry->first == newcomer->key ? newcomer : known_.pods.find(entry->first);
    if (!pod) continue;  // asked for by itself, and not in the store yet
    book_.release(entry->second);
    pods.emplace_back(pod, entry->second);
  }
  for (const auto& [pod, uid] : pods) {
    const auto view = book_.view(node);
    if (!view) continue;
    const auto found = held_by(*pod, *view, pod_request(*pod, keys()));
    if (found.origin == source::none) continue;
    book_.record(uid, found.holding);
    charge(*pod, found.holding);
  }
}

void account::forget_guess(const std::string& node, const std::string& uid) {
  const auto guesses = guessed_.find(node);
  if (guesses == guessed_.end()) return;
  const auto guess = std::ranges::find(guesses->second, uid, [](const auto& entry) { return entry.second; });
  const auto first = guess == guesses->second.end() ? kube::object_key() : guess->first;
  if (guess != guesses->second.end()) guesses->second.erase(guess);
  if (guesses->second.empty())
    guessed_.erase(guesses);
  else
    guess_again(node, first);
}

/// Of the cards that this pod has.
bool account::is_over_given(const quota::holding& held) const {
  const auto view = book_.view(held.node);
  if (!view) return false;
  for (std::size_t i = 0; i < std::min(view->used.size(), view->inventory->cards.size()); ++i) {
    const auto& card = view->inventory->cards[i];
    const bool is_its = std::ranges::find(held.grants, card.uuid, &quota::grant::card) != held.grants.end();
    if (is_its && quota::beyond(card, view->used[i])) return true;
  }
  return false;
}

/// A decision at filter that stands on a pod no one has bound yet: of an earlier leader, or our own of a moment ago.
void account::book_decided(const kube::pod& pod) {
  const auto node = planned_node(pod);
  if (node.empty() || pod.deleting || book_.find(pod.id.to_string())) return;
  const auto view = book_.view(node);
  if (!view) return wait_for(node, pod.key);
  const pod_request request(pod, keys());
  auto holding = planned(pod, node, request);
  if (holding) use_own_names(*holding, *view->inventory);
  quota::demand needs;
  if (holding && !quota::read(request.containers(), view->inventory->serves, needs) &&
      covers(*holding, needs, *view->inventory))
    decide(pod, *holding, controller::boot_now());
}

void account::wait_for(const std::string& node, const kube::object_key& pod) { waiting_[node].insert(pod); }

quota::booked account::assume(const kube::pod& pod, const quota::holding& holding, controller::milliseconds now) {
  auto uid = pod.id.to_string();
  const auto outcome = book_.assume(uid, holding, for_ever);
  if (outcome == quota::booked::done) {
    charge(pod, holding);
    open_[std::move(uid)] = {pod.key, holding.node, now};
  }
  publish();
  return outcome;
}

quota::booked account::decide(const kube::pod& pod, const quota::holding& holding, controller::milliseconds now) {
  const auto outcome = assume(pod, holding, now);
  if (outcome == quota::booked::done) open_[pod.id.to_string()].at_filter = true;
  return outcome;
}

void account::release(const kube::uid& pod) {
  const auto uid = pod.to_string();
  open_.erase(uid);
  limits_.release(uid);
  const auto* entry = book_.find(uid);
  const auto node = entry ? entry->held.node : std::string();
  if (!book_.release(uid)) return;
  forget_guess(node, uid);
  publish();
  if (on_room_) on_room_();
}

void account::learn_limits(const std::string& ns) {
  std::vector<const api::accelerator_quota*> objects;
  for (const auto& entry : known_.quotas.all())
    if (entry.key.ns == ns) objects.push_back(&entry);
  const auto old = std::ranges::find(old_limits_, ns, &quota::tenant::name_space);
  if (objects.empty() && old == old_limits_.end()) {
    limits_.remove(ns);
    if (limited_.erase(ns) > 0)
      for (const auto& pod : known_.pods.all())
        if (pod.key.ns == ns) limits_.release(pod.id.to_string());
    return;
  }
  auto now = api::tenant_of(ns, std::move(objects));
  if (old != old_limits_.end()) api::add(now, *old);
  limits_.put(std::move(now));
  if (!limited_.insert(ns).second) return;
  for (const auto& pod : known_.pods.all())
    if (const auto* entry = pod.key.ns == ns ? book_.find(pod.id.to_string()) : nullptr) charge(pod, entry->held);
}

void account::learn_old_limits(const kube::config_map* now) {
  auto read = api::read_gpu_quota(now ? now->data.value_or(api::gpu_quota_key, "") : "");
  if (!read) {
    old_trouble_ = std::move(read.error());
    controller::log::error(
        "a ConfigMap of quotas cannot be read; what it said before holds",
        {{"config_map", "kube-system/gpuquota"}, {"key", api::gpu_quota_key}, {"error", old_trouble_}});
    return;
  }
  old_trouble_.clear();
  std::set<std::string> concerned;
  for (const auto* list : {&old_limits_, &*read})
    for (const auto& entry : *list) concerned.insert(entry.name_space);
  old_limits_ = std::move(*read);
  for (const auto& ns : concerned) learn_limits(ns);
}

/// What no one limits is not charged: a cluster without quotas keeps no second book.
void account::charge(const kube::pod& pod, const quota::holding& held) {
  if (!limited(pod.key.ns)) return;
  const auto view = book_.view(held.node);
  if (!view) return;
  limits_.book(pod.id.to_string(), pod.key.ns,
               quota::charges_of(held, view->inventory, traits_of(pod, *view->inventory)));
}

bool account::charged_rightly(const kube::pod& pod, const quota::holding& held) const {
  const auto* booked = limits_.find(pod.id.to_string());
  if (!limited(pod.key.ns)) return !booked;
  const auto view = book_.view(held.node);
  return booked && booked->name_space == pod.key.ns &&
         booked->charges == quota::charges_of(held, view->inventory, traits_of(pod, *view->inventory));
}

/// The node has another pool, other models or another way to keep shares apart: its pods are charged by those now.
void account::charge_holders(const quota::node_inventory& node) {
  std::vector<std::pair<std::string, std::vector<quota::charge>>> charges;
  book_.for_each([&](const std::string& uid, const quota::ledger::entry& entry) {
    if (entry.held.node != node.name) return;
    const auto* booked = limits_.find(uid);
    if (!booked || booked->charges.empty()) return;
    const quota::traits traits{.priority = booked->charges.front().priority,
                               .isolated = quota::isolation_of(node.serves)};
    charges.emplace_back(uid, quota::charges_of(entry.held, &node, traits));
  });
  for (auto& [uid, items] : charges) {
    const auto name_space = limits_.find(uid)->name_space;
    limits_.book(uid, name_space, std::move(items));
  }
}

std::optional<quota::exceeded_limit> account::over(const kube::pod& pod, const pod_request& request,
                                                   const quota::node_inventory& node) const {
  if (!limited(pod.key.ns)) return {};
  quota::demand needs;
  if (quota::read(request.containers(), node.serves, needs)) return {};  // refused for its words
  auto charges = quota::charges_of(needs, traits_of(pod, node));
  for (auto& charge : charges) {
    charge.pool = node.pool;
    if (node.cards.empty()) continue;
    const auto& card = node.cards.front();
    charge.model = card.model;
    std::int64_t memory = 0;
    for (const auto& need : needs.needs())
      if (charges.size() == 1 || need.whole == (charge.isolated == quota::isolation::exclusive))
        memory += need.cards * (need.whole ? card.memory_mib : need.memory_on(card));
    charge.amounts[static_cast<std::size_t>(quota::resource::memory)] = memory;
  }
  return limits_.check(pod.id.to_string(), pod.key.ns, charges);
}

std::string account::fitting::reason() const {
  if (limit) return api::words_of(*limit, text::language::en);
  if (const auto* text = std::get_if<std::string>(&cause)) return *text;
  if (const auto* refusal = std::get_if<quota::refusal>(&cause)) return api::words_of(*refusal, text::language::en);
  return api::words_of(std::get<quota::shortfall>(cause), text::language::en);
}

account::fitting account::try_on(const kube::pod& pod, const pod_request& request, std::string_view node,
                                 std::span<const std::string> gone) const {
  const auto node_view = book_.view(node);
  if (!node_view) return {.cause = quota::shortfall{.code = quota::reason::no_node}};
  if (node_view->inventory->changes_mode) return {.cause = quota::shortfall{.code = quota::reason::changes_mode}};
  quota::demand needs;
  if (const auto no = quota::read(request.containers(), node_view->inventory->serves, needs)) return {.cause = *no};
  if (auto no = kubelet_rejects(pod, known_.nodes.find({{}, std::string(node)})); !no.empty())
    return {.cause = std::move(no)};
  quota::node_trial trial(*node_view);
  for (const auto& uid : gone)
    if (const auto* entry = book_.find(uid); entry && entry->held.node == node) trial.remove(entry->held);
  if (const auto* other = first_in_the_way(trial, pod, request, needs, gone))
    return {.cause = text::message(other->priority > pod.priority ? "engine.kept_for_higher" : "engine.kept_for_same",
                                   text::language::en, {{"pod", other->key.to_string()}})};
  const auto view = trial.view();
  std::vector<std::string> refused;
  std::optional<quota::exceeded_limit> limit;
  for (;;) {
    quota::placement placement;
    const auto shortfall = quota::place(needs, view, {.only = request.only(), .except_models = refused}, placement);
    if (!shortfall.fits() && limit) return {.limit = std::move(limit)};
    if (!shortfall.fits()) return {.cause = shortfall};
    auto held = quota::holding_of(needs, placement, *view.inventory);
    if (!limited(pod.key.ns)) return {.held = std::move(held)};
    auto no = limits_.check(pod.id.to_string(), pod.key.ns,
                            quota::charges_of(held, view.inventory, traits_of(pod, *view.inventory)), gone);
    if (!no) return {.held = std::move(held)};
    if (!limit) limit = no;
    const bool again = no->rule != quota::exceeded_limit::kind::pool && !no->model.empty() &&
                       std::ranges::find(refused, no->model) == refused.end();
    if (!again) return {.limit = std::move(limit)};
    refused.push_back(no->model);
  }
}

std::size_t account::audit() {
  for (const auto& node : gaps_.expire(controller::boot_now())) put(node);
  std::size_t found = 0;
  const auto differs = [&](std::string_view kind) {
    ++found;
    differences_.with({kind}).add();
  };
  std::unordered_set<std::string> holders;
  for (const auto& pod : known_.pods.all()) {
    if (!bound(pod) || !asks(pod, keys())) continue;
    auto uid = pod.id.to_string();
    const auto* now = book_.find(uid);
    const bool there = book_.view(pod.node_name).has_value();
    if (there && !now) {
      book(pod);
      if (book_.find(uid)) differs("missing");  // what the node does not serve is not booked
    } else if (now && now->held.node != pod.node_name) {
      differs("different");
      book(pod);
    } else if (now && there && !charged_rightly(pod, now->held)) {
      differs("charge");
      limits_.release(uid);
      charge(pod, now->held);
    }
    holders.insert(std::move(uid));
  }
  std::vector<std::string> extra;
  book_.for_each([&](const std::string& uid, const quota::ledger::entry& entry) {
    if (entry.confirmed && !holders.contains(uid)) extra.push_back(uid);
  });
  for (const auto& uid : extra) {
    differs("extra");
    limits_.release(uid);
    book_.release(uid);
  }
  std::size_t index = 0;
  for (const auto& node : known_.nodes.all()) index += book_.over_given(node.key.name);
  over_given_.set(static_cast<double>(index));
  publish();
  if (!extra.empty() && on_room_) on_room_();
  return found;
}

void account::publish() {
  assumed_entries_.set(static_cast<double>(open_.size()));
  confirmed_entries_.set(static_cast<double>(book_.size() - open_.size()));
}

}  // namespace reconcilers::extender
