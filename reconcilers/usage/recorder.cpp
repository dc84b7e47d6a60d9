#include "reconcilers/usage/recorder.hpp"

#include <algorithm>

#include "api/names.hpp"
#include "controller/sleep.hpp"
#include "quota/card_use.hpp"
#include "reconcilers/extender/placement.hpp"
#include "reconcilers/extender/request.hpp"

namespace reconcilers::usage {
namespace {

const quota::card* card_named(const quota::node_inventory* node, std::string_view uuid) {
  if (!node) return nullptr;
  const auto match = std::ranges::find(node->cards, uuid, &quota::card::uuid);
  return match == node->cards.end() ? nullptr : &*match;
}

bool may_hold(const kube::pod& pod) { return !pod.node_name.empty() && !pod.finished() && !pod.containers.empty(); }

/// About a millisecond each: that is not noticed by what waits for the loop.
constexpr std::size_t items_per_step = 200;

template <class Item, class Call>
boost::asio::awaitable<void> in_steps(std::vector<Item> items, Call call) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i % items_per_step == 0) co_await controller::yield_to_others();
    call(items[i]);
  }
}

}  // namespace

std::string_view mode_of(const quota::grant& grant, const quota::service& serves) {
  if (grant.whole) return "pGPU";
  if (grant.cores == 0 && grant.memory_mib == 0 && serves.has(quota::mode::share)) return "share";
  return serves.has(quota::mode::mps) ? "MPS" : "vGPU";
}

std::string_view mode_of_key(std::string_view key) { return key.contains("/mig-") ? "MIG" : "device"; }

std::string name_of_key(std::string_view node, std::string_view key) {
  return std::string(node).append("/").append(key);
}

std::vector<quota::usage_part> parts_of(const quota::holding& held, const quota::node_inventory* node) {
  std::vector<quota::usage_part> out;
  for (const auto& grant : held.grants) {
    const auto* card = card_named(node, grant.card);
    const auto mode = mode_of(grant, node ? node->serves : quota::service());
    quota::usage_part part{grant.card, std::string(mode), grant.whole ? quota::whole_card : grant.cores,
                           grant.whole && card ? card->memory_mib : grant.memory_mib};
    // A turn on a card has no amounts of its own: it is one of as many as the plugin offers of the card.
    if (mode == "share" && card && card->max_sharers > 0) {
      part.cores = quota::whole_card / card->max_sharers;
      part.memory_mib = card->memory_mib / card->max_sharers;
    }
    out.push_back(std::move(part));
  }
  for (const auto& [key, amount] : held.counts)
    out.push_back({name_of_key(held.node, key), std::string(mode_of_key(key)), amount * quota::whole_card, 0});
  return out;
}

std::vector<named_card> cards_of(const quota::node_inventory& node, bool is_ready) {
  std::vector<named_card> out;
  for (const auto& card : node.cards)
    if (!card.mig)
      out.push_back({card.uuid, {card.model, quota::whole_card, card.memory_mib, is_ready && card.usable()}});
  for (const auto& [key, amount] : node.counts)
    out.push_back({name_of_key(node.name, key), {key, amount * quota::whole_card, 0, is_ready}});
  return out;
}

recorder::recorder(dependencies dependencies) : known_(std::move(dependencies)) {
  known_.nodes.observe(
      [this](const kube::node* before, const kube::node* after) { take_node((after ? after : before)->key.name); });
  known_.reports.observe([this](const api::accelerator_node* before, const api::accelerator_node* after) {
    take_node((after ? after : before)->key.name);
  });
  known_.pods.observe([this](const kube::pod* before, const kube::pod* after) { take(before, after); });
  known_.name_spaces.observe(
      [this](const kube::name_space* before, const kube::name_space* after) { take(before, after); });
}

bool recorder::begin() {
  const auto now = known_.now();
  if (!now) return false;
  start_ = *now;
  book_.emplace(start_);
  for (const auto& node : known_.nodes.all()) take_node(node.key.name);
  for (const auto& pod : known_.pods.all()) {
    if (pod.node_name.empty()) continue;
    pod.finished() ? take_finished(pod, *now) : take_running(pod, *now);
  }
  ended_ = false;
  return true;
}

void recorder::begin_gap(controller::milliseconds since) {
  const auto now = known_.now();
  if (!now) return;
  const auto length = std::chrono::ceil<std::chrono::seconds>(known_.steady() - since).count();
  gap_ = *now - std::max<quota::seconds>(length, 0);
}

