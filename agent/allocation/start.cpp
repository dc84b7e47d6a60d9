#include "agent/allocation/start.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "text/messages.hpp"

namespace agent::allocation {
namespace {

using api::placed_share;
using role = kube::container::role;

constexpr std::pair<start_doubt, std::string_view> doubt_names[] = {
    {start_doubt::not_recorded, "not_recorded"},
    {start_doubt::recorded_for_several, "recorded_for_several"},
    {start_doubt::pod_unknown, "pod_unknown"},
    {start_doubt::kubelet_disagrees, "kubelet_disagrees"},
    {start_doubt::bound_elsewhere, "bound_elsewhere"},
    {start_doubt::pod_ended, "pod_ended"},
    {start_doubt::container_unknown, "container_unknown"},
    {start_doubt::not_placed, "not_placed"},
    {start_doubt::placement_unreadable, "placement_unreadable"},
    {start_doubt::placed_elsewhere, "placed_elsewhere"},
    {start_doubt::container_not_placed, "container_not_placed"},
    {start_doubt::amount_differs, "amount_differs"},
    {start_doubt::card_unknown, "card_unknown"},
    {start_doubt::card_twice, "card_twice"},
    {start_doubt::card_full, "card_full"},
};

std::unexpected<refused_start> refuse(start_doubt code, std::vector<text::parameter> parameters = {}) {
  return std::unexpected(refused_start{code, std::move(parameters)});
}

const kube::container* container_of(const kube::running_pod& pod, std::string_view name) {
  const auto match = std::ranges::find(pod.containers, name, &kube::container::name);
  return match == pod.containers.end() ? nullptr : &*match;
}

/// Entries with exactly these devices, of pods that may still start containers. A pod that has ended keeps its entry
/// until the kubelet gives its devices away.
std::vector<const kubelet::recorded_devices*> records_of(const offered_resource& resource,
                                                         const std::vector<std::string>& ids,
                                                         const node_records& known) {
  std::vector<const kubelet::recorded_devices*> out;
  for (const auto& entry : known.recorded) {
    if (entry.resource != resource.name || entry.ids != ids) continue;
    const auto* pod = pod_of(known, entry.pod_uid);
    if (!pod || !pod->finished()) out.push_back(&entry);
  }
  return out;
}

/// The container that starts. An init container may have left its devices to a later one, and no one says which of the
/// two it is: the later one's cards are right for both, because it has as many.
const kube::container* starting(const kube::running_pod& pod,
                                const std::vector<const kubelet::recorded_devices*>& records) {
  const kube::container* out = nullptr;
  for (const auto* entry : records)
    if (const auto* container = container_of(pod, entry->container); container && (!out || out->kind == role::init))
      out = container;
  return out;
}

std::int64_t amount_of(const std::vector<placed_share>& shares, const offered_resource& resource) {
  std::int64_t sum = 0;
  for (const auto& share : shares) sum += resource.worth(share);
  return sum;
}

const std::vector<placed_share>& shares_in(const api::placement& placement, std::string_view container) {
  static const std::vector<placed_share> none;
  const auto match = placement.containers.find(container);
  return match == placement.containers.end() ? none : match->second;
}

/// Was bound before: who came first has the card.
bool is_before(const kube::running_pod& a, const kube::running_pod& b) {
  return std::pair(a.scheduled_at, a.id.to_string()) < std::pair(b.scheduled_at, b.id.to_string());
}

struct card_sum {
  std::int64_t cores = 0, memory_mib = 0;
  bool whole = false;
  std::string last_pod;  ///< empty: no pod has any of the card
};

/// All containers of the pod together.
void add_shares(card_sum& sum, const kube::running_pod& pod, const api::placement& placement, std::string_view card) {
  for (const auto& container : pod.containers)
    for (const auto& share : shares_in(placement, container.name)) {
      if (share.card != card) continue;
      sum.cores += share.cores;
      sum.memory_mib += share.memory_mib;
      sum.whole = sum.whole || share.whole;
      sum.last_pod = pod.key.to_string();
    }
}

/// What pods that were bound before this one, and have not ended, have of a card.
card_sum given_before(const kube::running_pod& pod, std::string_view card, const node_records& known) {
  card_sum out;
  for (const auto* other : known.pods) {
    if (other == &pod || other->finished() || other->node_name != known.node || !is_before(*other, pod)) continue;
    const auto placement = api::placement_in(other->annotations.value_or(api::placement_annotation, ""));
    if (placement && placement->node == known.node) add_shares(out, *other, *placement, card);
  }
  return out;
}

/// The pod whose container got the card itself from a plugin that was here before: NVIDIA's IDs are UUIDs, of a shared
/// card with "::" and a number. Which card that was is only in the kubelet's record, not in a placement.
const kube::running_pod* given_by_another_plugin(const kube::running_pod& pod, std::string_view card,
                                                 const node_records& known) {
  for (const auto& entry : known.recorded)
    for (const std::string_view id : entry.ids) {
      if (id.substr(0, id.find("::")) != card) continue;
      const auto* other = pod_of(known, entry.pod_uid);
      if (other && other != &pod && !other->finished()) return other;
    }
  return nullptr;
}

std::optional<refused_start> card_refusal(const kube::running_pod& pod, const api::placement& placement,
                                          const std::vector<placed_share>& shares, const node_records& known) {
  const auto name = pod.key.to_string();
  for (const auto& share : shares) {
    const auto card = std::ranges::find(known.cards, share.card, &quota::card::uuid);
    if (card == known.cards.end())
      return refused_start{start_doubt::card_unknown, {{"pod", name}, {"card", share.card}}};
    if (const auto* other = given_by_another_plugin(pod, share.card, known))
      return refused_start{start_doubt::card_full,
                           {{"pod", name}, {"card", share.card}, {"other", other->key.to_string()}}};
    card_sum own;
    add_shares(own, pod, placement, share.card);
    const auto before = given_before(pod, share.card, known);
    const bool is_shared = !before.last_pod.empty(), is_whole = before.whole || own.whole;
    if ((is_shared && is_whole) || before.cores + own.cores > 100 ||
        (!own.whole && before.memory_mib + own.memory_mib > card->lendable_mib()))
      return refused_start{start_doubt::card_full,
                           {{"pod", name}, {"card", share.card}, {"other", is_shared ? before.last_pod : name}}};
  }
  return {};
}

/// The record of the API about this pod agrees with where it is to start.
std::optional<refused_start> pod_refusal(const kube::running_pod& pod, const node_records& known) {
  const auto name = pod.key.to_string();
  if (pod.node_name != known.node)
    return refused_start{start_doubt::bound_elsewhere, {{"pod", name}, {"node", pod.node_name}}};
  if (pod.finished()) return refused_start{start_doubt::pod_ended, {{"pod", name}}};
  return {};
}

/// Another pod than this one has exactly these devices by pod-resources, or this one has them there not at all although
/// it should.
std::optional<refused_start> listed_refusal(const kube::running_pod& pod, const kube::container& container,
                                            const std::vector<std::string>& ids, const node_records& known) {
  if (known.listed.empty() || container.kind == role::init) return {};
  const auto has_all = [&](const kubelet::given_devices& entry) {
    if (entry.ids.size() < ids.size()) return false;
    const std::set<std::string_view> listed(entry.ids.begin(), entry.ids.end());  // of memory they are thousands
    return std::ranges::all_of(ids, [&](const std::string& id) { return listed.contains(id); });
  };
  std::string other = "-";
  for (const auto& entry : known.listed) {
    if (!has_all(entry)) continue;
    if (entry.ns == pod.key.ns && entry.pod == pod.key.name && entry.container == container.name) return {};
    other = entry.ns + "/" + entry.pod;
  }
  return refused_start{start_doubt::kubelet_disagrees, {{"pod", pod.key.to_string()}, {"other", other}}};
}

/// Rounded up.
std::int64_t percent_of_memory(const std::vector<placed_share>& shares, std::span<const quota::card> cards) {
  std::int64_t sum = 0;
  for (const auto& share : shares) {
    const auto card = std::ranges::find(cards, share.card, &quota::card::uuid);
    const auto all = card == cards.end() ? 0 : card->lendable_mib();
    sum += all > 0 ? (share.memory_mib * 100 + all - 1) / all : 0;
  }
  return sum;
}

/// What a container asks for by a key. Nothing where another key says it, or no one does: a seat that is not counted,
/// and memory up to all of the card's, which a card has anyway.
std::optional<std::int64_t> request_by(const offered_resource& key, const kube::container& container,
                                       std::span<const offered_resource> vocabulary) {
  const auto names = [&](device_unit unit) {
    return std::ranges::any_of(vocabulary, [&](const offered_resource& other) {
      return other.unit == unit && kube::amount(container.limits, other.name) > 0;
    });
  };
  const auto named = kube::amount(container.limits, key.name);
  switch (key.unit) {
    case device_unit::percent:
      return named > 0 && !names(device_unit::memory) ? std::optional(named) : std::nullopt;
    case device_unit::slot:
      return named > 0 ? std::optional(named) : std::nullopt;
    case device_unit::memory:
      if (named > 0 || key.is_offered) return named;
      return key.by_default > 0 && !names(device_unit::percent) ? std::optional<std::int64_t>(key.by_default)
                                                                : std::nullopt;
    case device_unit::core:
      return named > 0 ? named : key.by_default;
    case device_unit::card:
      return named;
  }
  return {};
}

/// Is that what the shares come to? A share that is lent to an init container may be larger, a whole card has all of
/// its memory, and a percentage is rounded.
bool agrees(const offered_resource& key, std::int64_t request, std::int64_t amount,
            const std::vector<placed_share>& shares, bool is_init) {
  const bool may_be_larger =
      (is_init && key.unit != device_unit::card) || (key.unit == device_unit::memory && shares.front().whole);
  const bool may_be_smaller = key.unit == device_unit::percent;
  return amount == request || (amount > request && may_be_larger) || (amount < request && may_be_smaller);
}

/// By each key of the vocabulary; of `resource` the kubelet says how much that is.
std::optional<refused_start> amount_refusal(const offered_resource& resource, std::int64_t devices,
                                            const kube::running_pod& pod, const kube::container& container,
                                            const std::vector<placed_share>& shares, const node_records& known) {
  const auto judged = [&](const offered_resource& key, std::int64_t request) -> std::optional<refused_start> {
    const bool is_init = container.kind == role::init;
    auto amount = key.unit == device_unit::percent ? percent_of_memory(shares, known.cards) : amount_of(shares, key);
    if (is_init && key.unit == device_unit::core && amount == 0) amount = compute_of(shares.front());
    if (agrees(key, request, amount, shares, is_init)) return {};
    return refused_start{start_doubt::amount_differs,
                         {{"pod", pod.key.to_string()},
                          {"container", container.name},
                          {"resource", key.name},
                          {"number", std::to_string(request)},
                          {"other", std::to_string(amount)}}};
  };
  if (auto no = judged(resource, devices)) return no;
  for (const auto& key : known.vocabulary)
    if (const auto request = key.name == resource.name ? std::nullopt : request_by(key, container, known.vocabulary))
      if (auto no = judged(key, *request)) return no;
  return {};
}

/// What an init container gets. Of whole cards: what the placement gives it beyond the others, and then cards of
/// containers that start after it, as many as it asks for. A share is its own, or is lent whole by a container after it
/// whose share is as large by each key.
std::vector<placed_share> lent_to(const kube::running_pod& pod, const kube::container& init,
                                  const api::placement& placement, const offered_resource& resource,
                                  std::int64_t amount, const node_records& known) {
  auto out = shares_in(placement, init.name);
  const auto is_enough = [&](const std::vector<placed_share>& shares) {
    return resource.unit == device_unit::card
               ? amount_of(shares, resource) >= amount
               : !shares.empty() && !amount_refusal(resource, amount, pod, init, shares, known);
  };
  const auto later = std::ranges::subrange(std::ranges::find(pod.containers, init.name, &kube::container::name) + 1,
                                           pod.containers.end());
  for (const auto& container : later) {
    if (is_enough(out)) break;
    const auto& shares = shares_in(placement, container.name);
    if (resource.unit != device_unit::card) {
      if (is_enough(shares)) out = shares;
      continue;
    }
    for (const auto& share : shares)
      if (amount_of(out, resource) < amount && std::ranges::find(out, share.card, &placed_share::card) == out.end())
        out.push_back(share);
  }
  return out;
}

}  // namespace

std::int64_t offered_resource::worth(const quota::card& card) const {
  switch (unit) {
    case device_unit::card:
      return 1;
    case device_unit::core:
      return 100;
    case device_unit::memory:
      return card.memory_mib / unit_mib;
    case device_unit::slot:
      return per_card;
    case device_unit::percent:
      return 100;
  }
  return 0;
}
std::int64_t offered_resource::worth(const placed_share& share) const {
  switch (unit) {
    case device_unit::card:
      return share.whole ? 1 : 0;
    case device_unit::core:
      return share.cores;
    case device_unit::memory:
      return share.memory_mib / unit_mib;
    case device_unit::slot:
      return 1;
    case device_unit::percent:
      break;  // of which card is not known here
  }
  return 0;
}

placed_share largest_share(std::string_view card, const node_records& known) {
  placed_share out{.card = std::string(card)};
  for (const auto* pod : known.pods) {
    if (pod->finished() || pod->node_name != known.node) continue;
    const auto placement = api::placement_in(pod->annotations.value_or(api::placement_annotation, ""));
    if (!placement || placement->node != known.node) continue;
    for (const auto& container : pod->containers)
      for (const auto& share : shares_in(*placement, container.name)) {
        if (share.card != card) continue;
        out.cores = std::max(out.cores, compute_of(share));
        out.memory_mib = std::max(out.memory_mib, share.memory_mib);
        out.whole = out.whole || share.whole;
      }
  }
  return out;
}

const kube::running_pod* pod_of(const node_records& known, std::string_view uid) {
  const auto match =
      std::ranges::find(known.pods, kube::uid::parse(uid), [](const kube::running_pod* pod) { return pod->id; });
  return match == known.pods.end() ? nullptr : *match;
}

std::string_view to_string(start_doubt code) {
  return std::ranges::find(doubt_names, code, &std::pair<start_doubt, std::string_view>::first)->second;
}

std::string refused_start::text() const {
  return text::filled(text::pattern_of("start." + std::string(to_string(code)), text::language::en), parameters);
}

std::expected<container_start, refused_start> start_of(const offered_resource& resource,
                                                       const std::vector<std::string>& ids, const node_records& known) {
  const auto records = records_of(resource, ids, known);
  if (records.empty()) return refuse(start_doubt::not_recorded);
  std::set<std::string_view> uids;
  for (const auto* entry : records) uids.insert(entry->pod_uid);
  if (uids.size() > 1) return refuse(start_doubt::recorded_for_several, {{"number", std::to_string(uids.size())}});
  const auto* pod = pod_of(known, *uids.begin());
  if (!pod) return refuse(start_doubt::pod_unknown, {{"uid", std::string(*uids.begin())}});
  if (auto no = pod_refusal(*pod, known)) return std::unexpected(std::move(*no));
  const auto name = pod->key.to_string();
  const auto* container = starting(*pod, records);
  if (!container)
    return refuse(start_doubt::container_unknown, {{"pod", name}, {"container", records.front()->container}});
  if (auto no = listed_refusal(*pod, *container, ids, known)) return std::unexpected(std::move(*no));

  const auto text = pod->annotations.value_or(api::placement_annotation, "");
  if (text.empty()) return refuse(start_doubt::not_placed, {{"pod", name}});
  const auto placement = api::placement_in(text);
  if (!placement) return refuse(start_doubt::placement_unreadable, {{"pod", name}});
  if (placement->node != known.node)
    return refuse(start_doubt::placed_elsewhere, {{"pod", name}, {"node", placement->node}});

  const auto number = static_cast<std::int64_t>(ids.size());
  const bool is_init = container->kind == role::init;
  auto shares =
      is_init ? lent_to(*pod, *container, *placement, resource, number, known) : shares_in(*placement, container->name);
  if (shares.empty()) return refuse(start_doubt::container_not_placed, {{"pod", name}, {"container", container->name}});
  if (auto no = amount_refusal(resource, number, *pod, *container, shares, known))
    return std::unexpected(std::move(*no));
  std::set<std::string_view> cards;
  for (const auto& share : shares)
    if (!cards.insert(share.card).second)
      return refuse(start_doubt::card_twice, {{"pod", name}, {"container", container->name}, {"card", share.card}});
  if (auto no = card_refusal(*pod, *placement, shares, known)) return std::unexpected(std::move(*no));
  container_start out{pod, container->name, {}, std::move(shares)};
  for (const auto* entry : records) out.candidates.push_back(entry->container);
  return out;
}

}  // namespace agent::allocation
