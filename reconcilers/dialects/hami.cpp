// HAMi (module hami): slots of cards, each with memory and cores. Its plugin keeps a register of the node's cards,
// reads from the pod which it shall give, and serves one pod at a time. Our own plugin, where it serves HAMi's names,
// reads the placement: then there is neither register nor lock, and MPS holds a container on one card.
//
// Allocate carries no pod, so the one that binds a pod first writes the node's annotation hami.io/mutex.lock:
// "<RFC 3339 time>,<namespace>,<name>". The plugin serves the pod that it names, and takes it off when the last
// container has its cards (HAMi 2.7 to 2.10: pkg/util/nodelock, pkg/util/util.go GetAllocatePodByNode). Without it the
// plugin takes the first pending pod of the node by name, which with 2.9 and later may be one that was served long ago
// and still pulls its image. The lock is held while its pod waits for its cards. Time plays a part only where nothing
// else is known.

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "controller/clock.hpp"
#include "kube/json_text.hpp"
#include "kube/rfc3339.hpp"
#include "reconcilers/dialects/annotations.hpp"
#include "reconcilers/dialects/card_words.hpp"
#include "reconcilers/dialects/module_settings.hpp"
#include "reconcilers/dialects/plugin_names.hpp"
#include "reconcilers/modules/settings.hpp"
#include "text/text.hpp"

