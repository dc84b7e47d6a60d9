#include "agent/facts/judge.hpp"

#include <algorithm>
#include <map>

#include "agent/facts/other_cards.hpp"
#include "text/escape.hpp"

namespace agent::facts {
namespace {

constexpr std::size_t longest = 1024;  // of the CRD

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
  std::string found = "none of NVIDIA";
  for (const auto& [vendor, count] : vendors) found += ", " + std::to_string(count) + " of " + vendor;
  std::vector<row> out;
  add(out, check::cards, {check_state::ok, found, {}});
  return out;
}

}  // namespace

void add(std::vector<row>& rows, check check, judgement judgement) {
  rows.push_back(
      {std::string(to_string(check)), judgement.state, std::move(judgement.found), std::move(judgement.remedy)});
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
  for (auto& row : out) {
    row.found = text::utf8_clean(row.found, longest);  // names and contents of files may be anything
    row.remedy = text::utf8_clean(row.remedy, longest);
  }
  return out;
}

}  // namespace agent::facts
