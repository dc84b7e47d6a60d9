#include "reconcilers/extender/inventory.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <vector>

#include "api/names.hpp"
#include "kube/json_text.hpp"
#include "quota/resource_keys.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "reconcilers/modules/settings.hpp"
#include "reconcilers/nodes/node_sets.hpp"

namespace reconcilers::extender {
namespace {

using nlohmann::json;
using quota::mode;

constexpr std::string_view hami_register = "hami.io/node-nvidia-register";
constexpr std::int64_t most_cards = static_cast<std::int64_t>(quota::max_cards);

/// Which mode a module means, and the key by which the kubelet shows that it is there.
struct served_as {
  std::string_view module;
  mode engine_mode;
  std::string_view key;
};
// Without a module label the first whose key is offered counts; nvidia.com/gpu takes more to tell apart (see guess).
constexpr served_as ways[] = {
    {"vgpu", mode::vgpu, "tencent.com/vcuda-core"},  {"mps", mode::mps, "nvidia.com/mps-core"},
    {"hami", mode::hami, "nvidia.com/gpualloc"},     {"gpushare", mode::gpushare, "aliyun.com/gpu-mem"},
    {"share", mode::share, "nvidia.com/gpu.shared"}, {"", mode::volcano, "volcano.sh/vgpu-number"},
    {"", mode::topology, "aliyun.com/gpu"},          {"", mode::qgpu, "tke.cloud.tencent.com/qgpu-core"},
    {"share", mode::share, "nvidia.com/gpu"},        {"hami", mode::hami, "nvidia.com/gpu"},
    {"pgpu", mode::pgpu, "nvidia.com/gpu"},
};

std::int64_t number_of(std::optional<std::string_view> text) {
  std::int64_t out = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), out);
  return std::max<std::int64_t>(out, 0);
}

bool time_sliced(const kube::node& node) {
  return node.labels.value_or("nvidia.com/gpu.sharing-strategy", "none") == "time-slicing" ||
         number_of(node.labels.find("nvidia.com/gpu.replicas")) > 1;
}

/// What nvidia.com/gpu means on a node that none of our modules serves.
mode guess(const kube::node& node) {
  if (node.annotations.contains(hami_register)) return mode::hami;
  return time_sliced(node) ? mode::share : mode::pgpu;
}

std::uint16_t modes_of(const kube::node& node) {
  const auto bit = [](mode mode) { return static_cast<std::uint16_t>(mode); };
  const auto module = node.labels.find(api::names::module_label);
  std::uint16_t out = 0;
  for (const auto& way : ways) {
    if (kube::amount(node.allocatable, way.key) <= 0) continue;
    if (module) {
      if (way.module == *module) out |= bit(way.engine_mode);
    } else if (way.key == "nvidia.com/gpu") {
      if (out == 0) out |= bit(guess(node));
    } else {
      out |= bit(way.engine_mode);
    }
  }
  return out;
}

/// The settings of the module that serves the node: those of the node set whose plugin it has, the policy's, the
/// catalogue's.
class module_settings {
 public:
  module_settings(const kube::node& node, const accelerator_policy* policy, std::string_view module)
      : row_(modules::find(module)) {
    if (!policy) return;
    const auto match = policy->modules.find(module);
    if (match == policy->modules.end()) return;
    spec_ = match->second;
    const auto set = serving_set(node);
    for (const auto& node_set : spec_.node_sets)
      if (node_set.name == set)
        for (const auto& [key, value] : node_set.settings) spec_.settings[key] = value;
  }
  std::string text(std::string_view name) const {
    return row_ ? modules::setting_of(row_->settings, spec_, name) : std::string();
  }
  std::int64_t number(std::string_view name) const { return number_of(text(name)); }

 private:
  const modules::module_type* row_;
  module_spec spec_;
};

quota::service service_of(const kube::node& node, const accelerator_policy* policy) {
  quota::service out;
  out.modes = modes_of(node);
  for (std::size_t i = 0; i < quota::alternatives.size(); ++i)
    if (kube::amount(node.allocatable, quota::alternatives[i]) <= 0) out.withheld |= static_cast<std::uint8_t>(1U << i);
  if (out.has(mode::hami)) {
    const module_settings hami(node, policy, "hami");
    // The kubelet asks HAMi's plugin for the count alone: without it a container starts without a card. HAMi's own
    // webhook, where it runs, has added the count before.
    out.default_cards = 0;
    out.default_memory_mib = static_cast<std::int32_t>(hami.number("defaultMem"));
    out.default_cores = static_cast<std::int32_t>(hami.number("defaultCores"));
  }
  if (node.labels.value_or(api::names::module_label, "") == "share")
    out.one_replica = module_settings(node, policy, "share").text("failRequestsGreaterThanOne") == "true";
  if (out.has(mode::gpushare)) {
    const module_settings gpushare(node, policy, "gpushare");
    out.aliyun_unit_mib = gpushare.text("memoryUnit") == "MiB" ? 1 : 1024;
    const auto ack = node.labels.value_or("ack.node.gpu.schedule", "");
    if (gpushare.text("mps") == "true") out.held_by = quota::isolation::mps;
    const bool by_ack = !node.labels.contains(api::names::module_label) && !ack.empty();
    if (by_ack && (ack == "cgpu" || ack == "core_mem")) out.held_by = quota::isolation::soft;  // ACK's own driver
    out.one_index = !by_ack;
  }
  return out;
}

