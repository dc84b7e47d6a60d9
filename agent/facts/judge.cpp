#include "agent/facts/judge.hpp"

#include <algorithm>
#include <map>

#include "agent/facts/other_cards.hpp"
#include "text/list.hpp"

namespace agent::facts {
namespace {

/// A node of another vendor's cards only: what NVIDIA's need does not concern it. Empty on all other nodes, also where
/// those cards may be for a screen only: then an NVIDIA card is missed.
std::vector<row> judge_other_cards(const machine_facts& node, const cards::inventory* cards) {
  constexpr unsigned vga = 0x0300;
  if (!node.pci || (cards && !cards->cards.empty()) || std::ranges::any_of(*node.pci, &pci_device::is_card)) return {};
  const bool has_others = std::ranges::any_of(*node.pci, [](const pci_device& device) {
    return !vendor_of_card(device).empty() && device.class_code >> 8 != vga;
  });
  if (!has_others) return {};
  std::map<std::string, int> vendors;
  for (const auto& card : other_cards(node)) ++vendors[card.vendor];
  std::vector<std::string> counts;
  for (const auto& [vendor, count] : vendors) counts.push_back(std::to_string(count) + " " + vendor);
  std::vector<row> out;
  add(out, check::cards, {check_state::ok, {}, {check_cause::other_vendors, {{"cards", text::joined(counts)}}}});
  return out;
}

}  // namespace

void add(std::vector<row>& rows, check check, judgement judgement) {
  rows.push_back(api::row_of(check, judgement.state, std::move(judgement.found), judgement.cause));
}

bool is_driven(const machine_facts& node, const cards::inventory* cards) {
  return !node.module_version.empty() || (cards && cards->problem.empty());
}

std::vector<row> judge(const machine_facts& node, const cards::inventory* cards) {
  if (auto rows = judge_other_cards(node, cards); !rows.empty()) return rows;
  std::vector<row> out;
  judge_driver(node, cards, out);
  judge_devices(node, cards, out);
  judge_containers(node, out);
  judge_network(node, cards, out);
  judge_machine(node, cards, out);
  return out;
}

}  // namespace agent::facts
