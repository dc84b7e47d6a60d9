#include "reconcilers/extender/inventory.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "api/names.hpp"
#include "quota/limits.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/dialects/card_words.hpp"
#include "reconcilers/dialects/module_settings.hpp"

namespace reconcilers::extender {
namespace {

constexpr std::int64_t most_cards = static_cast<std::int64_t>(quota::max_cards);

std::uint16_t modes_of(const kube::node& node) {
  const auto module = node.labels.find(api::names::module_label);
  const auto bit = [](const dialects::dialect& product) { return static_cast<std::uint16_t>(product.engine_mode()); };
  std::uint16_t out = 0;
  for (const auto* product : dialects::all())
    for (const auto& way : product->ways()) {
      if (kube::amount(node.allocatable, way.key) <= 0) continue;
      const bool is_meant = module ? way.module == *module : way.key != dialects::shared_key;
      if (is_meant) out |= bit(*product);
    }
  if (module || out != 0 || kube::amount(node.allocatable, dialects::shared_key) <= 0) return out;
  const auto owner = std::ranges::find_if(
      dialects::all(), [&](const dialects::dialect* product) { return product->means_shared_key(node); });
  return owner == dialects::all().end() ? out : bit(**owner);
}

quota::service service_of(const kube::node& node, const accelerator_policy* policy) {
  quota::service out;
  out.modes = modes_of(node);
  for (std::size_t i = 0; i < quota::alternatives.size(); ++i)
    if (kube::amount(node.allocatable, quota::alternatives[i]) <= 0) out.withheld |= static_cast<std::uint8_t>(1U << i);
  for (const auto* product : dialects::serving(out)) product->read_service(out, node, policy);
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

/// The label nvidia.com/gpu.product of a card of this name. A plugin has NVML's name ("Tesla T4", "NVIDIA
/// A100-SXM4-80GB"), and may put "NVIDIA-" in front where "NVIDIA" is missing. GPU Feature Discovery writes NVML's name
/// with dashes. So a limit for a model counts there, too.
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

/// Null: no plugin there has one.
const dialects::dialect* with_register(const std::vector<const dialects::dialect*>& products,
                                       const quota::service& serves) {
  const auto match =
      std::ranges::find_if(products, [&](const dialects::dialect* product) { return product->has_register(serves); });
  return match == products.end() ? nullptr : *match;
}

std::vector<quota::card> cards_of(const kube::node& node, const quota::service& serves) {
  const auto products = dialects::serving(serves);
  if (products.empty()) return {};
  if (const auto* product = with_register(products, serves)) {
    // What is not registered, or cannot be read, is no card: names of our own would mean nothing to the plugin.
    auto out = product->registered(node);
    const auto named = quota_model_of(node);
    for (auto& card : out) card.model = named.empty() ? product_of(card.type) : named;
    return out;
  }
  const auto all = products.front()->offered(node, serves);
  const auto labelled = dialects::number_of(node.labels.find("nvidia.com/gpu.memory"));
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

/// A plugin with a register knows its cards by that; anywhere else the reported ones take the place of those that were
/// made up, in the order of their numbers, by which plugins count.
void take_reported(std::vector<quota::card>& cards, std::vector<api::reported_card> reported, bool registered) {
  if (cards.empty()) return;  // nothing serves them
  if (registered) {
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
    dialects::add_card(cards, std::move(card));
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

/// The product's own plugin holds shares by MPS everywhere, and their memory by the driver where all cards have that:
/// which card a pod gets is not known when it is judged.
bool is_held_by_driver(const quota::service& serves, std::span<const api::reported_card> cards) {
  return serves.one_card && quota::isolation_of(serves) == quota::isolation::mps &&
         std::ranges::any_of(cards, &api::reported_card::is_limited) &&
         std::ranges::all_of(cards, [](const auto& card) { return card.mig || card.is_limited; });
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
  std::vector<renamed_key> out;
  for (const auto* product : dialects::all()) std::ranges::move(product->renamed(policy), std::back_inserter(out));
  return out;
}

void use_own_names(quota::holding& holding, const quota::node_inventory& node) {
  const auto prefix = node.name + "/";
  for (auto& grant : holding.grants) {
    if (!grant.card.starts_with(prefix) ||
        std::ranges::find(node.cards, grant.card, &quota::card::uuid) != node.cards.end())
      continue;
    const auto index = dialects::number_of(std::string_view(grant.card).substr(prefix.size()));
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
  out.cards = cards_of(node, out.serves);
  if (!reported.empty()) {
    take_reported(out.cards, {reported.begin(), reported.end()},
                  with_register(dialects::serving(out.serves), out.serves) != nullptr);
    out.links = links_of(out.cards, {reported.begin(), reported.end()});
    if (is_held_by_driver(out.serves, reported)) out.serves.held_by = quota::isolation::driver;
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
