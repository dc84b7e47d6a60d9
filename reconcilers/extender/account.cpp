#include "reconcilers/extender/account.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <tuple>

#include "api/gpu_quota.hpp"
#include "api/names.hpp"
#include "controller/log.hpp"
#include "quota/place.hpp"

namespace reconcilers::extender {
namespace {

/// Of one node, by priority: what more pods than this need is not set aside, so that a call stays short.
constexpr std::size_t most_nominated = 64;
constexpr auto for_ever = std::numeric_limits<std::int64_t>::max();  // what is assumed ends by what the API says

bool bound(const kube::pod& of) { return !of.node_name.empty() && !of.finished(); }

quota::traits traits_of(const kube::pod& of, const quota::node& on) {
  return {.priority = of.priority, .isolated = quota::isolation_of(on.serves)};
}

/// Nothing of what is booked follows from the difference.
bool same(const kube::pod& a, const kube::pod& b) {
  return a.id == b.id && a.node_name == b.node_name && a.finished() == b.finished() && a.annotations == b.annotations &&
         a.containers == b.containers;
}

/// Do the same grants cost the same on both?
bool charged_alike(const quota::node& a, const quota::node& b) {
  return a.pool == b.pool && a.serves == b.serves &&
         std::ranges::equal(a.cards, b.cards, [](const quota::card& one, const quota::card& other) {
           return one.uuid == other.uuid && one.model == other.model && one.memory_mib == other.memory_mib;
         });
}

/// Cards that keep their number and have another name: an agent has begun to report them, or does no more.
using names_by_name = std::unordered_map<std::string, std::string>;
names_by_name renamed_cards(const quota::node& before, const quota::node& now) {
  const auto number = [](const quota::node& of, std::size_t at) {
    return of.cards[at].minor >= 0 ? static_cast<std::size_t>(of.cards[at].minor) : at;
  };
  const auto has = [](const quota::node& of, const std::string& uuid) {
    return std::ranges::find(of.cards, uuid, &quota::card::uuid) != of.cards.end();
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

account::account(stores known, controller::registry& metrics)
    : known_(known),
      differences_(metrics.counters("quartermaster_ledger_differences_total",
                                    "Entries of the ledger that differed from the API and were repaired: missing, "
                                    "extra, different, charge (of limits).",
                                    {"kind"})),
      confirmed_entries_(metrics.make_gauge("quartermaster_ledger_confirmed_entries", "Pods that hold something.")),
      assumed_entries_(metrics.make_gauge("quartermaster_ledger_assumed_entries",
                                          "Pods whose Binding was sent and is not seen yet.")),
      over_given_(metrics.make_gauge("quartermaster_ledger_over_given",
                                     "Cards and keys of which more is given out than there is, at the last audit.")) {
  renamed_ = renamed_keys(policy());
  learn_keys(known.rules.find(compiled_rules::only()));
  for (const auto& one : known.quotas.all()) learn_limits(one.key.ns);
  for (const auto& one : known.old_quotas.all()) learn_old_limits(&one);
  for (const auto& one : known.nodes.all()) put(one);
  for (const auto& one : known.pods.all()) note_nomination(nullptr, &one), book(one);
  known.quotas.observe([this](const accelerator_quota* before, const accelerator_quota* after) {
    learn_limits((after ? after : before)->key.ns);
    if (on_room_) on_room_();
  });
  known.old_quotas.observe([this](const kube::config_map*, const kube::config_map* after) {
    learn_old_limits(after);
    if (on_room_) on_room_();
  });
  known.nodes.observe([this](const auto* before, const auto* after) { take_in(before, after); });
  known.pods.observe([this](const auto* before, const auto* after) { take_in(before, after); });
  known.cards.observe([this](const accelerator_node* before, const accelerator_node* after) {
    if (before && after && before->cards == after->cards) return;
    if (const auto* node = known_.nodes.find({{}, (after ? after : before)->key.name})) put(*node);
  });
  known.policies.observe([this](const accelerator_policy* before, const accelerator_policy* after) {
    if (before && after && before->modules == after->modules) return;
    auto renamed = renamed_keys(policy());
    if (renamed != renamed_) {
      renamed_ = std::move(renamed);
      return all_anew();
    }
    for (const auto& one : known_.nodes.all()) put(one);
  });
  known.rules.observe([this](const compiled_rules*, const compiled_rules* after) {
    if (!after || after->key == compiled_rules::only()) learn_keys(after);
  });
}

bool account::synced() const {
  return known_.pods.synced() && known_.nodes.synced() && known_.rules.synced() && known_.quotas.synced() &&
         known_.old_quotas.synced() && known_.cards.synced();
}

const accelerator_policy* account::policy() const { return known_.policies.find({{}, std::string(names::policy)}); }

void account::learn_keys(const compiled_rules* now) {
  decltype(declared_) keys;
  if (now) {
    for (auto& one : now->keys()) keys.insert(std::move(one));
  }
  if (keys == declared_) return;
  declared_ = std::move(keys);
  all_anew();
}

void account::all_anew() {
  for (const auto& one : known_.nodes.all()) put(one);
  for (const auto& one : known_.pods.all()) book(one);
}

void account::put(const kube::node& of) {
  const auto* reports = known_.cards.find(of.key);
  const auto cards = reports ? std::span(reports->cards) : std::span<const reported_card>();
  auto now = node_of(of, policy(), keys(), cards);
  const auto before = book_.view(of.key.name);
  const auto renamed = before ? renamed_cards(*before->what, now) : names_by_name();
  const bool same_charges = before && charged_alike(*before->what, now);
  book_.put(std::move(now));
  if (!renamed.empty()) rename(of.key.name, renamed);
  if (!same_charges && !limited_.empty()) charge_holders(*book_.view(of.key.name)->what);
  const auto at = waiting_.find(of.key.name);
  if (at == waiting_.end()) return;
  const auto pods = std::move(at->second);
  waiting_.erase(at);
  for (const auto& key : pods)
    if (const auto* pod = known_.pods.find(key)) book(*pod);
}

void account::rename(const std::string& node, const std::unordered_map<std::string, std::string>& cards) {
  std::vector<std::pair<std::string, quota::ledger::entry>> changed;
  book_.for_each([&](const std::string& uid, const quota::ledger::entry& one) {
    if (one.held.node == node) changed.emplace_back(uid, one);
  });
  for (auto& [uid, one] : changed) {
    for (auto& grant : one.held.grants)
      if (const auto at = cards.find(grant.card); at != cards.end()) grant.card = at->second;
    book_.restore(uid, one);
  }
}

void account::take_in(const kube::node* before, const kube::node* after) {
  if (!after) return book_.remove(before->key.name);
  put(*after);
  if (on_room_) on_room_();
}

void account::take_in(const kube::pod* before, const kube::pod* after) {
  note_nomination(before, after);
  if (before && after && same(*before, *after)) return;
  if (before && (!after || after->id != before->id)) release(before->id);
  if (after) book(*after);
}

void account::note_nomination(const kube::pod* before, const kube::pod* after) {
  const auto waits = [](const kube::pod* of) {
    return of && !of->nominated_node.empty() && of->node_name.empty() && !of->finished() && !of->deleting;
  };
  const bool was = waits(before), is = waits(after);
  if (was && is && before->nominated_node == after->nominated_node) return;
  if (was)
    if (const auto at = nominated_.find(before->nominated_node.front()); at != nominated_.end()) {
      at->second.erase(before->key);
      if (at->second.empty()) nominated_.erase(at);
    }
  if (is) nominated_[after->nominated_node.front()].insert(after->key);
  if (was && !is && on_room_) on_room_();
}

std::vector<const kube::pod*> account::nominated(const kube::pod& pod, std::string_view node) const {
  std::vector<const kube::pod*> out;
  const auto at = nominated_.find(node);
  if (at == nominated_.end()) return out;
  for (const auto& key : at->second) {
    const auto* other = known_.pods.find(key);
    if (!other || other->id == pod.id || other->priority < pod.priority) continue;
    if (!book_.find(other->id.to_string())) out.push_back(other);  // else it is counted already
  }
  std::ranges::sort(out, {}, [](const kube::pod* one) { return std::tuple(-std::int64_t{one->priority}, one->key); });
  if (out.size() > most_nominated) out.resize(most_nominated);
  return out;
}

/// What pods that are leaving hold of the node.
std::vector<const quota::holding*> account::leaving(std::string_view node, std::span<const std::string> gone) const {
  std::vector<const quota::holding*> out;
  for (const auto& one : known_.pods.all()) {
    if (!one.deleting || one.node_name != node) continue;
    const auto uid = one.id.to_string();
    const auto* entry = book_.find(uid);
    if (entry && entry->held.node == node && std::ranges::find(gone, uid) == gone.end()) out.push_back(&entry->held);
  }
  return out;
}

/// On the cards it would get now, or else on those it will get when the pods that are leaving have left.
void account::set_aside(quota::node_trial& on, const kube::pod& pod,
                        std::span<const quota::holding* const> leaving) const {
  const asked by(pod, keys());
  const auto now = on.view();
  quota::demand needs;
  if (by.nothing() || quota::read(by.containers(), now.what->serves, needs)) return;
  quota::placement where;
  if (!quota::place(needs, now, {.only = by.only()}, where).fits()) {
    if (leaving.empty()) return;
    auto later = on;
    for (const auto* held : leaving) later.remove(*held);
    if (!quota::place(needs, later.view(), {.only = by.only()}, where).fits()) return;
  }
  on.add(quota::holding_of(needs, where, *now.what));
}

/// Sets aside what pods before it need; the one with which it fits no more, where it fitted before. gpu-manager knows
/// of no nomination: where it would put the pod on another card than ours, there is no room for it either.
const kube::pod* account::first_in_the_way(quota::node_trial& on, const kube::pod& pod, const asked& by,
                                           const quota::demand& needs, std::span<const std::string> gone) const {
  const auto& node = *on.view().what;
  const auto others = nominated(pod, node.name);
  const auto place = [&](quota::placement& where) {
    return quota::place(needs, on.view(), {.only = by.only()}, where).fits();
  };
  quota::placement before, now;
  if (others.empty() || !place(before)) return nullptr;
  const auto free_soon = leaving(node.name, gone);
  for (const auto* other : others) {
    set_aside(on, *other, free_soon);
    if (!place(now)) return other;
    if (node.serves.has(quota::mode::vgpu) && !std::ranges::equal(before.all(), now.all())) return other;
  }
  return nullptr;
}

const kube::pod* account::goes_before(const kube::pod& pod, const asked& by, std::string_view node) const {
  if (!nominated_.contains(node)) return nullptr;
  const auto on = book_.view(node);
  quota::demand needs;
  if (!on || quota::read(by.containers(), on->what->serves, needs)) return nullptr;
  quota::node_trial trial(*on);
  return first_in_the_way(trial, pod, by, needs, {});
}

void account::book(const kube::pod& of) {
  if (of.finished()) return release(of.id);
  if (!asks(of, keys())) return;
  if (!bound(of)) return book_decided(of);
  const auto view = book_.view(of.node_name);
  if (!view) return wait_for(of.node_name, of.key);
  const asked by(of, keys());
  const auto uid = of.id.to_string();
  auto found = held_by(of, *view, by);
  if (found.from == source::none) return;
  const auto* now = book_.find(uid);
  const bool known = now && now->confirmed && now->held.node == of.node_name;
  if (found.from == source::guessed && known) return;  // one guess is as good as the next
  const auto how = book_.record(uid, found.what);
  charge(of, found.what);
  open_.erase(uid);
  if (how == quota::booked::over_given)
    controller::log::warn("more is given out than the node has",
                          {{"node", of.node_name}, {"pod", of.key.to_string()}, {"source", to_string(found.from)}});
  publish();
}

/// A decision at filter that stands on a pod nobody has bound yet: of an earlier leader, or of ours a moment ago.
void account::book_decided(const kube::pod& of) {
  const auto node = planned_node(of);
  if (node.empty() || of.deleting || book_.find(of.id.to_string())) return;
  const auto view = book_.view(node);
  if (!view) return wait_for(node, of.key);
  const asked by(of, keys());
  auto what = planned(of, node, by);
  if (what) use_own_names(*what, *view->what);
  quota::demand needs;
  if (what && !quota::read(by.containers(), view->what->serves, needs) && covers(*what, needs, *view->what))
    decide(of, *what, controller::boot_now());
}

void account::wait_for(const std::string& node, const kube::object_key& pod) { waiting_[node].insert(pod); }

quota::booked account::assume(const kube::pod& pod, const quota::holding& what, controller::milliseconds now) {
  auto uid = pod.id.to_string();
  const auto how = book_.assume(uid, what, for_ever);
  if (how == quota::booked::done) {
    charge(pod, what);
    open_[std::move(uid)] = {pod.key, what.node, now};
  }
  publish();
  return how;
}

quota::booked account::decide(const kube::pod& pod, const quota::holding& what, controller::milliseconds now) {
  const auto how = assume(pod, what, now);
  if (how == quota::booked::done) open_[pod.id.to_string()].at_filter = true;
  return how;
}

void account::release(const kube::uid& pod) {
  const auto uid = pod.to_string();
  open_.erase(uid);
  limits_.release(uid);
  if (!book_.release(uid)) return;
  publish();
  if (on_room_) on_room_();
}

void account::learn_limits(const std::string& ns) {
  std::vector<const accelerator_quota*> objects;
  for (const auto& one : known_.quotas.all())
    if (one.key.ns == ns) objects.push_back(&one);
  const auto old = std::ranges::find(old_limits_, ns, &quota::tenant::name_space);
  if (objects.empty() && old == old_limits_.end()) {
    limits_.remove(ns);
    if (limited_.erase(ns) > 0)
      for (const auto& pod : known_.pods.all())
        if (pod.key.ns == ns) limits_.release(pod.id.to_string());
    return;
  }
  auto now = tenant_of(ns, std::move(objects));
  if (old != old_limits_.end()) add(now, *old);
  limits_.put(std::move(now));
  if (!limited_.insert(ns).second) return;
  for (const auto& pod : known_.pods.all())
    if (const auto* entry = pod.key.ns == ns ? book_.find(pod.id.to_string()) : nullptr) charge(pod, entry->held);
}

void account::learn_old_limits(const kube::config_map* now) {
  auto read = read_gpu_quota(now ? now->data.value_or(gpu_quota_key, "") : "");
  if (!read) {
    old_trouble_ = std::move(read.error());
    controller::log::error("a ConfigMap of quotas cannot be read; what it said before holds",
                           {{"config_map", "kube-system/gpuquota"}, {"key", gpu_quota_key}, {"error", old_trouble_}});
    return;
  }
  old_trouble_.clear();
  std::set<std::string> concerned;
  for (const auto* list : {&old_limits_, &*read})
    for (const auto& one : *list) concerned.insert(one.name_space);
  old_limits_ = std::move(*read);
  for (const auto& ns : concerned) learn_limits(ns);
}

/// What nobody limits is not charged: a cluster without quotas keeps no second book.
void account::charge(const kube::pod& of, const quota::holding& held) {
  if (!limited(of.key.ns)) return;
  const auto view = book_.view(held.node);
  if (!view) return;
  limits_.book(of.id.to_string(), of.key.ns, quota::charges_of(held, view->what, traits_of(of, *view->what)));
}

bool account::charged_rightly(const kube::pod& of, const quota::holding& held) const {
  const auto* booked = limits_.find(of.id.to_string());
  if (!limited(of.key.ns)) return !booked;
  const auto view = book_.view(held.node);
  return booked && booked->name_space == of.key.ns &&
         booked->what == quota::charges_of(held, view->what, traits_of(of, *view->what));
}

/// The node has another pool, other models or another way to keep shares apart: its pods are charged by those now.
void account::charge_holders(const quota::node& on) {
  std::vector<std::pair<std::string, std::vector<quota::charge>>> charges;
  book_.for_each([&](const std::string& uid, const quota::ledger::entry& one) {
    if (one.held.node != on.name) return;
    const auto* booked = limits_.find(uid);
    if (!booked || booked->what.empty()) return;
    const quota::traits traits{.priority = booked->what.front().priority, .isolated = quota::isolation_of(on.serves)};
    charges.emplace_back(uid, quota::charges_of(one.held, &on, traits));
  });
  for (auto& [uid, what] : charges) {
    const auto name_space = limits_.find(uid)->name_space;
    limits_.book(uid, name_space, std::move(what));
  }
}

std::optional<quota::exceeded> account::over(const kube::pod& pod, const asked& by, const quota::node& on) const {
  if (!limited(pod.key.ns)) return {};
  quota::demand needs;
  if (quota::read(by.containers(), on.serves, needs)) return {};  // refused for its words
  auto charges = quota::charges_of(needs, traits_of(pod, on));
  for (auto& one : charges) {
    one.pool = on.pool;
    if (on.cards.empty()) continue;
    const auto& card = on.cards.front();
    one.model = card.model;
    std::int64_t memory = 0;
    for (const auto& need : needs.needs())
      if (charges.size() == 1 || need.whole == (one.isolated == quota::isolation::exclusive))
        memory += need.cards * (need.whole ? card.memory_mib : need.memory_on(card));
    one.of[static_cast<std::size_t>(quota::resource::memory)] = memory;
  }
  return limits_.check(pod.id.to_string(), pod.key.ns, charges);
}

account::fitting account::try_on(const kube::pod& pod, const asked& by, std::string_view node,
                                 std::span<const std::string> gone) const {
  const auto on = book_.view(node);
  if (!on) return {.held = {}, .why = std::string(quota::text_of(quota::reason::no_node)), .limit = {}};
  quota::demand needs;
  if (const auto no = quota::read(by.containers(), on->what->serves, needs))
    return {.held = {}, .why = quota::text_of(*no), .limit = {}};
  quota::node_trial trial(*on);
  for (const auto& uid : gone)
    if (const auto* entry = book_.find(uid); entry && entry->held.node == node) trial.remove(entry->held);
  if (const auto* other = first_in_the_way(trial, pod, by, needs, gone))
    return {.held = {},
            .why = "what is left is kept for pod " + other->key.to_string() +
                   ", which is nominated to this node and of " +
                   (other->priority > pod.priority ? "a higher priority" : "the same priority"),
            .limit = {}};
  const auto view = trial.view();
  std::vector<std::string> refused;
  std::optional<quota::exceeded> limit;
  for (;;) {
    quota::placement where;
    const auto how = quota::place(needs, view, {.only = by.only(), .except_models = refused}, where);
    if (!how.fits() && limit) return {.held = {}, .why = quota::text_of(*limit), .limit = std::move(limit)};
    if (!how.fits()) return {.held = {}, .why = quota::text_of(how), .limit = {}};
    auto held = quota::holding_of(needs, where, *view.what);
    if (!limited(pod.key.ns)) return {.held = std::move(held), .why = {}, .limit = {}};
    auto no = limits_.check(pod.id.to_string(), pod.key.ns,
                            quota::charges_of(held, view.what, traits_of(pod, *view.what)), gone);
    if (!no) return {.held = std::move(held), .why = {}, .limit = {}};
    if (!limit) limit = no;
    const bool again = no->what != quota::exceeded::kind::pool && !no->model.empty() &&
                       std::ranges::find(refused, no->model) == refused.end();
    if (!again) return {.held = {}, .why = quota::text_of(*limit), .limit = std::move(limit)};
    refused.push_back(no->model);
  }
}

std::set<std::string> account::models() const {
  std::set<std::string> out;
  book_.for_each_node([&](const quota::node_view& on) {
    for (const auto& card : on.what->cards)
      if (!card.model.empty()) out.insert(card.model);
  });
  return out;
}

std::size_t account::audit() {
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
  book_.for_each([&](const std::string& uid, const quota::ledger::entry& one) {
    if (one.confirmed && !holders.contains(uid)) extra.push_back(uid);
  });
  for (const auto& uid : extra) {
    differs("extra");
    limits_.release(uid);
    book_.release(uid);
  }
  std::size_t over = 0;
  for (const auto& node : known_.nodes.all()) over += book_.over_given(node.key.name);
  over_given_.set(static_cast<double>(over));
  publish();
  if (!extra.empty() && on_room_) on_room_();
  return found;
}

void account::publish() {
  assumed_entries_.set(static_cast<double>(open_.size()));
  confirmed_entries_.set(static_cast<double>(book_.size() - open_.size()));
}

}  // namespace reconcilers::extender