boost::asio::awaitable<void> recorder::look() {
  if (!book_) co_return;
  std::vector<std::string> nodes;
  nodes.reserve(known_.nodes.size());
  for (const auto& node : known_.nodes.all()) nodes.push_back(node.key.name);
  co_await in_steps(std::move(nodes), [this](const std::string& node) { take_node(node); });
  // What happens to them from here on comes as an event, too.
  std::vector<kube::object_key> pods;
  for (const auto& pod : known_.pods.all())
    if (may_hold(pod)) pods.push_back(pod.key);
  co_await in_steps(std::move(pods), [this](const kube::object_key& key) {
    const auto* pod = known_.pods.find(key);
    const auto now = known_.now();
    if (pod && now && may_hold(*pod)) take_running(*pod, *now);
  });
}

void recorder::take(const kube::pod* before, const kube::pod* after) {
  const auto now = known_.now();
  if (!book_ || !now) return;
  if (before && (!after || after->id != before->id)) leave(before->id.to_string(), *now);
  if (!after || after->node_name.empty()) return;
  if (!after->finished()) return take_running(*after, *now);
  if (const auto uid = after->id.to_string(); book_->holds(uid)) {
    if (after->finished_at > 0) {
      book_->release(uid, std::min(after->finished_at, *now));
      ended_ = true;
    } else {
      leave(uid, *now);
    }
  } else if (!before) {
    take_finished(*after, *now);
  }
}

/// It is gone, and nothing says since when.
void recorder::leave(const std::string& uid, quota::seconds now) {
  const bool held = gap_ ? book_->lose(uid, *gap_, now) : book_->release(uid, now);
  ended_ = ended_ || held;
}

void recorder::take_running(const kube::pod& pod, quota::seconds now) {
  const auto uid = pod.id.to_string();
  const auto* entry = known_.account.book().find(uid);
  if (!entry || !entry->confirmed) return;
  const auto view = known_.account.book().view(entry->held.node);
  book_->hold(
      uid,
      {pod.key.ns, organization(pod.key.ns), pod.priority, parts_of(entry->held, view ? view->inventory : nullptr)},
      pod.scheduled_at > 0 ? pod.scheduled_at : now, now);
}

/// It came and went while no one looked; its status says when.
void recorder::take_finished(const kube::pod& pod, quota::seconds now) {
  if (pod.scheduled_at <= 0 || pod.finished_at <= pod.scheduled_at) return;
  if (pod.finished_at <= book_->settled() || !extender::asks(pod, known_.account.keys())) return;
  const auto view = known_.account.book().view(pod.node_name);
  if (!view) return;
  const extender::pod_request request(pod, known_.account.keys());
  const auto held = extender::held_by(pod, *view, request);
  if (held.origin == extender::source::none) return;
  const auto uid = pod.id.to_string();
  book_->hold(uid, {pod.key.ns, organization(pod.key.ns), pod.priority, parts_of(held.holding, view->inventory)},
              pod.scheduled_at, now);
  book_->release(uid, std::min(pod.finished_at, now));
  ended_ = true;
}

void recorder::take_node(const std::string& node) {
  const auto now = known_.now();
  if (!book_ || !now) return;
  const auto* seen = known_.nodes.find({{}, node});
  const auto view = known_.account.book().view(node);
  std::set<std::string> names;
  if (seen && view) {
    for (auto& [name, card] : cards_of(*view->inventory, seen->ready == kube::condition_status::yes)) {
      book_->put_card(name, card, *now);
      names.insert(std::move(name));
    }
  }
  auto& before = cards_[node];
  // Cards that an agent names for the first time are others in the book, and what pods hold of them goes with them.
  if (!before.empty() && before != names) renamed_ = true;
  for (const auto& name : before)
    if (!names.contains(name)) book_->remove_card(name, *now);
  if (names.empty())
    cards_.erase(node);
  else
    before = std::move(names);
}

/// The organization that pays may be another from now on.
void recorder::take(const kube::name_space* before, const kube::name_space* after) {
  const auto now = known_.now();
  if (!book_ || !now || !after || (before && before->labels == after->labels)) return;
  for (const auto& pod : known_.pods.all())
    if (pod.key.ns == after->key.name && !pod.node_name.empty() && !pod.finished()) take_running(pod, *now);
}

std::string recorder::organization(std::string_view name_space) const {
  const auto* policy = known_.policies.find(policy_key);
  if (!policy || policy->chargeback.organization_label.empty()) return {};
  const auto* found = known_.name_spaces.find({{}, std::string(name_space)});
  return found ? std::string(found->labels.value_or(policy->chargeback.organization_label, "")) : std::string();
}

}  // namespace reconcilers::usage
