#include "reconcilers/dialects/card_words.hpp"

#include <algorithm>
#include <charconv>

namespace reconcilers::dialects {
namespace {

const quota::card* card_of_number(const quota::node_inventory& node, std::int64_t number) {
  const auto match = std::ranges::find_if(node.cards, [&](const quota::card& card) {
    return (card.minor >= 0 ? card.minor : &card - node.cards.data()) == number;
  });
  return match == node.cards.end() ? nullptr : &*match;
}

/// Grants of one need on the cards someone else chose.
bool add_grants(quota::holding& holding, const quota::need& need, const quota::node_inventory& node,
                const std::vector<std::string_view>& numbers) {
  if (numbers.size() != need.cards) return false;
  for (const auto& text : numbers) {
    const auto number = whole_number(text);
    const auto* found = number ? card_of_number(node, *number) : nullptr;
    if (!found) return false;
    holding.grants.push_back(grant_of(need, *found));
  }
  return true;
}

}  // namespace

std::size_t card_at(const quota::node_inventory& node, std::string_view name) {
  const auto match = std::ranges::find(node.cards, name, &quota::card::uuid);
  return static_cast<std::size_t>(match - node.cards.begin());
}

std::size_t card_number(const quota::node_inventory& node, std::string_view name) {
  const auto position = card_at(node, name);
  return position < node.cards.size() && node.cards[position].minor >= 0
             ? static_cast<std::size_t>(node.cards[position].minor)
             : position;
}

std::string list_of(const std::vector<std::size_t>& numbers) {
  std::string out;
  for (const auto number : numbers) {
    if (!out.empty()) out += ',';
    out += std::to_string(number);
  }
  return out;
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

quota::grant grant_of(const quota::need& need, const quota::card& card) {
  return {.container = need.container,
          .whole = need.whole,
          .cores = need.whole ? quota::whole_card : need.cores,
          .burst_cores = need.burst_cores,
          .memory_mib = need.whole ? card.memory_mib : need.memory_on(card),
          .card = card.uuid};
}

void add_counts(quota::holding& holding, const quota::demand& demand) {
  for (const auto& count : demand.counts()) holding.counts.push_back({std::string(count.key), count.amount});
}

std::optional<quota::holding> read_numbers(const pod_on_node& here, const quota::demand& needs,
                                           numbers_of_container numbers) {
  quota::holding out{.node = here.node.name, .grants = {}, .counts = {}};
  for (const auto& entry : needs.needs()) {
    if (entry.container >= here.containers.size()) return {};
    const auto found = numbers(here.pod, *here.containers[entry.container]);
    auto need = entry;
    // Over how many cards memory is spread stands in a label, which anyone may change while the pod runs.
    if (quota::spreads_memory(entry.node_mode) && !found.empty() && found.size() <= here.node.cards.size()) {
      need.cards = static_cast<std::uint32_t>(found.size());
      need.memory_mib = entry.memory_mib * entry.cards / need.cards;
    }
    if (!add_grants(out, need, here.node, found)) return {};
  }
  add_counts(out, needs);
  return out;
}

void add_card(std::vector<quota::card>& cards, quota::card card) {
  if (card.uuid.empty() || card.uuid.find_first_of(",:;") != std::string::npos) return;
  if (std::ranges::find(cards, card.uuid, &quota::card::uuid) == cards.end()) cards.push_back(std::move(card));
}

}  // namespace reconcilers::dialects
