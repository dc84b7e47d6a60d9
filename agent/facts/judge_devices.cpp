// What containers open: device nodes, and the settings of the driver that make them dependable.

#include <algorithm>

#include "agent/facts/judge.hpp"
#include "text/list.hpp"

namespace agent::facts {
namespace {

constexpr unsigned for_everyone = 0666;

std::string octal(unsigned mode) {
  std::string out(4, '0');
  for (std::size_t i = 4; i-- > 0; mode /= 8) out[i] = static_cast<char>('0' + mode % 8);
  return out;
}

/// Names in /dev that the driver's cards need.
std::vector<std::string> needed_devices(const cards::inventory* inventory) {
  std::vector<std::string> out{"nvidiactl"};
  if (!inventory) return out;
  for (const auto& card : inventory->cards)
    if (card.minor >= 0 && card.defect.empty()) out.push_back("nvidia" + std::to_string(card.minor));
  return out;
}

judgement nodes_judgement(const machine_facts& node, const cards::inventory* inventory) {
  if (!node.devices) return unknown(node.devices.error());
  std::vector<std::string> missing, closed;
  for (const auto& name : needed_devices(inventory)) {
    const auto device = node.devices->find(name);
    if (device == node.devices->end())
      missing.push_back("/dev/" + name);
    else if ((device->second & for_everyone) != for_everyone)
      closed.push_back("/dev/" + name + " " + octal(device->second));
  }
  if (!missing.empty())
    return {check_state::failed, {}, {check_cause::devices_missing, {{"devices", text::abridged(missing, 4)}}}};
  if (!closed.empty()) return {check_state::warning, text::abridged(closed, 4), {check_cause::devices_closed}};
  return {check_state::ok, std::to_string(needed_devices(inventory).size())};
}

judgement uvm_judgement(const machine_facts& node) {
  if (!node.devices) return unknown(node.devices.error());
  const auto device = node.devices->find("nvidia-uvm");
  if (device != node.devices->end()) {
    if ((device->second & for_everyone) == for_everyone) return {check_state::ok, "/dev/nvidia-uvm"};
    return {check_state::warning, "/dev/nvidia-uvm " + octal(device->second), {check_cause::uvm_closed}};
  }
  const bool is_loaded = node.modules && std::ranges::find(*node.modules, "nvidia_uvm") != node.modules->end();
  if (is_loaded) return {check_state::failed, {}, {check_cause::uvm_device_missing}};
  return {check_state::warning, {}, {check_cause::uvm_not_loaded}};
}

/// runc lets systemd allow devices by the links in /dev/char. Without them a container loses its cards when systemd
/// reads its units again (NVIDIA/nvidia-container-toolkit issue 48).
judgement links_judgement(const machine_facts& node, const cards::inventory* inventory) {
  if (!node.char_links) return unknown(node.char_links.error());
  if (!node.runtime) return unknown(node.runtime.error());
  if (!node.runtime->uses_systemd) return {check_state::ok, {}, {check_cause::links_not_needed}};
  std::vector<std::string> numbers{"195:255"};
  if (inventory)
    for (const auto& card : inventory->cards)
      if (card.minor >= 0 && card.defect.empty()) numbers.push_back("195:" + std::to_string(card.minor));
  if (!node.uvm_major.empty()) numbers.push_back(node.uvm_major + ":0");
  std::erase_if(numbers, [&](const std::string& number) {
    return std::ranges::find(*node.char_links, number) != node.char_links->end();
  });
  if (numbers.empty()) return {check_state::ok, {}, {check_cause::links_complete}};
  return {check_state::warning, {}, {check_cause::links_missing, {{"links", text::abridged(numbers, 4)}}}};
}

judgement persistence_judgement(const cards::inventory& inventory) {
  if (inventory.without_persistence == 0) return {check_state::ok, {}, {check_cause::persistence_on}};
  return {
      check_state::warning,
      {},
      {check_cause::persistence_off,
       {{"number", std::to_string(inventory.without_persistence)}, {"total", std::to_string(inventory.cards.size())}}}};
}

bool has_switch(const machine_facts& node) {
  return node.pci && std::ranges::any_of(*node.pci, &pci_device::is_switch);
}

judgement fabric_manager_judgement(const machine_facts& node, const std::string& driver) {
  if (!node.fabric_manager) return unknown(node.fabric_manager.error());
  const auto& found = *node.fabric_manager;
  const auto& version = node.fabric_manager_version;
  const std::string branch = driver.substr(0, driver.find('.'));
  const bool is_other = !version.empty() && !driver.empty() && version_parts(version) != version_parts(driver);
  const std::vector<text::parameter> wanted{{"branch", branch}, {"driver", driver}};
  if (is_other) return {check_state::failed, version, {check_cause::fabric_manager_other, wanted}};
  if (found == "missing") return {check_state::failed, found, {check_cause::fabric_manager_absent, wanted}};
  if (found != "active") return {check_state::failed, found, {check_cause::fabric_manager_ended, wanted}};
  return {check_state::ok, version.empty() ? found : version};
}

judgement fabric_judgement(const std::string& fabric, bool has_manager_failed) {
  if (fabric == "completed") return {check_state::ok, fabric};
  if (has_manager_failed)
    return unknown(
        {check_cause::follows, {{"value", fabric}, {"check", std::string(to_string(check::fabric_manager))}}});
  if (fabric == "in progress") return {check_state::warning, fabric, {check_cause::fabric_joining}};
  return {check_state::failed, fabric, {check_cause::fabric_not_joined}};
}

}  // namespace

void judge_devices(const machine_facts& node, const cards::inventory* inventory, std::vector<row>& rows) {
  if (!is_driven(node, inventory)) return;  // the rows of the driver say why
  add(rows, check::device_nodes, nodes_judgement(node, inventory));
  add(rows, check::nvidia_uvm, uvm_judgement(node));
  add(rows, check::dev_char, links_judgement(node, inventory));
  if (inventory && !inventory->cards.empty()) add(rows, check::persistence, persistence_judgement(*inventory));
  const auto& driver = inventory && !inventory->driver.empty() ? inventory->driver : node.module_version;
  const bool is_switched = has_switch(node);
  if (is_switched) add(rows, check::fabric_manager, fabric_manager_judgement(node, driver));
  if (!inventory || inventory->fabric.empty()) return;
  const bool has_failed = is_switched && rows.back().state == check_state::failed;
  add(rows, check::fabric, fabric_judgement(inventory->fabric, has_failed));
}

}  // namespace agent::facts