std::int32_t sharers(std::int64_t count) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(count, 0, 10'000));
}

/// Twice the same is one card; a name with a separator of HAMi's lists could not be told to its plugin.
void add(std::vector<quota::card>& cards, quota::card card) {
  if (card.uuid.empty() || card.uuid.find_first_of(",:;") != std::string::npos) return;
  if (std::ranges::find(cards, card.uuid, &quota::card::uuid) == cards.end()) cards.push_back(std::move(card));
}

/// HAMi's list of cards: JSON since 2.5, before that "uuid,count,mem,core,type,numa,health,index,mode:" for each.
/// Zero values are left out of the JSON, so a card without "health" is not healthy.
std::vector<quota::card> registered(std::string_view text) {
  std::vector<quota::card> out;
  if (text.starts_with('[')) {
    const auto list = json::parse(text, nullptr, false);
    if (!list.is_array()) return out;
    for (const auto& entry : list) {
      if (!entry.is_object()) continue;
      quota::card card;
      card.uuid = kube::text_in(entry, "id");
      card.type = kube::text_in(entry, "type");
      card.memory_mib = std::clamp(kube::number_in(entry, "devmem"), std::int64_t{0}, quota::most);
      card.numa = static_cast<std::int32_t>(kube::number_in(entry, "numa"));
      card.max_sharers = sharers(kube::number_in(entry, "count"));
      const auto health = entry.find("health");
      card.healthy = health != entry.end() && health->is_boolean() && health->get<bool>();
      card.mig = kube::text_in(entry, "mode") == "mig";
      add(out, std::move(card));
    }
    return out;
  }
  while (!text.empty()) {
    auto entry = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(text.size(), entry.size() + 1));
    std::vector<std::string_view> fields;
    while (!entry.empty()) {
      fields.push_back(entry.substr(0, entry.find(',')));
      entry.remove_prefix(std::min(entry.size(), fields.back().size() + 1));
    }
    if (fields.size() < 7 || fields[0].empty()) continue;
    quota::card card;
    card.uuid = fields[0];
    card.max_sharers = sharers(number_of(fields[1]));
    card.memory_mib = std::min(number_of(fields[2]), quota::most);
    card.type = fields[4];
    card.numa = static_cast<std::int32_t>(number_of(fields[5]));
    card.healthy = fields[6] == "true";
    card.mig = fields.size() > 8 && fields[8] == "mig";
    add(out, std::move(card));
  }
  return out;
}

/// What the kubelet offers of all cards together, for a mode whose plugin says no more.
struct offered {
  std::int64_t cards = 0;
  std::int64_t memory_mib = 0;  ///< of one card; 0: not said
  std::int32_t max_sharers = 0;
};

offered offered_by(const kube::node& node, const quota::service& serves, const accelerator_policy* policy) {
  const auto has = [&](std::string_view key) { return kube::amount(node.allocatable, key); };
  const auto each = [](std::int64_t all, std::int64_t cards) { return cards > 0 ? all / cards : 0; };
  offered out;
  const auto labelled = number_of(node.labels.find("nvidia.com/gpu.count"));
  if (serves.has(mode::vgpu)) {
    out.cards = has("tencent.com/vcuda-core") / 100;
    out.memory_mib = each(has("tencent.com/vcuda-memory") * 256, out.cards);
    out.max_sharers = 100;
  } else if (serves.has(mode::mps)) {
    out.cards = has("nvidia.com/mps-core") / 100;
    out.memory_mib = each(has("nvidia.com/mps-memory") * 1024, out.cards);
    const auto major = number_of(node.labels.find("nvidia.com/gpu.compute.major"));
    const auto minor = number_of(node.labels.find("nvidia.com/gpu.compute.minor"));
    out.max_sharers = major * 10 + minor >= 75 ? 48 : 16;
  } else if (serves.has(mode::gpushare)) {
    out.cards = has("aliyun.com/gpu-count");
    out.memory_mib = each(has("aliyun.com/gpu-mem") * serves.aliyun_unit_mib, out.cards);
    out.max_sharers = 100;
  } else if (serves.has(mode::qgpu)) {
    out.cards = has("tke.cloud.tencent.com/qgpu-core") / 100;
    out.memory_mib = each(has("tke.cloud.tencent.com/qgpu-memory") * 1024, out.cards);
  } else if (serves.has(mode::topology)) {
    out.cards = has("aliyun.com/gpu");
  } else if (serves.has(mode::hami) || serves.has(mode::volcano)) {
    const auto slots = std::max({has("nvidia.com/gpualloc"), has("nvidia.com/gpu"), has("volcano.sh/vgpu-number")});
    const auto split = std::max<std::int64_t>(module_settings(node, policy, "hami").number("deviceSplitCount"), 1);
    out.cards = labelled > 0 ? labelled : slots / split;
    out.max_sharers = static_cast<std::int32_t>(each(slots, out.cards));
  } else if (serves.has(mode::share)) {
    const auto replicas = std::max(has("nvidia.com/gpu.shared"), has("nvidia.com/gpu"));
    out.cards = labelled > 0 ? labelled : 1;
    out.max_sharers = static_cast<std::int32_t>(each(replicas, out.cards));
  } else if (serves.has(mode::pgpu)) {
    out.cards = has("nvidia.com/gpu");
  }
  return out;
}

