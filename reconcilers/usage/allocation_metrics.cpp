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

}  // namespace

std::string owner_of(const kube::pod& pod) {
  const auto match = std::ranges::find(pod.owners, true, &kube::owner_ref::controller);
  return match == pod.owners.end() ? "Pod" : match->kind + "/" + match->name;
}

void write_allocation_metrics(bool is_leader, const extender::account& account,
                              const controller::store<kube::pod>& pods,
                              const std::function<std::string(std::string_view name_space)>& organization,
                              controller::metric_text& text) {
  std::map<group, held_amounts> groups;
  for (const auto& pod : pods.all()) {
    if (!is_leader) break;
    if (pod.node_name.empty() || pod.finished() || pod.containers.empty()) continue;
    const auto* entry = account.book().find(pod.id.to_string());
    if (!entry || !entry->confirmed) continue;
    const auto view = account.book().view(entry->held.node);
    const auto* node = view ? view->inventory : nullptr;
    for (const auto& part : parts_of(entry->held, node)) {
      group key{pod.key.ns, owner_of(pod), part.mode, model_of(entry->held, node, part.card), organization(pod.key.ns)};
      if (groups.size() >= max_allocation_groups && !groups.contains(key))
        key = {"other", "other", "other", "other", "other"};
      auto& sum = groups[std::move(key)];
      ++sum.cards;
      sum.cores += part.cores;
      sum.memory_mib += part.memory_mib;
    }
  }
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
}

}  // namespace reconcilers::usage
