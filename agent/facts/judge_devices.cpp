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
  if (!node.devices) return {check_state::unknown, node.devices.error(), {}};
  std::vector<std::string> missing, closed;
  for (const auto& name : needed_devices(inventory)) {
    const auto device = node.devices->find(name);
    if (device == node.devices->end())
      missing.push_back("/dev/" + name);
    else if ((device->second & for_everyone) != for_everyone)
      closed.push_back("/dev/" + name + " " + octal(device->second));
  }
  if (!missing.empty())
    return {check_state::failed, text::some_of(missing, 4) + (missing.size() == 1 ? " is" : " are") + " missing",
            "run nvidia-smi on the node as root, which makes them, and nvidia-persistenced, which makes them when "
            "the machine starts"};
  if (!closed.empty())
    return {check_state::warning, text::some_of(closed, 4),
            "programs that are not root cannot open them: take NVreg_DeviceFileMode out of /etc/modprobe.d, load the "
            "driver again, or chmod 666"};
  return {check_state::ok, text::counted(needed_devices(inventory).size(), "device"), {}};
}

judgement uvm_judgement(const machine_facts& node) {
  if (!node.devices) return {check_state::unknown, node.devices.error(), {}};
  const auto device = node.devices->find("nvidia-uvm");
  if (device != node.devices->end()) {
    if ((device->second & for_everyone) == for_everyone) return {check_state::ok, "/dev/nvidia-uvm", {}};
    return {check_state::warning, "/dev/nvidia-uvm " + octal(device->second),
            "programs that are not root have no CUDA: chmod 666 /dev/nvidia-uvm"};
  }
  const bool is_loaded = node.modules && std::ranges::find(*node.modules, "nvidia_uvm") != node.modules->end();
  if (is_loaded)
    return {check_state::failed, "/dev/nvidia-uvm is missing", "run nvidia-modprobe -u -c 0 on the node as root"};
  return {check_state::warning, "the module nvidia_uvm is not loaded",
          "run nvidia-modprobe -u -c 0 on the node as root, and add nvidia_uvm to /etc/modules-load.d: CUDA needs it, "
          "and devices that come by CDI do not load it"};
}

/// runc lets systemd allow devices by the links in /dev/char. Without them a container loses its cards when systemd
/// reads its units again (NVIDIA/nvidia-container-toolkit issue 48).
judgement links_judgement(const machine_facts& node, const cards::inventory* inventory) {
  if (!node.char_links) return {check_state::unknown, node.char_links.error(), {}};
  if (!node.runtime) return {check_state::unknown, node.runtime.error(), {}};
  if (!node.runtime->uses_systemd) return {check_state::ok, "not needed: cgroups are not systemd's", {}};
  std::vector<std::string> numbers{"195:255"};
  if (inventory)
    for (const auto& card : inventory->cards)
      if (card.minor >= 0 && card.defect.empty()) numbers.push_back("195:" + std::to_string(card.minor));
  if (!node.uvm_major.empty()) numbers.push_back(node.uvm_major + ":0");
  std::erase_if(numbers, [&](const std::string& number) {
    return std::ranges::find(*node.char_links, number) != node.char_links->end();
  });
  if (numbers.empty()) return {check_state::ok, "complete", {}};
  return {check_state::warning, "/dev/char has no link for " + text::some_of(numbers, 4),
          "running containers can lose their cards at a systemctl daemon-reload: run nvidia-ctk system "
          "create-dev-char-symlinks --create-all, and again whenever the machine starts (a udev rule)"};
}

judgement persistence_judgement(const cards::inventory& inventory) {
  if (inventory.without_persistence == 0) return {check_state::ok, "on", {}};
  return {check_state::warning,
          "off for " + text::counted(static_cast<std::size_t>(inventory.without_persistence), "card"),
          "systemctl enable --now nvidia-persistenced on the node; without it the driver lets go of idle cards, and "
          "the next program waits seconds"};
}

bool has_switch(const machine_facts& node) {
  return node.pci && std::ranges::any_of(*node.pci, &pci_device::is_switch);
}

judgement fabric_manager_judgement(const machine_facts& node, const std::string& driver) {
  if (!node.fabric_manager) return {check_state::unknown, node.fabric_manager.error(), {}};
  const auto& found = *node.fabric_manager;
  const auto& version = node.fabric_manager_version;
  const std::string branch = driver.substr(0, driver.find('.'));
  const bool is_other = !version.empty() && !driver.empty() && version_parts(version) != version_parts(driver);
  if (is_other)
    return {check_state::failed, version,
            "it starts in exactly the driver's version only: install nvidia-fabricmanager-" + branch + " " + driver};
  if (found == "missing")
    return {check_state::failed, found,
            "CUDA does not start on a machine with NVSwitches without it (error 802): install nvidia-fabricmanager-" +
                branch + " in version " + driver + ", then systemctl enable --now nvidia-fabricmanager"};
  if (found != "active")
    return {check_state::failed, found,
            "systemctl enable --now nvidia-fabricmanager; journalctl -u nvidia-fabricmanager says why it ends, often "
            "because its version is not " +
                driver};
  return {check_state::ok, version.empty() ? found : version, {}};
}

judgement fabric_judgement(const std::string& fabric, bool has_manager_failed) {
  if (fabric == "completed") return {check_state::ok, fabric, {}};
  if (has_manager_failed) return {check_state::unknown, fabric + ", because of fabric_manager", {}};
  if (fabric == "in progress")
    return {check_state::warning, fabric,
            "the cards are being joined: wait some minutes; then see "
            "journalctl -u nvidia-fabricmanager"};
  return {check_state::failed, fabric,
          "CUDA does not start before the cards are joined (error 802): systemctl restart nvidia-fabricmanager, and "
          "nvidia-smi -q | grep -A4 Fabric shows the state"};
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
