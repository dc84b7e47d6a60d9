#include "cli/cluster/free_cards.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "cli/cluster/open_node.hpp"
#include "quota/forecast.hpp"

namespace cli {
namespace {

using quota::card_use;

std::size_t number_of_cards(const quota::node_view& view) {
  return std::min(view.inventory->cards.size(), view.used.size());
}

quota::need whole_or_share(bool whole, std::int32_t cores, std::int64_t memory_mib) {
  quota::need out;
  out.cards = 1;
  out.whole = whole;
  out.cores = cores;
  out.memory_mib = memory_mib;
  out.node_mode = quota::mode::vgpu;
  return out;
}

/// The plugin's own choice of a card; nothing: it has none with enough.
std::optional<std::size_t> chosen(const quota::need& need, const quota::node_inventory& node,
                                  std::span<const card_use> used) {
  std::array<std::uint8_t, quota::max_cards> taken{};
  if (quota::forecast::choose(need, node, used, taken) == 0) return {};
  return taken.front();
}

/// Whole cards in the order in which the plugin hands them out.
void mark_in_its_order(const quota::node_inventory& node, std::vector<card_use> used, std::vector<bool>& out) {
  const auto need = whole_or_share(true, quota::whole_card, 0);
  while (const auto card = chosen(need, node, used)) {
    if (!quota::admits_whole(node.cards[*card], used[*card])) return;
    out[*card] = true;
    ++used[*card].wholes;
  }
}

/// A plugin of whole cards may have withdrawn one of which no agent knows that it is sick: no more are free than the
/// kubelet still has.
void keep_offered(const kube::node& node, std::span<const card_use> used, std::vector<bool>& free) {
  constexpr std::string_view key = "nvidia.com/gpu";
  const auto offered = kube::amount(node.allocatable, key);
  if (offered <= 0) return;  // by another name
  std::int64_t left = offered;
  for (const auto& use : used) left -= use.wholes;
  for (std::size_t i = 0; i < free.size(); ++i)
    if (free[i] && left-- <= 0) free[i] = false;
}

/// Shares that fill up one card after the other, as long as one of any size comes to a card that may be used.
void mark_filled_up(const quota::node_inventory& node, std::vector<card_use> used, std::vector<bool>& out) {
  for (bool is_progress = true; is_progress;) {
    is_progress = false;
    for (std::size_t i = 0; i < used.size(); ++i) {
      const auto cores = quota::whole_card - used[i].cores;
      const auto memory_mib = node.cards[i].memory_mib - used[i].memory_mib;
      const bool is_full = used[i].wholes > 0 || cores <= 0 || memory_mib <= 0;
      if (is_full || !node.cards[i].usable()) continue;
      for (const auto& need : {whole_or_share(false, cores, memory_mib), whole_or_share(false, 1, 1)}) {
        const auto card = chosen(need, node, used);
        if (!card || !quota::admits_share(node.cards[*card], used[*card], need.cores, need.memory_mib)) continue;
        out[*card] = is_progress = true;
        used[*card].wholes = 1;
        break;
      }
    }
  }
}

}  // namespace

std::vector<bool> free_cards(const kube::node& node, const quota::node_view& view) {
  const auto& inventory = *view.inventory;
  std::vector<bool> out(number_of_cards(view));
  if (!takes_new_pods(node)) return out;
  const auto used = view.used.first(out.size());
  if (quota::forecast::chooses(whole_or_share(true, quota::whole_card, 0), inventory)) {
    mark_in_its_order(inventory, {used.begin(), used.end()}, out);
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = quota::admits_whole(inventory.cards[i], used[i]);
  if (inventory.serves.has(quota::mode::pgpu)) keep_offered(node, used, out);
  return out;
}

std::vector<bool> cards_with_shares_left(const kube::node& node, const quota::node_view& view) {
  const auto& inventory = *view.inventory;
  std::vector<bool> out(number_of_cards(view));
  if (!takes_new_pods(node)) return out;
  const auto used = view.used.first(out.size());
  const bool is_any_unusable = std::ranges::any_of(std::span(inventory.cards).first(out.size()),
                                                   [](const auto& card) { return !card.usable(); });
  if (is_any_unusable && quota::forecast::chooses(whole_or_share(false, 1, 1), inventory)) {
    mark_filled_up(inventory, {used.begin(), used.end()}, out);
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = inventory.cards[i].usable() && used[i].wholes == 0;
  return out;
}

std::size_t withheld_cards(const kube::node& node, const quota::node_view& view) {
  if (!takes_new_pods(node)) return 0;
  const auto lendable = cards_with_shares_left(node, view);
  std::size_t out = 0;
  for (std::size_t i = 0; i < lendable.size(); ++i) {
    const auto& card = view.inventory->cards[i];
    const auto& used = view.used[i];
    const bool has_room =
        card.usable() && used.wholes == 0 && used.cores < quota::whole_card && used.memory_mib < card.memory_mib;
    if (has_room && !lendable[i]) ++out;
  }
  return out;
}

}  // namespace cli