/// The first of these that the node has.
std::string label_of(const kube::node& node, std::initializer_list<std::string_view> keys) {
  for (const auto key : keys)
    if (const auto found = node.labels.find(key)) return std::string(*found);
  return {};
}
/// Who has labelled nodes for gpu-quota-admission means its names.
std::string quota_model_of(const kube::node& node) {
  return label_of(node, {"gaia.tencent.com/gpu-model", "tkestack.io/gpu-model"});
}
std::string model_of(const kube::node& node) {
  auto named = quota_model_of(node);
  return named.empty() ? label_of(node, {"nvidia.com/gpu.product"}) : named;
}

/// The label nvidia.com/gpu.product of a card that HAMi's plugin registers under this name. The plugin has NVML's name
/// ("Tesla T4", "NVIDIA A100-SXM4-80GB") and puts "NVIDIA-" in front where "NVIDIA" is missing.
/// GPU Feature Discovery writes NVML's name with dashes. So a limit for a model counts on nodes of HAMi, too.
std::string product_of(std::string_view type) {
  constexpr std::string_view added = "NVIDIA-";
  if (type.starts_with(added)) type.remove_prefix(added.size());
  std::string out(type);
  std::ranges::replace(out, ' ', '-');
  return out;
}
std::string pool_of(const kube::node& node) {
  return label_of(node, {"quartermaster.io/pool", "gaia.tencent.com/gpu-pool", "tkestack.io/gpu-pool"});
}

std::vector<quota::card> cards_of(const kube::node& node, const quota::service& serves,
                                  const accelerator_policy* policy) {
  if (serves.modes == 0) return {};
  if (serves.has(mode::hami)) {
    // What is not registered, or cannot be read, is no card: names of our own would mean nothing to HAMi's plugin.
    const auto text = node.annotations.find(hami_register);
    auto out = text ? registered(*text) : std::vector<quota::card>();
    const auto named = quota_model_of(node);
    for (auto& card : out) card.model = named.empty() ? product_of(card.type) : named;
    return out;
  }
  const auto all = offered_by(node, serves, policy);
  const auto labelled = number_of(node.labels.find("nvidia.com/gpu.memory"));
  std::vector<quota::card> out(static_cast<std::size_t>(std::clamp<std::int64_t>(all.cards, 0, most_cards)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].uuid = node.key.name + "/" + std::to_string(i);
    out[i].model = model_of(node);
    // The kubelet refuses what goes beyond its sum, so of two figures the smaller counts.
    out[i].memory_mib =
        all.memory_mib > 0 && labelled > 0 ? std::min(all.memory_mib, labelled) : std::max(all.memory_mib, labelled);
    if (all.max_sharers > 0) out[i].max_sharers = all.max_sharers;
  }
  return out;
}

/// HAMi's plugin knows its cards by its own register; anywhere else the reported ones take the place of those that were
/// made up, in the order of their numbers, which is what gpu-manager and gpushare count by.
void take_reported(std::vector<quota::card>& cards, std::vector<api::reported_card> reported, bool registered_by_hami) {
  if (cards.empty()) return;  // nothing serves them
  if (registered_by_hami) {
    for (auto& card : cards)
      for (const auto& entry : reported)
        if (entry.uuid == card.uuid) {
          card.healthy = card.healthy && entry.healthy();
          card.mig = card.mig || entry.mig;
        }
    return;
  }
  for (std::size_t i = 0; i < reported.size(); ++i)
    if (reported[i].index < 0) reported[i].index = static_cast<std::int32_t>(i);
  std::ranges::sort(reported, {}, [](const api::reported_card& reported_card) {
    return std::tie(reported_card.index, reported_card.uuid);
  });
  const auto like = cards.front();
  cards.clear();
  for (const auto& entry : reported) {
    auto card = like;
    card.uuid = entry.uuid;
    card.minor = entry.index;
    card.numa = entry.numa;
    card.healthy = entry.healthy();
    card.mig = entry.mig;
    if (card.model.empty()) card.model = product_of(entry.model);
    if (entry.memory_mib > 0)
      card.memory_mib = card.memory_mib > 0 ? std::min(card.memory_mib, entry.memory_mib) : entry.memory_mib;
    add(cards, std::move(card));
  }
}

