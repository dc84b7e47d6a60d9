#include "reconcilers/extender/placement.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

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

std::size_t card_at(const quota::node& on, std::string_view name) {
  const auto at = std::ranges::find(on.cards, name, &quota::card::uuid);
  return static_cast<std::size_t>(at - on.cards.begin());
}

/// The number by which gpu-manager and gpushare know a card: N of /dev/nvidiaN where an agent says it, else its place.
std::size_t number_of(const quota::node& on, std::string_view name) {
  const auto at = card_at(on, name);
  return at < on.cards.size() && on.cards[at].minor >= 0 ? static_cast<std::size_t>(on.cards[at].minor) : at;
}
const quota::card* card_of_number(const quota::node& on, std::int64_t number) {
  const auto at = std::ranges::find_if(on.cards, [&](const quota::card& card) {
    return (card.minor >= 0 ? card.minor : &card - on.cards.data()) == number;
  });
  return at == on.cards.end() ? nullptr : &*at;
}

/// The container's place in spec.containers, as gpu-manager counts; init containers have none.
std::optional<std::size_t> index_in_spec(const kube::container& one, const kube::pod& of) {
  std::size_t index = 0;
  for (const auto& each : of.containers) {
    if (each.as != kube::container::role::main) continue;
    if (&each == &one) return index;
    ++index;
  }
  return {};
}

std::string list_of(const std::vector<std::size_t>& numbers) {
  std::string out;
  for (const auto one : numbers) {
    if (!out.empty()) out += ',';
    out += std::to_string(one);
  }
  return out;
}