namespace reconcilers::dialects {
namespace {

using nlohmann::json;
using role = kube::container::role;

constexpr std::string_view slot_key = "nvidia.com/gpualloc", register_annotation = "hami.io/node-nvidia-register",
                           allocated_annotation = "hami.io/vgpu-devices-allocated",
                           node_annotation = "hami.io/vgpu-node", phase_annotation = "hami.io/bind-phase";

constexpr std::int64_t lock_patience =
    300;  // HAMi's own patience with a lock (nodelock.go NodeLockTimeout), in seconds
/// Seconds in which a kubelet asks for the cards of a pod that was deleted by force meanwhile.
constexpr std::int64_t gone_patience = 3;

std::string lock_text(const node_lock& lock) {
  const controller::wall_time since{std::chrono::seconds(lock.since)};
  return controller::rfc3339_seconds(since) + "," + lock.pod.ns + "," + lock.pod.name;
}

std::optional<node_lock> read_lock(std::string_view text) {
  const auto comma = text.find(',');
  const auto since = kube::parse_rfc3339(text.substr(0, comma));
  if (!since) return {};
  node_lock out{*since, {}};
  if (comma == std::string_view::npos) return out;
  const auto rest = text.substr(comma + 1);
  const auto next = rest.find(',');
  if (next == std::string_view::npos || rest.find(',', next + 1) != std::string_view::npos) return {};
  out.pod = {std::string(rest.substr(0, next)), std::string(rest.substr(next + 1))};
  return out;
}

bool lock_holds(const node_lock& lock, const std::string& node, const kube::pod* holder, bool binding,
                std::int64_t now) {
  if (binding) return true;
  const bool young = now - lock.since < lock_patience;
  if (lock.pod.name.empty()) return young;
  if (!holder) return lock.since <= now && now - lock.since < gone_patience;
  // HAMi's scheduler names the node at filter, before it locks it (v2.10.0, pkg/scheduler/scheduler.go Filter). Without
  // that name one of our leaders wrote the lock. No Binding of this one is on its way, and a Binding of an earlier one
  // is refused because the pod is sealed.
  if (holder->node_name.empty()) return young && holder->annotations.value_or(node_annotation, "") == node;
  if (holder->node_name != node || holder->phase != kube::pod_phase::pending) return false;
  const auto phase = holder->annotations.value_or(phase_annotation, "");
  return phase != "success" && phase != "failed";
}

constexpr lock_words words_of_lock{"HAMi",
                                   "hami.io/mutex.lock",
                                   "HAMi's plugin needs a scheduler that asks the extender to bind",
                                   lock_text,
                                   read_lock,
                                   lock_holds};

std::int32_t sharers(std::int64_t count) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(count, 0, 10'000));
}

/// Zero values are left out of the JSON, so a card without "health" is not healthy.
quota::card registered_card(const json& entry) {
  quota::card card;
  card.uuid = kube::text_in(entry, "id");
  card.type = kube::text_in(entry, "type");
  card.memory_mib = std::clamp(kube::number_in(entry, "devmem"), std::int64_t{0}, quota::most);
  card.numa = static_cast<std::int32_t>(kube::number_in(entry, "numa"));
  card.max_sharers = sharers(kube::number_in(entry, "count"));
  const auto health = entry.find("health");
  card.healthy = health != entry.end() && health->is_boolean() && health->get<bool>();
  card.mig = kube::text_in(entry, "mode") == "mig";
  return card;
}

/// The register: JSON since 2.5, before that "uuid,count,mem,core,type,numa,health,index,mode:" for each.
std::vector<quota::card> registered_cards(std::string_view text) {
  std::vector<quota::card> out;
  if (text.starts_with('[')) {
    const auto list = json::parse(text, nullptr, false);
    if (!list.is_array()) return out;
    for (const auto& entry : list)
      if (entry.is_object()) add_card(out, registered_card(entry));
    return out;
  }
  for (const auto entry : parts_of(text, ':')) {
    const auto fields = parts_of(entry, ',');
    if (fields.size() < 7 || fields[0].empty()) continue;
    quota::card card;
    card.uuid = fields[0];
    card.max_sharers = sharers(number_of(fields[1]));
    card.memory_mib = std::min(number_of(fields[2]), quota::most);
    card.type = fields[4];
    card.numa = static_cast<std::int32_t>(number_of(fields[5]));
    card.healthy = fields[6] == "true";
    card.mig = fields.size() > 8 && fields[8] == "mig";
    add_card(out, std::move(card));
  }
  return out;
}

text::phrase register_fault(std::string_view key, std::size_t number, std::string value) {
  return {"node_annotation." + std::string(key), {{"number", std::to_string(number)}, {"value", text::shown(value)}}};
}

/// Why HAMi's scheduler cannot read a register (v2.10.0, pkg/device/devices.go UnMarshalNodeDevices; the old form as
/// DecodeNodeDevices reads it); empty: it can.
text::phrase fault_of_register(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  if (std::string_view("[{\"").contains(text[begin])) {
    const auto list = json::parse(text, nullptr, false);
    if (list.is_discarded()) return register_fault("no_json", 0, {});
    if (!list.is_array()) return register_fault("no_list", 0, {});
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!list[i].is_object() || kube::text_in(list[i], "id").empty()) return register_fault("no_card", i + 1, {});
    return {};
  }
  if (!text.contains(':')) return register_fault("no_separator", 0, {});
  std::size_t number = 0;
  for (const auto entry : parts_of(text, ':')) {
    if (entry.empty()) continue;
    ++number;
    const auto fields = parts_of(entry, ',');
    if (fields.size() != 7 && fields.size() != 9)
      return register_fault("fields", number, std::to_string(fields.size()));
    for (const std::size_t index : {std::size_t{1}, std::size_t{2}, std::size_t{3}})
      if (!whole_number(fields[index])) return register_fault("no_number", number, std::string(fields[index]));
  }
  return {};
}

// What people write on a pod and HAMi's own scheduler reads, for cards of NVIDIA and of others (v2.10.0,
// pkg/util/types.go, pkg/device/*). Names that have the card's family in them, hami.io/use-FAMILY-uuid, are known by
// their domain.
constexpr std::string_view own_domain = "hami.io/";
constexpr std::string_view unread[] = {
    "nvidia.com/vgpu-mode",
    "hami.io/node-scheduler-policy",
    "hami.io/device-scoring-weights",
    "nvidia.com/numa-bind",
    "amd.com/use-gputype",
    "amd.com/nouse-gputype",
    "amd.com/use-gpu-uuid",
    "amd.com/nouse-gpu-uuid",
    "aws.amazon.com/use-neuron-uuid",
    "aws.amazon.com/nouse-neuron-uuid",
    "baidu.com/use-gpuuuid",
    "baidu.com/nouse-gpuuuid",
    "birentech.com/use-biren",
    "birentech.com/nouse-biren",
    "birentech.com/use-gpuuuid",
    "birentech.com/nouse-gpuuuid",
    "cambricon.com/use-mlutype",
    "cambricon.com/nouse-mlutype",
    "cambricon.com/use-gpuuuid",
    "cambricon.com/nouse-gpuuuid",
    "enflame.com/use-gpuuuid",
    "enflame.com/nouse-gpuuuid",
    "huawei.com/vnpu-mode",
    "hygon.com/use-dcutype",
    "hygon.com/nouse-dcutype",
    "hygon.com/use-gpuuuid",
    "hygon.com/nouse-gpuuuid",
    "metax-tech.com/use-gpuuuid",
    "metax-tech.com/nouse-gpuuuid",
    "metax-tech.com/sgpu-qos-policy",
    "metax-tech.com/sgpu-topology-aware",
    "metax-tech.com/sgpu-app-class",
    "mthreads.ai/use-gpuuuid",
    "mthreads.ai/nouse-gpuuuid",
    "vastaitech.com/use-va",
    "vastaitech.com/nouse-va",
    "vastaitech.com/use-gpuuuid",
    "vastaitech.com/nouse-gpuuuid",
};

/// What one container asks for by itself; nothing where that is no card.
std::optional<quota::need> need_of(const quota::limits& container, const quota::node_inventory& node) {
  quota::demand needs;
  if (quota::read(std::span(&container, 1), node.serves, needs) || needs.needs().empty()) return {};
  return needs.needs().front();
}

/// The cards of an init container that has none of its own, because it runs before the others on theirs: as many of the
/// pod's as it asks for. Those of a container that takes as much come first.
std::vector<quota::grant> borrowed(const quota::need& need, const quota::holding& held, const pod_on_node& here) {
  std::vector<quota::grant> out;
  const auto is_enough = [&](const quota::grant& grant) {
    const auto index = card_at(here.node, grant.card);
    const auto memory = index < here.node.cards.size() ? need.memory_on(here.node.cards[index]) : need.memory_mib;
    return grant.whole || (grant.memory_mib >= memory && grant.cores >= need.cores);
  };
  for (std::size_t i = 0; i < here.containers.size() && out.size() < need.cards; ++i) {
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
std::string device_list(const quota::holding& held, const pod_on_node& here) {
  std::string out;
  for (const auto& entry : here.pod.containers) {
    const auto name = std::ranges::find(here.containers, &entry);
    const auto number = static_cast<std::size_t>(name - here.containers.begin());
    const auto need = name == here.containers.end() ? std::nullopt : need_of(here.limits[number], here.node);
    std::vector<quota::grant> grants;
    for (const auto& grant : held.grants)
      if (name != here.containers.end() && grant.container == number) grants.push_back(grant);
    if (need && grants.empty() && entry.kind != role::main) grants = borrowed(*need, held, here);
    for (const auto& grant : grants) {
      const auto index = card_at(here.node, grant.card);
      const auto memory =
          need && index < here.node.cards.size() ? need->memory_on(here.node.cards[index]) : grant.memory_mib;
      out += grant.card + ",NVIDIA," + std::to_string(memory) + "," + std::to_string(need ? need->cores : grant.cores);
      out += ":";
    }
    out += ";";
  }
  return out;
}

/// What init containers have of a card beyond what is counted there: all but sidecars run at another time. They run one
/// after the other, so the largest of them counts.
void add_beyond(quota::holding& holding, const std::vector<quota::grant>& before, const pod_on_node& here) {
  const auto size = holding.grants.size();
  for (auto grant : before) {
    for (std::size_t i = 0; i < size; ++i) {
      if (holding.grants[i].card != grant.card) continue;
      if (here.containers[holding.grants[i].container]->kind == role::sidecar) continue;  // runs next to it
      grant.cores = std::max(grant.cores - holding.grants[i].cores, 0);
      grant.memory_mib = std::max<std::int64_t>(grant.memory_mib - holding.grants[i].memory_mib, 0);
    }
    if (grant.cores == 0 && grant.memory_mib == 0) continue;
    const auto added = std::span(holding.grants).subspan(size);
    const auto same = std::ranges::find(added, grant.card, &quota::grant::card);
    if (same == added.end()) {
      holding.grants.push_back(std::move(grant));
      continue;
    }
    same->cores = std::max(same->cores, grant.cores);
    same->memory_mib = std::max(same->memory_mib, grant.memory_mib);
  }
}

class hami_plugin final : public dialect {
 public:
  quota::mode engine_mode() const override { return quota::mode::slots; }
  std::span<const way> ways() const override {
    static constexpr way list[] = {{"hami", slot_key}, {"hami", shared_key}};
    return list;
  }
  bool means_shared_key(const kube::node& node) const override {
    return node.annotations.contains(register_annotation);
  }
  std::vector<renamed_key> renamed(const accelerator_policy* policy) const override;
  void read_service(quota::service& out, const kube::node& node, const accelerator_policy* policy) const override {
    const module_settings settings(node, policy, "hami");
    // The kubelet asks the plugin for the count alone: without it a container starts without a card. HAMi's own
    // webhook, where it runs, has added the count before.
    out.default_cards = 0;
    out.default_memory_mib = static_cast<std::int32_t>(settings.number("defaultMem"));
    out.default_cores = static_cast<std::int32_t>(settings.number("defaultCores"));
    if (!node.labels.contains(api::names::module_label) || settings.text("plugin") != "quartermaster") return;
    out.held_by = quota::isolation::mps;
    out.one_card = true;
  }
  /// Slots say nothing of how many cards there are; the agent's report does, and takes the place of these.
  offer offered(const kube::node& node, const quota::service& serves) const override {
    if (!serves.one_card) return {};
    const auto labelled = number_of(node.labels.find("nvidia.com/gpu.count"));
    return {.cards = std::max<std::int64_t>(labelled, 1), .max_sharers = clients_of_mps(node)};
  }
  bool has_register(const quota::service& serves) const override { return !serves.one_card; }
  std::vector<quota::card> registered(const kube::node& node) const override {
    return registered_cards(node.annotations.value_or(register_annotation, ""));
  }

  void write(json& annotations, const quota::holding& held, const pod_on_node& here,
             std::int64_t now_ns) const override {
    if (here.node.serves.one_card) return;
    const auto seconds = std::to_string(now_ns / 1'000'000'000);
    const auto devices = device_list(held, here);
    annotations[node_annotation] = held.node;
    annotations["hami.io/vgpu-time"] = seconds;
    annotations["hami.io/vgpu-devices-to-allocate"] = devices;
    annotations[allocated_annotation] = devices;
    annotations["hami.io/bind-time"] = seconds;
    annotations[phase_annotation] = "allocating";
  }
  bool writes(std::string_view annotation) const override {
    return annotation.starts_with("hami.io/vgpu-") || annotation.starts_with("hami.io/bind-");
  }
  std::optional<quota::holding> read(const pod_on_node& here, const quota::demand& needs) const override;
  std::vector<std::string> named_cards(const kube::pod& pod) const override {
    std::vector<std::string> out;
    for (const auto container : parts_of(pod.annotations.value_or(allocated_annotation, ""), ';'))
      for (const auto device : parts_of(container, ':'))
        if (!device.empty()) out.emplace_back(device.substr(0, device.find(',')));
    return out;
  }

  const lock_words* lock() const override { return &words_of_lock; }
};

std::vector<renamed_key> hami_plugin::renamed(const accelerator_policy* policy) const {
  static constexpr std::pair<std::string_view, std::string_view> settings[] = {
      {"resourceName", slot_key},
      {"resourceMem", "nvidia.com/gpumem"},
      {"resourceMemPercentage", "nvidia.com/gpumem-percentage"},
      {"resourceCores", "nvidia.com/gpucores"},
      {"resourcePriority", "nvidia.com/priority"},
  };
  std::vector<renamed_key> out;
  const auto* row = modules::find("hami");
  const auto spec = policy ? policy->modules.find("hami") : decltype(policy->modules.end()){};
  if (!policy || !row || spec == policy->modules.end()) return out;
  for (const auto& [setting, engine] : settings)
    if (auto here = modules::setting_of(row->settings, spec->second, setting); !here.empty() && !quota::known(here))
      out.push_back({std::move(here), engine});
  return out;
}

/// In the order of `device_list`; before 2.9 it had no parts for init containers.
std::optional<quota::holding> hami_plugin::read(const pod_on_node& here, const quota::demand& needs) const {
  const auto& containers = here.pod.containers;
  const auto text = here.pod.annotations.find(allocated_annotation);
  if (!text || text->empty()) return {};
  const auto parts = parts_of(*text, ';');
  const auto is_main = [](const kube::container& container) { return container.kind == role::main; };
  const auto mains = static_cast<std::size_t>(std::ranges::count_if(containers, is_main));
  if (parts.size() != containers.size() && parts.size() != mains) return {};
  const auto skipped = containers.size() - parts.size();
  quota::holding out{.node = here.node.name, .grants = {}, .counts = {}};
  std::vector<quota::grant> before;  // of init containers that are not counted as containers of their own
  for (std::size_t index = skipped; index < containers.size(); ++index) {
    const auto name = std::ranges::find(here.containers, &containers[index]);
    const auto number = static_cast<std::uint16_t>(name - here.containers.begin());
    const bool counts = name != here.containers.end() &&
                        (containers[index].kind != role::init ||
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
  add_beyond(out, before, here);
  add_counts(out, needs);
  return out;
}

}  // namespace

/// A plugin that does not answer its scheduler for a minute is left out with all its cards (HAMi to 2.6,
/// pkg/device/devices.go CheckHealth; pkg/util/util.go MarkAnnotationsToDelete).
std::vector<annotation_fault> annotation_faults(const kube::node& node) {
  std::vector<annotation_fault> out;
  if (auto fault = fault_of_register(node.annotations.value_or(register_annotation, "")); !fault.empty())
    out.push_back({std::string(register_annotation), std::move(fault), true});
  for (const auto& [name, value] : node.annotations)
    if (name.starts_with("hami.io/node-handshake") && value.starts_with("Deleted"))
      out.push_back({std::string(name), register_fault("left_out", 0, std::string(value))});
  return out;
}

std::string_view reader_of(std::string_view annotation) {
  return annotation.starts_with(own_domain) || std::ranges::find(unread, annotation) != std::end(unread) ? "HAMi" : "";
}
std::span<const std::string_view> unread_annotations() { return unread; }

std::vector<plugin_name> hami_plugins() { return {{"hami-device-plugin", "HAMi"}}; }

const dialect& hami() {
  static const hami_plugin plugin;
  return plugin;
}

}  // namespace reconcilers::dialects
