#include "cli/console/shares.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "cli/cluster/free_cards.hpp"
#include "cli/console/viewer.hpp"
#include "reconcilers/extender/placement.hpp"
#include "reconcilers/nodes/mode_change.hpp"
#include "reconcilers/nodes/shown_mode.hpp"

namespace cli::console {
namespace {

using entries_by_node =
    std::unordered_map<std::string_view, std::vector<std::pair<const kube::pod*, const quota::holding*>>>;

entries_by_node holders_of(const picture& picture, std::string_view only) {
  std::unordered_map<std::string, const kube::pod*> pods;
  for (const auto& pod : picture.pods.all()) {
    const bool counts = !pod.node_name.empty() && !pod.containers.empty() && (only.empty() || pod.node_name == only);
    if (counts) pods.emplace(pod.id.to_string(), &pod);
  }
  entries_by_node out;
  picture.book->book().for_each([&](const std::string& uid, const quota::ledger::entry& entry) {
    if (!only.empty() && entry.held.node != only) return;
    const auto match = pods.find(uid);
    out[entry.held.node].emplace_back(match == pods.end() ? nullptr : match->second, &entry.held);
  });
  return out;
}

void add_shares(node_shares& node, const quota::holding& held, const kube::pod* pod) {
  for (const auto& grant : held.grants) {
    const auto match =
        std::ranges::find_if(node.cards, [&](const auto& entry) { return entry.card->uuid == grant.card; });
    if (match == node.cards.end()) continue;
    const auto cores = grant.whole ? quota::whole_card : grant.cores;
    const auto memory = grant.whole ? match->card->memory_mib : grant.memory_mib;
    match->shares.push_back({pod, grant.container, grant.whole, cores, memory});
  }
}

/// The ledger calls a sick card healthy where the brake holds it back.
bool is_sick(const quota::card& card, const api::accelerator_node* report) {
  if (!card.healthy || !report) return !card.healthy;
  const auto match = std::ranges::find(report->cards, card.uuid, &api::reported_card::uuid);
  return match != report->cards.end() && !match->healthy();
}

/// A card that is counted, and that no one describes, has a name that was made up of its node's.
bool is_looked_at(const quota::card& card, const api::accelerator_node* report, const std::string& node) {
  if (!card.healthy) return true;
  if (report) {
    const auto match = std::ranges::find(report->cards, card.uuid, &api::reported_card::uuid);
    if (match != report->cards.end()) return !match->health.empty();
  }
  return !card.uuid.starts_with(node + "/");
}

}  // namespace

std::string viewer::rights() const {
  std::string out;
  for (const bool right : {nodes, all_pods, all_quotas, declarations, by_link}) out += right ? '1' : '0';
  for (const auto* names : {&namespaces, &quota_namespaces}) {
    out += '|';
    for (const auto& name : *names) out += name + ",";
  }
  return out;
}

std::string_view node_shares::mode() const {
  return reconcilers::current_mode(*node, report ? &report->mode : nullptr);
}
std::string node_shares::shown_mode() const { return reconcilers::shown_mode(*node, report ? &report->mode : nullptr); }

std::string_view card_shares::health() const {
  if (is_sick) return "Unhealthy";
  return is_looked_at ? "Healthy" : "Unknown";
}

bool node_shares::is_changing() const {
  namespace phases = reconcilers::phases;
  if (!report) return false;
  for (const auto phase :
       {phases::waiting, phases::draining, phases::removing, phases::enrolling, phases::verifying, phases::stuck})
    if (report->mode.phase == phase) return true;
  return false;
}

std::vector<node_shares> shares_of(const picture& picture, std::string_view only) {
  const auto holders = holders_of(picture, only);
  std::vector<node_shares> out;
  for (const auto& node : picture.nodes.all()) {
    if (!only.empty() && node.key.name != only) continue;
    const auto view = picture.book->book().view(node.key.name);
    node_shares row{&node, picture.cards.find(node.key), view ? view->inventory : nullptr, {}};
    const bool has_cards = row.inventory && !row.inventory->cards.empty();
    if (only.empty() && !has_cards && !row.report && row.mode().empty()) continue;
    const auto free = has_cards ? free_cards(node, *view) : std::vector<bool>();
    for (std::size_t i = 0; i < free.size(); ++i)
      row.cards.push_back({.card = &row.inventory->cards[i],
                           .used = view->used[i],
                           .is_sick = is_sick(row.inventory->cards[i], row.report),
                           .is_looked_at = is_looked_at(row.inventory->cards[i], row.report, node.key.name),
                           .is_free = free[i],
                           .shares = {}});
    if (const auto match = holders.find(node.key.name); match != holders.end())
      for (const auto& [pod, held] : match->second) add_shares(row, *held, pod);
    for (auto& card : row.cards)
      std::ranges::sort(card.shares, {}, [](const held_share& share) {
        return std::pair(share.pod ? share.pod->key : kube::object_key(), share.container);
      });
    out.push_back(std::move(row));
  }
  std::ranges::sort(out, {}, [](const node_shares& row) -> const std::string& { return row.node->key.name; });
  return out;
}

int card_index(const node_shares& node, std::size_t place) {
  const auto& uuid = node.cards[place].card->uuid;
  if (node.report)
    for (const auto& card : node.report->cards)
      if (card.uuid == uuid && card.index >= 0) return card.index;
  return static_cast<int>(place);
}

void mark_guesses(const picture& picture, std::vector<node_shares>& nodes) {
  namespace ext = reconcilers::extender;
  for (auto& node : nodes) {
    const auto view = picture.book->book().view(node.node->key.name);
    if (!view) continue;
    for (auto& card : node.cards)
      for (auto& share : card.shares) {
        if (!share.pod) continue;
        const ext::pod_request request(*share.pod, picture.book->keys());
        share.guessed = ext::held_by(*share.pod, *view, request).origin == ext::source::guessed;
      }
  }
}

std::string container_name(const picture& picture, const kube::pod& pod, std::uint16_t number) {
  const reconcilers::extender::pod_request request(pod, picture.book->keys());
  return number < request.names().size() ? request.names()[number]->name : std::string();
}

std::vector<std::string> namespaces_of(const picture& picture) {
  std::set<std::string> names;
  for (const auto& pod : picture.pods.all())
    if (!pod.containers.empty()) names.insert(pod.key.ns);
  for (const auto& quota : picture.quotas.all()) names.insert(quota.key.ns);
  return {names.begin(), names.end()};
}

}  // namespace cli::console
