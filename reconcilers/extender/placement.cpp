#include "reconcilers/extender/placement.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "kube/json_text.hpp"
#include "quota/limits.hpp"
#include "quota/place.hpp"
#include "reconcilers/extender/inventory.hpp"

namespace reconcilers::extender {
namespace {

using nlohmann::json;
using quota::mode;

constexpr std::string_view gpu_manager_index = "tencent.com/predicate-gpu-idx-",
                           gpu_manager_assigned = "tencent.com/gpu-assigned",
                           hami_allocated = "hami.io/vgpu-devices-allocated", gpushare_index = "ALIYUN_COM_GPU_MEM_IDX";

std::size_t card_at(const quota::node_inventory& node, std::string_view name) {
  const auto match = std::ranges::find(node.cards, name, &quota::card::uuid);
  return static_cast<std::size_t>(match - node.cards.begin());
}

/// The number by which gpu-manager and gpushare know a card: N of /dev/nvidiaN where an agent says it, else its place.
std::size_t number_of(const quota::node_inventory& node, std::string_view name) {
  const auto position = card_at(node, name);
  return position < node.cards.size() && node.cards[position].minor >= 0
             ? static_cast<std::size_t>(node.cards[position].minor)
             : position;
}
const quota::card* card_of_number(const quota::node_inventory& node, std::int64_t number) {
  const auto match = std::ranges::find_if(node.cards, [&](const quota::card& card) {
    return (card.minor >= 0 ? card.minor : &card - node.cards.data()) == number;
  });
  return match == node.cards.end() ? nullptr : &*match;
}

/// The container's place in spec.containers, as gpu-manager counts; init containers have none.
std::optional<std::size_t> index_in_spec(const kube::container& container, const kube::pod& pod) {
  std::size_t index = 0;
  for (const auto& each : pod.containers) {
    if (each.kind != kube::container::role::main) continue;
    if (&each == &container) return index;
    ++index;
  }
  return {};
}

std::string list_of(const std::vector<std::size_t>& numbers) {
  std::string out;
  for (const auto number : numbers) {
    if (!out.empty()) out += ',';
    out += std::to_string(number);
  }
  return out;
}

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

void add_gpu_manager(json& object, const quota::holding& held, const pod_request& request, const kube::pod& pod,
                     const quota::node_inventory& node, std::int64_t now_ns) {
  object["tencent.com/predicate-time"] = std::to_string(now_ns);
  object["tencent.com/predicate-node"] = held.node;
  object[gpu_manager_assigned] = "false";
  for (std::size_t i = 0; i < request.names().size(); ++i) {
    std::vector<std::size_t> cards;
    for (const auto& grant : held.grants)
      if (grant.container == i) cards.push_back(number_of(node, grant.card));
    const auto index = index_in_spec(*request.names()[i], pod);
    if (index && !cards.empty()) object[std::string(gpu_manager_index) + std::to_string(*index)] = list_of(cards);
  }
}

/// What one container asks for by itself; nothing where that is no card.
std::optional<quota::need> need_of(const quota::limits& container, const quota::node_inventory& node) {
  quota::demand needs;
  if (quota::read(std::span(&container, 1), node.serves, needs) || needs.needs().empty()) return {};
  return needs.needs().front();
}

/// The cards of an init container that has none of its own, because it runs before the others on theirs: as many of the
/// pod's as it asks for. Those of a container that takes as much come first.
std::vector<quota::grant> borrowed(const quota::need& need, const quota::holding& held, const pod_request& request,
                                   const quota::node_inventory& node) {
  std::vector<quota::grant> out;
  const auto is_enough = [&](const quota::grant& grant) {
    const auto index = card_at(node, grant.card);
    const auto memory = index < node.cards.size() ? need.memory_on(node.cards[index]) : need.memory_mib;
    return grant.whole || (grant.memory_mib >= memory && grant.cores >= need.cores);
  };
  for (std::size_t i = 0; i < request.names().size() && out.size() < need.cards; ++i) {
    out.clear();
    for (const auto& grant : held.grants)
      if (grant.container == i && is_enough(grant) && out.size() < need.cards) out.push_back(grant);
  }
  if (out.size() < need.cards) {
    out.clear();
    for (const auto& grant : held.grants)
      if (out.size() < need.cards && std::ranges::find(out, grant.card, &quota::grant::card) == out.end())
        out.push_back(grant);
  }
  return out;
}

/// "<uuid>,<type>,<MiB>,<cores>:" for each card, ";" after each container: first the init containers, sidecars among
/// them, then the others, and nothing before the ";" of one without cards. kube::pod has them in that order.
/// (HAMi 2.9 and later: pkg/device/devices.go DecodePodDevices, plugin/util.go popNextContainerDevices. 2.8 skips what
/// is empty, so it reads the same unless an init container has cards.)
///
/// A container gets what it asked for; what it holds may be more, where an init container runs first on its part.
std::string hami_devices(const quota::holding& held, const pod_request& request, const kube::pod& pod,
                         const quota::node_inventory& node) {
  std::string out;
  for (const auto& entry : pod.containers) {
    const auto name = std::ranges::find(request.names(), &entry);
    const auto number = static_cast<std::size_t>(name - request.names().begin());
    const auto need = name == request.names().end() ? std::nullopt : need_of(request.containers()[number], node);
    std::vector<quota::grant> grants;
    for (const auto& grant : held.grants)
      if (name != request.names().end() && grant.container == number) grants.push_back(grant);
    if (need && grants.empty() && entry.kind != kube::container::role::main)
      grants = borrowed(*need, held, request, node);
    for (const auto& grant : grants) {
      const auto index = card_at(node, grant.card);
      const auto memory = need && index < node.cards.size() ? need->memory_on(node.cards[index]) : grant.memory_mib;
      out += grant.card + ",NVIDIA," + std::to_string(memory) + "," + std::to_string(need ? need->cores : grant.cores);
      out += ":";
    }
    out += ";";
  }
  return out;
}

void add_hami(json& object, const quota::holding& held, const pod_request& request, const kube::pod& pod,
              const quota::node_inventory& node, std::int64_t now_ns) {
  const auto seconds = std::to_string(now_ns / 1'000'000'000);
  const auto devices = hami_devices(held, request, pod, node);
  object["hami.io/vgpu-node"] = held.node;
  object["hami.io/vgpu-time"] = seconds;
  object["hami.io/vgpu-devices-to-allocate"] = devices;
  object[hami_allocated] = devices;
  object["hami.io/bind-time"] = seconds;
  object["hami.io/bind-phase"] = "allocating";
}

void add_gpushare(json& object, const quota::holding& held, const quota::node_inventory& node, std::int64_t now_ns) {
  std::vector<std::size_t> cards;
  std::int64_t all = 0, device = 0;
  for (const auto& grant : held.grants) {
    const auto number = number_of(node, grant.card);
    if (std::ranges::find(cards, number) == cards.end()) cards.push_back(number);
    all += grant.memory_mib;
    if (const auto position = card_at(node, grant.card); position < node.cards.size())
      device = node.cards[position].memory_mib;
  }
  const auto unit = std::max(node.serves.aliyun_unit_mib, 1);
  object[gpushare_index] = list_of(cards);
  object["ALIYUN_COM_GPU_MEM_POD"] = std::to_string(all / unit);
  object["ALIYUN_COM_GPU_MEM_DEV"] = std::to_string(device / unit);
  object["ALIYUN_COM_GPU_MEM_ASSIGNED"] = "false";
  object["ALIYUN_COM_GPU_MEM_ASSUME_TIME"] = std::to_string(now_ns);
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, text.find(separator)));
    text.remove_prefix(std::min(text.size(), out.back().size() + 1));
  }
  return out;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (failed != std::errc() || end != text.data() + text.size() || out < 0) return {};
  return out;
}

