#include "reconcilers/extender/account.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "controller/log.hpp"
#include "reconcilers/names.hpp"

namespace reconcilers::extender {
namespace {

constexpr auto for_ever = std::numeric_limits<std::int64_t>::max();  // what is assumed ends by what the API says

bool bound(const kube::pod& of) { return !of.node_name.empty() && !of.finished(); }

/// Nothing of what is booked follows from the difference.
bool same(const kube::pod& a, const kube::pod& b) {
  return a.id == b.id && a.node_name == b.node_name && a.finished() == b.finished() && a.annotations == b.annotations &&
         a.containers == b.containers;
}

}  // namespace

account::account(stores known, controller::registry& metrics)
    : known_(known),
      differences_(metrics.counters("quartermaster_ledger_differences_total",
                                    "Entries of the ledger that differed from the API and were repaired: missing, "
                                    "extra, different.",
                                    {"kind"})),
      confirmed_entries_(metrics.make_gauge("quartermaster_ledger_confirmed_entries", "Pods that hold something.")),
      assumed_entries_(metrics.make_gauge("quartermaster_ledger_assumed_entries",
                                          "Pods whose Binding was sent and is not seen yet.")),
      over_given_(metrics.make_gauge("quartermaster_ledger_over_given",
                                     "Cards and keys of which more is given out than there is, at the last audit.")) {
  learn_keys(known.rules.find(compiled_rules::only()));
  for (const auto& one : known.nodes.all()) put(one);
  for (const auto& one : known.pods.all()) book(one);
  known.nodes.observe([this](const auto* before, const auto* after) { take_in(before, after); });
  known.pods.observe([this](const auto* before, const auto* after) { take_in(before, after); });
  known.policies.observe([this](const accelerator_policy* before, const accelerator_policy* after) {
    if (!before || !after || before->modules != after->modules)
      for (const auto& one : known_.nodes.all()) put(one);
  });
  known.rules.observe([this](const compiled_rules*, const compiled_rules* after) {
    if (!after || after->key == compiled_rules::only()) learn_keys(after);
  });
}

bool account::synced() const { return known_.pods.synced() && known_.nodes.synced() && known_.rules.synced(); }

const accelerator_policy* account::policy() const { return known_.policies.find({{}, std::string(names::policy)}); }

void account::learn_keys(const compiled_rules* now) {
  decltype(declared_) keys;
  if (now) {
    const auto spec = nlohmann::json::parse(now->spec, nullptr, false);
    if (spec.is_object())
      for (const auto& one : spec.value("keys", nlohmann::json::array()))
        if (one.is_string()) keys.insert(one.get<std::string>());
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
  book_.put(node_of(of, policy(), keys()));
  const auto at = waiting_.find(of.key.name);
  if (at == waiting_.end()) return;
  const auto pods = std::move(at->second);
  waiting_.erase(at);
  for (const auto& key : pods)
    if (const auto* pod = known_.pods.find(key)) book(*pod);
}

void account::take_in(const kube::node* before, const kube::node* after) {
  if (!after) return book_.remove(before->key.name);
  put(*after);
  if (on_room_) on_room_();
}

void account::take_in(const kube::pod* before, const kube::pod* after) {
  if (before && after && same(*before, *after)) return;
  if (before && (!after || after->id != before->id)) release(before->id);
  if (after) book(*after);
}

void account::book(const kube::pod& of) {
  if (of.finished()) return release(of.id);
  if (!bound(of) || !asks(of, keys())) return;
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
  open_.erase(uid);
  if (how == quota::booked::over_given)
    controller::log::warn("more is given out than the node has",
                          {{"node", of.node_name}, {"pod", of.key.to_string()}, {"source", to_string(found.from)}});
  publish();
}

void account::wait_for(const std::string& node, const kube::object_key& pod) { waiting_[node].insert(pod); }

quota::booked account::assume(const kube::pod& pod, const quota::holding& what, controller::milliseconds now) {
  auto uid = pod.id.to_string();
  const auto how = book_.assume(uid, what, for_ever);
  if (how == quota::booked::done) open_[std::move(uid)] = {pod.key, what.node, now};
  publish();
  return how;
}

void account::release(const kube::uid& pod) {
  const auto uid = pod.to_string();
  open_.erase(uid);
  if (!book_.release(uid)) return;
  publish();
  if (on_room_) on_room_();
}

std::optional<account::room> account::without(std::string_view node, std::span<const kube::uid> pods) const {
  const auto view = book_.view(node);
  if (!view) return {};
  room out{{view->used.begin(), view->used.end()}, {view->counts_used.begin(), view->counts_used.end()}};
  for (const auto& uid : pods) {
    const auto* one = book_.find(uid.to_string());
    if (!one || one->held.node != node) continue;
    for (const auto& grant : one->held.grants) {
      const auto at = std::ranges::find(view->what->cards, grant.card, &quota::card::uuid) - view->what->cards.begin();
      if (static_cast<std::size_t>(at) >= out.used.size()) continue;
      auto& now = out.used[static_cast<std::size_t>(at)];
      if (grant.whole) {
        --now.wholes;
      } else {
        --now.sharers;
        now.cores -= grant.cores;
        now.memory_mib -= grant.memory_mib;
      }
    }
    for (const auto& count : one->held.counts) {
      const auto at = std::ranges::find(view->what->counts, count.key, &quota::count::key) - view->what->counts.begin();
      if (static_cast<std::size_t>(at) < out.counts_used.size())
        out.counts_used[static_cast<std::size_t>(at)] -= count.amount;
    }
  }
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
      differs("missing");
      book(pod);
    } else if (now && now->held.node != pod.node_name) {
      differs("different");
      book(pod);
    }
    holders.insert(std::move(uid));
  }
  std::vector<std::string> extra;
  book_.for_each([&](const std::string& uid, const quota::ledger::entry& one) {
    if (one.confirmed && !holders.contains(uid)) extra.push_back(uid);
  });
  for (const auto& uid : extra) {
    differs("extra");
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
