#include "reconcilers/usage/allocation_metrics.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>

#include "quota/usage.hpp"
#include "reconcilers/usage/recorder.hpp"

namespace reconcilers::usage {
namespace {

struct group {
  std::string name_space, owner, mode, model, organization;
  friend auto operator<=>(const group&, const group&) = default;
};
struct held_amounts {
  std::int64_t cards = 0, cores = 0, memory_mib = 0;
};

std::string model_of(const quota::holding& held, const quota::node_inventory* node, const std::string& card) {
  for (const auto& [key, amount] : held.counts)
    if (card == name_of_key(held.node, key)) return key;
  if (!node) return {};
  const auto match = std::ranges::find(node->cards, card, &quota::card::uuid);
  return match == node->cards.end() ? std::string() : match->model;
}

using amounts_by_group = std::map<group, held_amounts>;

amounts_by_group grouped(const extender::account& account, const controller::store<kube::pod>& pods,
                         const std::function<std::string(std::string_view name_space)>& organization) {
  amounts_by_group out;
  for (const auto& pod : pods.all()) {
    if (pod.node_name.empty() || pod.finished() || pod.containers.empty()) continue;
    const auto* entry = account.book().find(pod.id.to_string());
    if (!entry || !entry->confirmed) continue;
    const auto view = account.book().view(entry->held.node);
    const auto* node = view ? view->inventory : nullptr;
    for (const auto& part : parts_of(entry->held, node)) {
      group key{pod.key.ns, owner_of(pod), part.mode, model_of(entry->held, node, part.card), organization(pod.key.ns)};
      if (out.size() >= max_allocation_groups && !out.contains(key))
        key = {"other", "other", "other", "other", "other"};
      auto& sum = out[std::move(key)];
      ++sum.cards;
      sum.cores += part.cores;
      sum.memory_mib += part.memory_mib;
    }
  }
  return out;
}

/// Cards of a model, as far as their size is known.
struct sized_cards {
  std::int64_t number = 0, memory_mib = 0;
  std::int64_t mean_mib() const { return number == 0 ? 0 : (2 * memory_mib + number) / (2 * number); }
};
using cards_by_model = std::map<std::string, sized_cards, std::less<>>;

/// Every model that a group may have. Cards cut by MIG are left out, as in the ledger of time: their profiles are keys
/// that are only counted, and have no memory.
cards_by_model sizes_of_models(const extender::account& account, const amounts_by_group& groups) {
  cards_by_model out;
  const auto model = [&](const std::string& name) -> sized_cards* {
    const auto match = out.find(name);
    if (match != out.end()) return &match->second;
    return out.size() < max_priced_models ? &out[name] : nullptr;
  };
  account.book().for_each_node([&](const quota::node_view& view) {
    for (const auto& card : view.inventory->cards) {
      auto* sum = card.mig ? nullptr : model(card.model);
      if (!sum || card.memory_mib <= 0) continue;
      ++sum->number;
      sum->memory_mib += card.memory_mib;
    }
    for (const auto& [key, amount] : view.inventory->counts) model(key);
  });
  for (const auto& [key, sum] : groups) model(key.model);
  return out;
}

void write_prices(const cards_by_model& models, const chargeback_spec& prices, controller::metric_text& text) {
  static constexpr std::string_view size = "quartermaster_model_memory_bytes", price = "quartermaster_card_hour_price";
  text.family(size, "Memory of one card of the model; the mean where cards differ.", "gauge");
  for (const auto& [model, cards] : models)
    if (cards.number > 0)
      text.sample(size, {{"model", model}}, static_cast<double>(cards.mean_mib()) * static_cast<double>(1 << 20));
  text.family(price, "Price of a whole card of the model for an hour.", "gauge");
  for (const auto& [model, cards] : models)
    if (const auto* found = prices.price_of(model))
      text.sample(price, {{"model", model}, {"currency", prices.currency}},
                  static_cast<double>(found->card_hour) / 1e6);
}

}  // namespace

std::string owner_of(const kube::pod& pod) {
  const auto match = std::ranges::find(pod.owners, true, &kube::owner_ref::controller);
  return match == pod.owners.end() ? "Pod" : match->kind + "/" + match->name;
}

void write_allocation_metrics(bool is_leader, const extender::account& account,
                              const controller::store<kube::pod>& pods,
                              const std::function<std::string(std::string_view name_space)>& organization,
                              const chargeback_spec* prices, controller::metric_text& text) {
  const auto groups = is_leader ? grouped(account, pods, organization) : amounts_by_group();
  const auto write = [&](std::string_view name, std::string_view help, std::int64_t held_amounts::* member,
                         std::int64_t factor) {
    text.family(name, help, "gauge");
    for (const auto& [key, sum] : groups)
      text.sample(name,
                  {{"namespace", key.name_space},
                   {"owner", key.owner},
                   {"mode", key.mode},
                   {"model", key.model},
                   {"organization", key.organization}},
                  static_cast<double>(sum.*member * factor));
  };
  write("quartermaster_allocated_cards", "Cards of which pods hold a part, counted once per pod's container.",
        &held_amounts::cards, 1);
  write("quartermaster_allocated_cores", "Cores that pods hold. A card has 100.", &held_amounts::cores, 1);
  write("quartermaster_allocated_memory_bytes", "Memory of cards that pods hold.", &held_amounts::memory_mib, 1 << 20);
  write_prices(is_leader ? sizes_of_models(account, groups) : cards_by_model(), prices ? *prices : chargeback_spec(),
               text);
}

}  // namespace reconcilers::usage