std::optional<std::int64_t> amount_in(const json& object, const char* key) {
  const auto match = object.find(key);
  if (match == object.end()) return 0;
  if (!match->is_number_integer() || match->get<std::int64_t>() < 0) return {};
  return match->get<std::int64_t>();
}

std::optional<quota::grant> grant_of(const json& part, std::uint16_t container) {
  if (!part.is_object()) return {};
  const auto card = part.find("card");
  const auto cores = amount_in(part, "cores"), burst = amount_in(part, "burstCores"),
             memory = amount_in(part, "memoryMiB");
  if (card == part.end() || !card->is_string() || !cores || !burst || !memory) return {};
  if (*cores > quota::whole_card || *burst > quota::whole_card) return {};
  const auto whole = part.find("whole");
  quota::grant out;
  out.container = container;
  out.whole = whole != part.end() && whole->is_boolean() && whole->get<bool>();
  out.cores = static_cast<std::int32_t>(*cores);
  out.burst_cores = static_cast<std::int32_t>(*burst);
  out.memory_mib = *memory;
  out.card = card->get<std::string>();
  return out;
}

/// What a need takes of this card.
quota::grant grant_of(const quota::need& need, const quota::card& card) {
  return {.container = need.container,
          .whole = need.whole,
          .cores = need.whole ? quota::whole_card : need.cores,
          .burst_cores = need.burst_cores,
          .memory_mib = need.whole ? card.memory_mib : need.memory_on(card),
          .card = card.uuid};
}