std::string own(const quota::holding& held, const asked& by) {
  nlohmann::ordered_json containers = nlohmann::ordered_json::object();
  for (const auto& one : held.grants) {
    nlohmann::ordered_json part{{"card", one.card}, {"cores", one.cores}, {"memoryMiB", one.memory_mib}};
    if (one.burst_cores > 0) part["burstCores"] = one.burst_cores;
    if (one.whole) part["whole"] = true;
    const std::string name = one.container < by.names().size() ? by.names()[one.container]->name : std::string();
    containers[name].push_back(std::move(part));
  }
  nlohmann::ordered_json out{
      {"v", 1}, {"node", held.node}, {"source", "planned"}, {"containers", std::move(containers)}};
  for (const auto& one : held.counts) out["counts"][one.key] = one.amount;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string_view isolation_of(const quota::holding& held, const quota::node& on) {
  const bool whole = std::ranges::all_of(held.grants, &quota::grant::whole);
  return quota::text_of(whole ? quota::isolation::exclusive : quota::isolation_of(on.serves));
}

void add_gpu_manager(json& to, const quota::holding& held, const asked& by, const kube::pod& of, const quota::node& on,
                     std::int64_t now_ns) {
  to["tencent.com/predicate-time"] = std::to_string(now_ns);
  to["tencent.com/predicate-node"] = held.node;
  to[gpu_manager_assigned] = "false";
  for (std::size_t i = 0; i < by.names().size(); ++i) {
    std::vector<std::size_t> cards;
    for (const auto& one : held.grants)
      if (one.container == i) cards.push_back(number_of(on, one.card));
    const auto index = index_in_spec(*by.names()[i], of);
    if (index && !cards.empty()) to[std::string(gpu_manager_index) + std::to_string(*index)] = list_of(cards);
  }
}

/// What one container asks for by itself; nothing where that is no card.
std::optional<quota::need> need_of(const quota::limits& container, const quota::node& node) {
  quota::demand needs;
  if (quota::read(std::span(&container, 1), node.serves, needs) || needs.needs().empty()) return {};
  return needs.needs().front();
}

/// The cards of an init container that has none of its own, because it runs before the others on theirs: as many of the
/// pod's as it asks for. Those of a container that takes as much come first.
std::vector<quota::grant> borrowed(const quota::need& need, const quota::holding& held, const asked& by,
                                   const quota::node& on) {
  std::vector<quota::grant> out;
  const auto is_enough = [&](const quota::grant& grant) {
    const auto index = card_at(on, grant.card);
    const auto memory = index < on.cards.size() ? need.memory_on(on.cards[index]) : need.memory_mib;
    return grant.whole || (grant.memory_mib >= memory && grant.cores >= need.cores);
  };
  for (std::size_t i = 0; i < by.names().size() && out.size() < need.cards; ++i) {
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
/// A container is told what it asked for; what it holds may be more, where an init container runs first on its part.
std::string hami_devices(const quota::holding& held, const asked& by, const kube::pod& of, const quota::node& on) {
  std::string out;
  for (const auto& one : of.containers) {
    const auto name = std::ranges::find(by.names(), &one);
    const auto number = static_cast<std::size_t>(name - by.names().begin());
    const auto need = name == by.names().end() ? std::nullopt : need_of(by.containers()[number], on);
    std::vector<quota::grant> grants;
    for (const auto& grant : held.grants)
      if (name != by.names().end() && grant.container == number) grants.push_back(grant);
    if (need && grants.empty() && one.as != kube::container::role::main) grants = borrowed(*need, held, by, on);
    for (const auto& grant : grants) {
      const auto index = card_at(on, grant.card);
      const auto memory = need && index < on.cards.size() ? need->memory_on(on.cards[index]) : grant.memory_mib;
      out += grant.card + ",NVIDIA," + std::to_string(memory) + "," + std::to_string(need ? need->cores : grant.cores);
      out += ":";
    }
    out += ";";
  }
  return out;
}

void add_hami(json& to, const quota::holding& held, const asked& by, const kube::pod& of, const quota::node& on,
              std::int64_t now_ns) {
  const auto seconds = std::to_string(now_ns / 1'000'000'000);
  const auto devices = hami_devices(held, by, of, on);
  to["hami.io/vgpu-node"] = held.node;
  to["hami.io/vgpu-time"] = seconds;
  to["hami.io/vgpu-devices-to-allocate"] = devices;
  to[hami_allocated] = devices;
  to["hami.io/bind-time"] = seconds;
  to["hami.io/bind-phase"] = "allocating";
}

void add_gpushare(json& to, const quota::holding& held, const quota::node& on, std::int64_t now_ns) {
  std::vector<std::size_t> cards;
  std::int64_t all = 0, device = 0;
  for (const auto& one : held.grants) {
    const auto number = number_of(on, one.card);
    if (std::ranges::find(cards, number) == cards.end()) cards.push_back(number);
    all += one.memory_mib;
    if (const auto at = card_at(on, one.card); at < on.cards.size()) device = on.cards[at].memory_mib;
  }
  const auto unit = std::max(on.serves.aliyun_unit_mib, 1);
  to[gpushare_index] = list_of(cards);
  to["ALIYUN_COM_GPU_MEM_POD"] = std::to_string(all / unit);
  to["ALIYUN_COM_GPU_MEM_DEV"] = std::to_string(device / unit);
  to["ALIYUN_COM_GPU_MEM_ASSIGNED"] = "false";
  to["ALIYUN_COM_GPU_MEM_ASSUME_TIME"] = std::to_string(now_ns);
}

std::vector<std::string_view> parts_of(std::string_view text, char by) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, text.find(by)));
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

std::optional<std::int64_t> amount_in(const json& of, const char* key) {
  const auto at = of.find(key);
  if (at == of.end()) return 0;
  if (!at->is_number_integer() || at->get<std::int64_t>() < 0) return {};
  return at->get<std::int64_t>();
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

/// Grants of one need on the cards somebody else chose, by the numbers of the cards.
bool add_grants(quota::holding& to, const quota::need& of, const quota::node& on,
                const std::vector<std::string_view>& places) {
  if (places.size() != of.cards) return false;
  for (const auto& text : places) {
    const auto number = whole_number(text);
    const auto* found = number ? card_of_number(on, *number) : nullptr;
    if (!found) return false;
    const auto& card = *found;
    to.grants.push_back({.container = of.container,
                         .whole = of.whole,
                         .cores = of.whole ? quota::whole_card : of.cores,
                         .burst_cores = of.burst_cores,
                         .memory_mib = of.whole ? card.memory_mib : of.memory_on(card),
                         .card = card.uuid});
  }
  return true;
}

void add_counts(quota::holding& to, const quota::demand& of) {
  for (const auto& one : of.counts()) to.counts.push_back({std::string(one.key), one.amount});
}

using chosen = std::vector<std::string_view> (*)(const kube::pod&, const kube::container&);

/// Where a plugin wrote the places of the cards of each container.
std::optional<quota::holding> by_places(const kube::pod& of, const quota::node& on, const asked& by,
                                        const quota::demand& needs, chosen places) {
  quota::holding out{.node = on.name, .grants = {}, .counts = {}};
  for (const auto& one : needs.needs()) {
    if (one.container >= by.names().size()) return {};
    const auto numbers = places(of, *by.names()[one.container]);
    auto need = one;
    if (one.by == mode::gpushare && !numbers.empty() && numbers.size() <= on.cards.size()) {  // as in `covers`
      need.cards = static_cast<std::uint32_t>(numbers.size());
      need.memory_mib = one.memory_mib * one.cards / need.cards;
    }
    if (!add_grants(out, need, on, numbers)) return {};
  }
  add_counts(out, needs);
  return out;
}

std::vector<std::string_view> gpu_manager_places(const kube::pod& of, const kube::container& one) {
  const auto index = index_in_spec(one, of);
  if (!index) return {};
  return parts_of(of.annotations.value_or(std::string(gpu_manager_index) + std::to_string(*index), ""), ',');
}

std::vector<std::string_view> gpushare_places(const kube::pod& of, const kube::container&) {
  return parts_of(of.annotations.value_or(gpushare_index, ""), ',');
}

/// What an init container has of a card beyond what the main ones have there, which run after it.
void add_beyond(quota::holding& to, const std::vector<quota::grant>& before, const asked& by) {
  const auto size = to.grants.size();
  for (auto grant : before) {
    for (std::size_t i = 0; i < size; ++i) {
      if (to.grants[i].card != grant.card) continue;
      if (by.names()[to.grants[i].container]->as != kube::container::role::main) continue;  // runs beside it
      grant.cores = std::max(grant.cores - to.grants[i].cores, 0);
      grant.memory_mib = std::max<std::int64_t>(grant.memory_mib - to.grants[i].memory_mib, 0);
    }
    if (grant.cores > 0 || grant.memory_mib > 0) to.grants.push_back(std::move(grant));
  }
}

/// HAMi's list, in the order of hami_devices; before 2.9 it had no parts for init containers.
std::optional<quota::holding> by_hami(const kube::pod& of, const quota::node& on, const asked& by,
                                      const quota::demand& needs) {
  const auto text = of.annotations.find(hami_allocated);
  if (!text || text->empty()) return {};
  const auto parts = parts_of(*text, ';');
  const auto is_main = [](const kube::container& one) { return one.as == kube::container::role::main; };
  const auto mains = static_cast<std::size_t>(std::ranges::count_if(of.containers, is_main));
  if (parts.size() != of.containers.size() && parts.size() != mains) return {};
  const auto skipped = of.containers.size() - parts.size();
  quota::holding out{.node = on.name, .grants = {}, .counts = {}};
  std::vector<quota::grant> before;  // of init containers that are not counted as containers of their own
  for (std::size_t index = skipped; index < of.containers.size(); ++index) {
    const auto name = std::ranges::find(by.names(), &of.containers[index]);
    const auto number = static_cast<std::uint16_t>(name - by.names().begin());
    const bool counts = name != by.names().end() &&
                        (of.containers[index].as != kube::container::role::init ||
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
  add_beyond(out, before, by);
  add_counts(out, needs);
  return out;
}

/// Somebody else bound it and nothing is free: the emptiest cards, one after the other.
quota::holding forced(const quota::node_view& on, const quota::demand& needs) {
  quota::holding out{.node = on.what->name, .grants = {}, .counts = {}};
  std::vector<std::size_t> order(std::min(on.used.size(), on.what->cards.size()));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const auto& now = on.used[i];
    return std::tuple(now.wholes * quota::whole_card + now.cores, now.memory_mib, i);
  });
  std::size_t next = 0;
  for (const auto& one : needs.needs()) {
    for (std::uint32_t n = 0; n < one.cards && !order.empty(); ++n) {
      const auto& card = on.what->cards[order[next++ % order.size()]];
      out.grants.push_back({.container = one.container,
                            .whole = one.whole,
                            .cores = one.whole ? quota::whole_card : one.cores,
                            .burst_cores = one.burst_cores,
                            .memory_mib = one.whole ? card.memory_mib : one.memory_on(card),
                            .card = card.uuid});
    }
  }
  add_counts(out, needs);
  return out;
}

}  // namespace

bool covers(const quota::holding& held, const quota::demand& needs, const quota::node& on) {
  std::size_t parts = 0;
  for (const auto& need : needs.needs()) {
    std::uint32_t found = 0;
    if (need.by == mode::gpushare) {
      // Over how many cards is said by a label, which anybody may change when the pod runs: all of it together counts.
      std::int64_t memory = 0;
      bool cores = true;
      for (const auto& one : held.grants) {
        if (one.container != need.container || one.whole) continue;
        ++found;
        memory += one.memory_mib;
        cores = cores && one.cores >= need.cores;
      }
      if (found == 0 || !cores || memory < need.memory_mib * need.cards) return false;
      parts += found;
      continue;
    }
    for (const auto& one : held.grants) {
      if (one.container != need.container || one.whole != need.whole) continue;
      const auto at = card_at(on, one.card);
      const bool known = at < on.cards.size();
      const auto memory = known ? need.memory_on(on.cards[at]) : std::int64_t{0};
      if (one.whole || (one.cores >= need.cores && one.memory_mib >= memory)) ++found;
    }
    if (found != need.cards) return false;
    parts += need.cards;
  }
  for (const auto& need : needs.counts()) {
    const auto at = std::ranges::find(held.counts, need.key, &quota::count::key);
    if (at == held.counts.end() || at->amount < need.amount) return false;
  }
  return parts == held.grants.size();
}

std::string planned_node(const kube::pod& of) {
  const auto text = of.annotations.find(placement_annotation);
  const auto read = text ? json::parse(*text, nullptr, false) : json();
  if (!read.is_object()) return {};
  const auto node = read.find("node");
  return node != read.end() && node->is_string() ? node->get<std::string>() : std::string();
}

std::string_view to_string(source of) {
  switch (of) {
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

json annotations_of(const quota::holding& held, const asked& by, const kube::pod& of, const quota::node& on,
                    std::int64_t now_ns) {
  json out = json::object();
  out[placement_annotation] = own(held, by);
  if (held.grants.empty()) return out;
  out[isolation_annotation] = isolation_of(held, on);
  if (on.serves.has(mode::vgpu)) add_gpu_manager(out, held, by, of, on, now_ns);
  if (on.serves.has(mode::hami)) add_hami(out, held, by, of, on, now_ns);
  if (on.serves.has(mode::gpushare)) add_gpushare(out, held, on, now_ns);
  return out;
}

std::optional<quota::holding> planned(const kube::pod& of, std::string_view node, const asked& by) {
  const auto text = of.annotations.find(placement_annotation);
  if (!text) return {};
  const auto read = json::parse(*text, nullptr, false);
  if (!read.is_object() || read.value("v", json()) != 1 || read.value("node", json()) != std::string(node)) return {};
  quota::holding out{.node = std::string(node), .grants = {}, .counts = {}};
  const auto containers = read.value("containers", json::object());
  if (!containers.is_object()) return {};
  for (std::size_t i = 0; i < by.names().size(); ++i) {
    const auto at = containers.find(by.names()[i]->name);
    if (at == containers.end()) continue;
    if (!at->is_array()) return {};
    for (const auto& part : *at) {
      auto one = grant_of(part, static_cast<std::uint16_t>(i));
      if (!one) return {};
      out.grants.push_back(std::move(*one));
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

held held_by(const kube::pod& of, const quota::node_view& on, const asked& by) {
  const auto& node = *on.what;
  quota::demand needs;
  const bool legal = !quota::read(by.containers(), node.serves, needs);
  // What gpu-manager took is the truth: it chooses whole cards by itself and writes which they were.
  const bool assigned = of.annotations.value_or(gpu_manager_assigned, "") == "true";
  if (legal && node.serves.has(mode::vgpu) && assigned) {
    if (auto found = by_places(of, node, by, needs, gpu_manager_places)) return {source::confirmed, std::move(*found)};
  }
  // Where the node's mode has changed under a running pod, its words say nothing any more and the annotation counts.
  auto ours = planned(of, node.name, by);
  if (ours) use_own_names(*ours, node);
  if (ours && (!legal || covers(*ours, needs, node))) return {source::planned, std::move(*ours)};
  if (!legal) return {};  // in words this node does not know: nothing of its cards
  if (node.serves.has(mode::vgpu)) {
    if (auto found = by_places(of, node, by, needs, gpu_manager_places)) return {source::confirmed, std::move(*found)};
  }
  if (node.serves.has(mode::hami)) {
    if (auto found = by_hami(of, node, by, needs)) return {source::confirmed, std::move(*found)};
  }
  if (node.serves.has(mode::gpushare)) {
    if (auto found = by_places(of, node, by, needs, gpushare_places)) return {source::confirmed, std::move(*found)};
  }
  quota::placement where;
  if (quota::place(needs, on, {.only = by.only(), .any_order = true}, where).fits())
    return {source::guessed, quota::holding_of(needs, where, node)};
  return {source::guessed, forced(on, needs)};
}

}  // namespace reconcilers::extender
