#include "reconcilers/extender/placement.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "api/placement.hpp"
#include "quota/limits.hpp"
#include "quota/place.hpp"
#include "reconcilers/dialects/card_words.hpp"
#include "reconcilers/extender/inventory.hpp"

namespace reconcilers::extender {
namespace {

using dialects::add_counts;
using dialects::card_at;
using nlohmann::json;

std::string own(const quota::holding& held, const pod_request& request) {
  nlohmann::ordered_json containers = nlohmann::ordered_json::object();
  for (const auto& grant : held.grants) {
    nlohmann::ordered_json part{{"card", grant.card}, {"cores", grant.cores}, {"memoryMiB", grant.memory_mib}};
    if (grant.burst_cores > 0) part["burstCores"] = grant.burst_cores;
    if (grant.whole) part["whole"] = true;
    const std::string name =
        grant.container < request.names().size() ? request.names()[grant.container]->name : std::string();
    containers[name].push_back(std::move(part));
  }
  nlohmann::ordered_json out{
      {"v", 1}, {"node", held.node}, {"source", "planned"}, {"containers", std::move(containers)}};
  for (const auto& count : held.counts) out["counts"][count.key] = count.amount;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string_view isolation_of(const quota::holding& held, const quota::node_inventory& node) {
  const bool whole = std::ranges::all_of(held.grants, &quota::grant::whole);
  return quota::text_of(whole ? quota::isolation::exclusive : quota::isolation_of(node.serves));
}

quota::grant grant_of(const api::placed_share& share, std::size_t container) {
  quota::grant out;
  out.container = static_cast<std::uint16_t>(container);
  out.whole = share.whole;
  out.cores = share.cores;
  out.burst_cores = share.burst_cores;
  out.memory_mib = share.memory_mib;
  out.card = share.card;
  return out;
}

std::optional<api::placement> placement_of(const kube::pod& pod) {
  const auto text = pod.annotations.find(placement_annotation);
  return text ? api::placement_in(*text) : std::nullopt;
}

/// Someone else bound it and nothing is free: the emptiest cards, one after the other.
quota::holding forced(const quota::node_view& view, const quota::demand& needs) {
  quota::holding out{.node = view.inventory->name, .grants = {}, .counts = {}};
  std::vector<std::size_t> order(std::min(view.used.size(), view.inventory->cards.size()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const auto& now = view.used[i];
    return std::tuple(now.wholes * quota::whole_card + now.cores, now.memory_mib, i);
  });
  std::size_t next = 0;
  for (const auto& need : needs.needs()) {
    for (std::uint32_t n = 0; n < need.cards && !order.empty(); ++n) {
      out.grants.push_back(dialects::grant_of(need, view.inventory->cards[order[next++ % order.size()]]));
    }
  }
  add_counts(out, needs);
  return out;
}

}  // namespace

bool covers(const quota::holding& held, const quota::demand& needs, const quota::node_inventory& node) {
  std::size_t parts = 0;
  for (const auto& need : needs.needs()) {
    std::uint32_t found = 0;
    if (quota::spreads_memory(need.node_mode)) {
      // A label says over how many cards, and anyone may change it while the pod runs: all of it together counts.
      std::int64_t memory = 0;
      bool cores = true;
      for (const auto& grant : held.grants) {
        if (grant.container != need.container || grant.whole) continue;
        ++found;
        memory += grant.memory_mib;
        cores = cores && grant.cores >= need.cores;
      }
      if (found == 0 || !cores || memory < need.memory_mib * need.cards) return false;
      parts += found;
      continue;
    }
    for (const auto& grant : held.grants) {
      if (grant.container != need.container || grant.whole != need.whole) continue;
      const auto position = card_at(node, grant.card);
      const bool known = position < node.cards.size();
      const auto memory = known ? need.memory_on(node.cards[position]) : std::int64_t{0};
      if (grant.whole || (grant.cores >= need.cores && grant.memory_mib >= memory)) ++found;
    }
    if (found != need.cards) return false;
    parts += need.cards;
  }
  for (const auto& need : needs.counts()) {
    const auto match = std::ranges::find(held.counts, need.key, &quota::count::key);
    if (match == held.counts.end() || match->amount < need.amount) return false;
  }
  return parts == held.grants.size();
}

std::string planned_node(const kube::pod& pod) {
  const auto placement = placement_of(pod);
  return placement ? placement->node : std::string();
}

std::string_view to_string(source origin) {
  switch (origin) {
    case source::none:
      return "none";
    case source::planned:
      return "planned";
    case source::confirmed:
      return "confirmed";
    case source::guessed:
      return "guessed";
  }
  return "none";
}

json annotations_of(const quota::holding& held, const pod_request& request, const kube::pod& pod,
                    const quota::node_inventory& node, std::int64_t now_ns) {
  json out = json::object();
  out[placement_annotation] = own(held, request);
  if (held.grants.empty()) return out;
  out[isolation_annotation] = isolation_of(held, node);
  const dialects::pod_on_node here{pod, node, request.names(), request.containers()};
  for (const auto* product : dialects::serving(node.serves)) product->write(out, held, here, now_ns);
  return out;
}

std::optional<quota::holding> planned(const kube::pod& pod, std::string_view node, const pod_request& request) {
  const auto placement = placement_of(pod);
  if (!placement || placement->node != node) return {};
  quota::holding out{.node = placement->node, .grants = {}, .counts = {}};
  for (std::size_t i = 0; i < request.names().size(); ++i) {
    const auto match = placement->containers.find(request.names()[i]->name);
    if (match == placement->containers.end()) continue;
    for (const auto& share : match->second) out.grants.push_back(grant_of(share, i));
  }
  for (const auto& [key, amount] : placement->counts) out.counts.push_back({key, amount});
  return out;
}

booked_cards held_by(const kube::pod& pod, const quota::node_view& view, const pod_request& request) {
  const auto& node = *view.inventory;
  quota::demand needs;
  const bool legal = !quota::read(request.containers(), node.serves, needs);
  const dialects::pod_on_node here{pod, node, request.names(), request.containers()};
  const auto products = dialects::serving(node.serves);
  // What a plugin took by itself is the truth.
  for (const auto* product : products)
    if (legal && product->has_chosen(pod))
      if (auto found = product->read(here, needs)) return {source::confirmed, std::move(*found)};
  // Where the node's mode has changed under a running pod, its words say nothing any more and the annotation counts.
  auto decision = planned(pod, node.name, request);
  if (decision) use_own_names(*decision, node);
  if (decision && (!legal || covers(*decision, needs, node))) return {source::planned, std::move(*decision)};
  if (!legal) return {};  // in words this node does not know: nothing of its cards
  for (const auto* product : products)
    if (auto found = product->read(here, needs)) return {source::confirmed, std::move(*found)};
  quota::placement placement;
  if (quota::place(needs, view, {.only = request.only(), .any_order = true}, placement).fits())
    return {source::guessed, quota::holding_of(needs, placement, node)};
  return {source::guessed, forced(view, needs)};
}

}  // namespace reconcilers::extender