/// Grants of one need on the cards someone else chose, by the numbers of the cards.
bool add_grants(quota::holding& holding, const quota::need& need, const quota::node_inventory& node,
                const std::vector<std::string_view>& places) {
  if (places.size() != need.cards) return false;
  for (const auto& text : places) {
    const auto number = whole_number(text);
    const auto* found = number ? card_of_number(node, *number) : nullptr;
    if (!found) return false;
    holding.grants.push_back(grant_of(need, *found));
  }
  return true;
}

void add_counts(quota::holding& holding, const quota::demand& demand) {
  for (const auto& count : demand.counts()) holding.counts.push_back({std::string(count.key), count.amount});
}

using chosen = std::vector<std::string_view> (*)(const kube::pod&, const kube::container&);

/// Where a plugin wrote the places of the cards of each container.
std::optional<quota::holding> by_places(const kube::pod& pod, const quota::node_inventory& node,
                                        const pod_request& request, const quota::demand& needs, chosen places) {
  quota::holding out{.node = node.name, .grants = {}, .counts = {}};
  for (const auto& entry : needs.needs()) {
    if (entry.container >= request.names().size()) return {};
    const auto numbers = places(pod, *request.names()[entry.container]);
    auto need = entry;
    if (entry.node_mode == mode::gpushare && !numbers.empty() &&
        numbers.size() <= node.cards.size()) {  // as in `covers`
      need.cards = static_cast<std::uint32_t>(numbers.size());
      need.memory_mib = entry.memory_mib * entry.cards / need.cards;
    }
    if (!add_grants(out, need, node, numbers)) return {};
  }
  add_counts(out, needs);
  return out;
}

std::vector<std::string_view> gpu_manager_places(const kube::pod& pod, const kube::container& container) {
  const auto index = index_in_spec(container, pod);
  if (!index) return {};
  return parts_of(pod.annotations.value_or(std::string(gpu_manager_index) + std::to_string(*index), ""), ',');
}

std::vector<std::string_view> gpushare_places(const kube::pod& pod, const kube::container&) {
  return parts_of(pod.annotations.value_or(gpushare_index, ""), ',');
}

/// What an init container has of a card beyond what the main ones have there, which run after it.
void add_beyond(quota::holding& holding, const std::vector<quota::grant>& before, const pod_request& request) {
  const auto size = holding.grants.size();
  for (auto grant : before) {
    for (std::size_t i = 0; i < size; ++i) {
      if (holding.grants[i].card != grant.card) continue;
      if (request.names()[holding.grants[i].container]->kind != kube::container::role::main)
        continue;  // runs next to it
      grant.cores = std::max(grant.cores - holding.grants[i].cores, 0);
      grant.memory_mib = std::max<std::int64_t>(grant.memory_mib - holding.grants[i].memory_mib, 0);
    }
    if (grant.cores > 0 || grant.memory_mib > 0) holding.grants.push_back(std::move(grant));
  }
}