/// The links of the report, for the cards as they are counted here. Only where it says all of them: sets of cards that
/// are known in part would be compared unfairly.
std::vector<quota::link> links_of(const std::vector<quota::card>& cards, std::vector<api::reported_card> reported) {
  std::ranges::sort(reported, {}, [](const api::reported_card& card) { return std::tie(card.index, card.uuid); });
  std::vector<std::size_t> columns;
  for (const auto& card : cards) {
    const auto row = std::ranges::find(reported, card.uuid, &api::reported_card::uuid);
    if (row == reported.end() || row->links.size() != reported.size()) return {};
    columns.push_back(static_cast<std::size_t>(row - reported.begin()));
  }
  std::vector<quota::link> out;
  for (const auto row : columns)
    for (const auto column : columns) out.push_back(reported[row].links[column]);
  return out;
}

void cordon(std::vector<quota::card>& cards, std::string_view list) {
  for (const auto name : cordoned_cards(list))
    for (auto& card : cards)
      if (card.uuid == name) card.cordoned = true;
}

}  // namespace

std::vector<std::string_view> cordoned_cards(std::string_view list) {
  std::vector<std::string_view> out;
  while (!list.empty()) {
    auto name = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), name.size() + 1));
    while (name.starts_with(' ')) name.remove_prefix(1);
    while (name.ends_with(' ')) name.remove_suffix(1);
    if (!name.empty()) out.push_back(name);
  }
  return out;
}

std::vector<renamed_key> renamed_keys(const accelerator_policy* policy) {
  static constexpr std::pair<std::string_view, std::string_view> settings[] = {
      {"resourceName", "nvidia.com/gpualloc"},
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

void use_own_names(quota::holding& holding, const quota::node_inventory& node) {
  const auto prefix = node.name + "/";
  for (auto& grant : holding.grants) {
    if (!grant.card.starts_with(prefix) ||
        std::ranges::find(node.cards, grant.card, &quota::card::uuid) != node.cards.end())
      continue;
    const auto index = number_of(std::string_view(grant.card).substr(prefix.size()));
    const auto match = std::ranges::find(node.cards, index, &quota::card::minor);
    if (match != node.cards.end()) grant.card = match->uuid;
  }
}

namespace {

/// What the kubelet offers, by the names of the vocabularies.
kube::node as_engine_names(kube::node node, const std::vector<renamed_key>& renamed) {
  const declared_keys names([](std::string_view) { return false; }, renamed);
  // A kubelet keeps the key of a plugin that is gone, with 0.
  std::erase_if(node.allocatable, [&](const auto& offered) {
    return std::ranges::find(renamed, std::string_view(offered.first), &renamed_key::engine) != renamed.end();
  });
  for (auto& [key, amount] : node.allocatable) key = names.engine_name(key);
  std::ranges::sort(node.allocatable);
  return node;
}

}  // namespace

quota::node_inventory node_of(const kube::node& as_offered, const accelerator_policy* policy,
                              const declared_keys& declared, std::span<const api::reported_card> reported) {
  const auto renamed = renamed_keys(policy);
  std::optional<kube::node> named;
  if (!renamed.empty()) named = as_engine_names(as_offered, renamed);
  const auto& node = named ? *named : as_offered;
  quota::node_inventory out;
  out.name = node.key.name;
  out.pool = pool_of(node);
  out.changes_mode =
      std::ranges::find(node.taints, api::names::switching_taint, &kube::taint::key) != node.taints.end();
  out.serves = service_of(node, policy);
  out.cards = cards_of(node, out.serves, policy);
  if (!reported.empty()) {
    take_reported(out.cards, {reported.begin(), reported.end()}, out.serves.has(mode::hami));
    out.links = links_of(out.cards, {reported.begin(), reported.end()});
  }
  cordon(out.cards, node.annotations.value_or(cordon_annotation, ""));
  for (const auto& [key, amount] : node.allocatable)
    if (!quota::known(key) && declared(key)) out.counts.push_back({key, amount});
  const auto placement = node.labels.value_or("ack.node.gpu.placement", "");
  if (placement == "spread") out.placement = quota::policy::spread;
  if (placement == "binpack") out.placement = quota::policy::binpack;
  return out;
}

}  // namespace reconcilers::extender
