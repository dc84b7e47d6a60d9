// RDMA: adapters, what they need of the driver, and how near they are to the cards.

#include <algorithm>

#include "agent/facts/judge.hpp"
#include "text/list.hpp"
#include "text/text.hpp"

namespace agent::facts {
namespace {

/// Adapters that can do RDMA, as NFD knows them (Mellanox), and those of clouds (Alibaba's eRDMA, Amazon's EFA).
bool is_adapter(const pci_device& device) {
  constexpr unsigned mellanox = 0x15b3, alibaba = 0x1ded, erdma = 0x107f, amazon = 0x1d0f, efa = 0xefa0;
  return device.vendor == mellanox || (device.vendor == alibaba && device.device == erdma) ||
         (device.vendor == amazon && (device.device & 0xfff0U) == efa);
}

judgement rdma_judgement(const machine_facts& node) {
  if (!node.rdma) return unknown(node.rdma.error());
  if (!node.rdma->empty()) {
    const std::string oldest(entry_of(check::rdma).version);
    if (!node.module_version.empty() && version_parts(node.module_version) < version_parts(oldest))
      return {check_state::warning, "available", {check_cause::rdma_driver_too_old, {{"needed", oldest}}}};
    return {check_state::ok, "available"};
  }
  if (!node.pci) return unknown(node.pci.error());
  if (std::ranges::any_of(*node.pci, is_adapter))
    return {check_state::warning, "capable", {check_cause::rdma_not_loaded}};
  return {check_state::ok, "none"};
}

judgement ports_judgement(const std::vector<rdma_device>& devices) {
  std::vector<std::string> idle;
  for (const auto& device : devices)
    for (const auto& port : device.idle_ports) idle.push_back(device.name + " port " + port);
  if (idle.empty()) return {check_state::ok, {}, {check_cause::ports_active}};
  return {check_state::warning, text::abridged(idle, 4), {check_cause::ports_idle}};
}

/// A module, or DMA-BUF, which the open kernel modules have with a new kernel.
judgement peer_memory_judgement(const machine_facts& node) {
  if (!node.modules) return unknown(node.modules.error());
  for (const std::string name : {"nvidia_peermem", "nv_peer_mem"})
    if (std::ranges::find(*node.modules, name) != node.modules->end()) return {check_state::ok, name};
  const bool is_new = version_parts(node.kernel.value_or("")) >= version_parts(entry_of(check::peermem).version);
  if (node.is_open_module && is_new) return {check_state::ok, "DMA-BUF"};
  return {check_state::warning, {}, {check_cause::peermem_missing}};
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    if (end > begin) out.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

/// How near two devices are, in the words of `nvidia-smi topo -m`: the less, the nearer.
enum class distance : unsigned char { bridge, bridges, host_bridge, numa_node, system };
constexpr std::string_view words[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};

distance distance_between(const pci_device& card, const rdma_device& adapter) {
  const auto left = parts_of(card.path), right = parts_of(adapter.path);
  const auto common = static_cast<std::size_t>(std::ranges::mismatch(left, right).in1 - left.begin());
  const auto root = std::ranges::find_if(left, [](const std::string& part) { return part.starts_with("pci"); });
  const auto depth = static_cast<std::size_t>(root - left.begin()) + 1;  // of what hangs on the host bridge
  const bool is_numa_known = card.numa >= 0 && adapter.numa >= 0;
  if (common < depth) return is_numa_known && card.numa == adapter.numa ? distance::numa_node : distance::system;
  if (common == depth) return distance::host_bridge;
  const bool is_one_switch = left.size() - common <= 2 && right.size() - common <= 2;
  return is_one_switch ? distance::bridge : distance::bridges;
}

judgement affinity_judgement(const std::vector<pci_device>& devices, const std::vector<rdma_device>& adapters) {
  std::vector<std::string> found, far;
  for (const auto& card : devices) {
    if (!card.is_card() || card.path.empty()) continue;
    auto nearest = distance::system;
    std::vector<std::string> names;
    for (const auto& adapter : adapters) {
      if (adapter.path.empty()) continue;
      const auto length = distance_between(card, adapter);
      if (length < nearest) names.clear();
      nearest = std::min(nearest, length);
      if (length == nearest) names.push_back(adapter.name);
    }
    if (names.empty()) continue;
    found.push_back(card.address + " " + std::string(words[static_cast<std::size_t>(nearest)]) + " " +
                    text::joined(names, "+"));
    if (nearest > distance::bridges) far.push_back(card.address);
  }
  if (found.empty()) return unknown({check_cause::adapters_without_address});
  if (far.empty()) return {check_state::ok, text::joined(found)};
  return {check_state::warning, text::joined(found), {check_cause::adapters_far, {{"cards", text::abridged(far)}}}};
}

explained_cause machine_cause(const machine_facts& node) {
  if (node.machine.empty()) return {node.is_virtual ? check_cause::machine_virtual : check_cause::machine_physical};
  return {node.is_virtual ? check_cause::machine_virtual_named : check_cause::machine_physical_named,
          {{"machine", node.machine}}};
}

/// A card that a hypervisor has cut is called after its profile: "NVIDIA A40-48Q", "GRID T4-16C".
bool is_vgpu(std::string_view model) {
  if (model.empty() || !std::string_view("QCAB").contains(model.back())) return false;
  model.remove_suffix(1);
  const auto digits = model.size() - (model.find_last_not_of("0123456789") + 1);
  return digits > 0 && digits < model.size() && model[model.size() - digits - 1] == '-';
}

judgement license_judgement(const machine_facts& node) {
  if (!node.has_license) return unknown(node.has_license.error());
  if (*node.has_license) return {check_state::ok, {}, {check_cause::license_configured}};
  return {check_state::failed, {}, {check_cause::license_missing}};
}

}  // namespace

void judge_network(const machine_facts& node, const cards::inventory* inventory, std::vector<row>& rows) {
  add(rows, check::rdma, rdma_judgement(node));
  if (!node.rdma || node.rdma->empty()) return;
  add(rows, check::rdma_ports, ports_judgement(*node.rdma));
  if (!is_driven(node, inventory)) return;
  add(rows, check::peermem, peer_memory_judgement(node));
  const bool has_cards = node.pci && std::ranges::any_of(*node.pci, &pci_device::is_card);
  if (has_cards) add(rows, check::rdma_affinity, affinity_judgement(*node.pci, *node.rdma));
}

void judge_machine(const machine_facts& node, const cards::inventory* inventory, std::vector<row>& rows) {
  const auto vgpu = inventory ? std::ranges::find_if(inventory->cards, is_vgpu, &cards::card::model)
                              : std::vector<cards::card>::const_iterator();
  if (!inventory || vgpu == inventory->cards.end()) {
    add(rows, check::machine, {check_state::ok, {}, machine_cause(node)});
    return;
  }
  add(rows, check::machine, {check_state::warning, {}, {check_cause::machine_vgpu, {{"model", vgpu->model}}}});
  add(rows, check::vgpu_license, license_judgement(node));
}

}  // namespace agent::facts