/// HAMi's list, in the order of hami_devices; before 2.9 it had no parts for init containers.
std::optional<quota::holding> by_hami(const kube::pod& pod, const quota::node_inventory& node,
                                      const pod_request& request, const quota::demand& needs) {
  const auto text = pod.annotations.find(hami_allocated);
  if (!text || text->empty()) return {};
  const auto parts = parts_of(*text, ';');
  const auto is_main = [](const kube::container& container) { return container.kind == kube::container::role::main; };
  const auto mains = static_cast<std::size_t>(std::ranges::count_if(pod.containers, is_main));
  if (parts.size() != pod.containers.size() && parts.size() != mains) return {};
  const auto skipped = pod.containers.size() - parts.size();
  quota::holding out{.node = node.name, .grants = {}, .counts = {}};
  std::vector<quota::grant> before;  // of init containers that are not counted as containers of their own
  for (std::size_t index = skipped; index < pod.containers.size(); ++index) {
    const auto name = std::ranges::find(request.names(), &pod.containers[index]);
    const auto number = static_cast<std::uint16_t>(name - request.names().begin());
    const bool counts = name != request.names().end() &&
                        (pod.containers[index].kind != kube::container::role::init ||
                         std::ranges::find(needs.needs(), number, &quota::need::container) != needs.needs().end());
    for (const auto& device : parts_of(parts[index - skipped], ':')) {
      const auto fields = parts_of(device, ',');
      if (fields.size() < 4) return {};
      const auto memory = whole_number(fields[2]), cores = whole_number(fields[3]);
      if (!memory || !cores || *cores > quota::whole_card) return {};
      auto& list = counts ? out.grants : before;
      list.push_back({.container = number,
                      .whole = false,
                      .cores = static_cast<std::int32_t>(*cores),
                      .burst_cores = 0,
                      .memory_mib = *memory,
                      .card = std::string(fields[0])});
    }
  }
  if (out.grants.empty() && !needs.needs().empty()) return {};
  add_beyond(out, before, request);
  add_counts(out, needs);
  return out;
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
      out.grants.push_back(grant_of(need, view.inventory->cards[order[next++ % order.size()]]));
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
    if (need.node_mode == mode::gpushare) {
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
  const auto text = pod.annotations.find(placement_annotation);
  const auto read = text ? json::parse(*text, nullptr, false) : json();
  return kube::text_in(read, "node");
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
  if (node.serves.has(mode::vgpu)) add_gpu_manager(out, held, request, pod, node, now_ns);
  if (node.serves.has(mode::hami)) add_hami(out, held, request, pod, node, now_ns);
  if (node.serves.has(mode::gpushare)) add_gpushare(out, held, node, now_ns);
  return out;
}

std::optional<quota::holding> planned(const kube::pod& pod, std::string_view node, const pod_request& request) {
  const auto text = pod.annotations.find(placement_annotation);
  if (!text) return {};
  const auto read = json::parse(*text, nullptr, false);
  if (!read.is_object() || read.value("v", json()) != 1 || read.value("node", json()) != std::string(node)) return {};
  quota::holding out{.node = std::string(node), .grants = {}, .counts = {}};
  const auto containers = read.value("containers", json::object());
  if (!containers.is_object()) return {};
  for (std::size_t i = 0; i < request.names().size(); ++i) {
    const auto match = containers.find(request.names()[i]->name);
    if (match == containers.end()) continue;
    if (!match->is_array()) return {};
    for (const auto& part : *match) {
      auto grant = grant_of(part, static_cast<std::uint16_t>(i));
      if (!grant) return {};
      out.grants.push_back(std::move(*grant));
    }
  }
  const auto counts = read.value("counts", json::object());
  if (!counts.is_object()) return {};
  for (const auto& [key, amount] : counts.items()) {
    if (!amount.is_number_integer() || amount.get<std::int64_t>() < 0) return {};
    out.counts.push_back({key, amount.get<std::int64_t>()});
  }
  return out;
}

booked_cards held_by(const kube::pod& pod, const quota::node_view& view, const pod_request& request) {
  const auto& node = *view.inventory;
  quota::demand needs;
  const bool legal = !quota::read(request.containers(), node.serves, needs);
  // What gpu-manager took is the truth: it chooses whole cards by itself and writes which they were.
  const bool assigned = pod.annotations.value_or(gpu_manager_assigned, "") == "true";
  if (legal && node.serves.has(mode::vgpu) && assigned) {
    if (auto found = by_places(pod, node, request, needs, gpu_manager_places))
      return {source::confirmed, std::move(*found)};
  }
  // Where the node's mode has changed under a running pod, its words say nothing any more and the annotation counts.
  auto decision = planned(pod, node.name, request);
  if (decision) use_own_names(*decision, node);
  if (decision && (!legal || covers(*decision, needs, node))) return {source::planned, std::move(*decision)};
  if (!legal) return {};  // in words this node does not know: nothing of its cards
  if (node.serves.has(mode::vgpu)) {
    if (auto found = by_places(pod, node, request, needs, gpu_manager_places))
      return {source::confirmed, std::move(*found)};
  }
  if (node.serves.has(mode::hami)) {
    if (auto found = by_hami(pod, node, request, needs)) return {source::confirmed, std::move(*found)};
  }
  if (node.serves.has(mode::gpushare)) {
    if (auto found = by_places(pod, node, request, needs, gpushare_places))
      return {source::confirmed, std::move(*found)};
  }
  quota::placement placement;
  if (quota::place(needs, view, {.only = request.only(), .any_order = true}, placement).fits())
    return {source::guessed, quota::holding_of(needs, placement, node)};
  return {source::guessed, forced(view, needs)};
}

}  // namespace reconcilers::extender
