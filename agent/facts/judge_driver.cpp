// Cards and driver: which cards there are, what drives them, and whether that driver can.

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "agent/facts/judge.hpp"
#include "text/list.hpp"

namespace agent::facts {
namespace {

/// The first driver for an architecture is that of the first CUDA toolkit that knows it; the last one is named. Both:
/// NVIDIA, "CUDA Toolkit, Driver, and Architecture Matrix"; numbers of PCI devices: pci.ids, display functions only.
struct architecture {
  unsigned first_device, last_device;
  std::string_view name, first_driver;
  int last_branch;  ///< 0: drivers still come out
  enum class flavor : unsigned char { any, only_open, only_proprietary } module;
};
using flavor = architecture::flavor;
constexpr std::array<architecture, 10> architectures{{
    {0x1d80, 0x1dff, "Volta", "384.81", 580, flavor::only_proprietary},
    {0x1e00, 0x1fff, "Turing", "410.48", 0, flavor::any},
    {0x2080, 0x20ff, "Ampere", "450.36.06", 0, flavor::any},
    {0x2180, 0x21ff, "Turing", "410.48", 0, flavor::any},
    {0x2200, 0x223f, "Ampere", "455.23", 0, flavor::any},
    {0x2300, 0x23ff, "Hopper", "520.61.05", 0, flavor::any},
    {0x2400, 0x25ff, "Ampere", "455.23", 0, flavor::any},
    {0x2680, 0x28ff, "Ada", "520.61.05", 0, flavor::any},
    {0x2900, 0x29ff, "Blackwell", "570.26", 0, flavor::only_open},
    {0x2b80, 0x2dff, "Blackwell", "570.26", 0, flavor::only_open},
}};

const architecture* architecture_of(const pci_device& card) {
  const auto match = std::ranges::find_if(architectures, [&](const architecture& entry) {
    return card.device >= entry.first_device && card.device <= entry.last_device;
  });
  return match == architectures.end() ? nullptr : &*match;
}

std::vector<pci_device> cards_on(const machine_facts& node) {
  std::vector<pci_device> out;
  if (node.pci) std::ranges::copy_if(*node.pci, std::back_inserter(out), &pci_device::is_card);
  return out;
}

bool suits(const architecture& architecture, const std::string& driver) {
  const auto parts = version_parts(driver);
  if (parts.empty()) return true;
  return parts >= version_parts(architecture.first_driver) &&
         (architecture.last_branch == 0 || parts.front() <= architecture.last_branch);
}

bool is_misfit(const pci_device& card, const std::string& driver) {
  const auto* architecture = architecture_of(card);
  return architecture && !driver.empty() && !suits(*architecture, driver);
}

std::string addresses(const std::vector<pci_device>& cards) {
  std::vector<std::string> out;
  for (const auto& card : cards) out.push_back(card.address);
  return text::some_of(out, 4);
}

std::vector<pci_device> bound_to(const std::vector<pci_device>& cards, std::string_view driver) {
  std::vector<pci_device> out;
  std::ranges::copy_if(cards, std::back_inserter(out), [&](const pci_device& card) { return card.driver == driver; });
  return out;
}

bool has_module(const machine_facts& node, std::string_view name) {
  return node.modules && std::ranges::find(*node.modules, name) != node.modules->end();
}

judgement cards_judgement(const machine_facts& node, const cards::inventory* inventory) {
  const auto cards = cards_on(node);
  const auto answering = inventory ? inventory->cards.size() : 0;
  if (cards.empty() && answering > 0) return {check_state::ok, std::to_string(answering), {}};
  if (!node.pci) return {check_state::unknown, node.pci.error(), {}};
  if (cards.empty())
    return {check_state::failed, "no NVIDIA card on the PCI bus",
            "see lspci -d 10de: on the node; a virtual machine has to be given its card by the hypervisor. Take the "
            "label of the mode off a node without cards"};
  const auto passed = bound_to(cards, "vfio-pci");
  if (!passed.empty())
    return {passed.size() == cards.size() ? check_state::failed : check_state::warning,
            "vfio-pci has " + addresses(passed) + " for virtual machines",
            "containers get no card that is passed through: keep this node for virtual machines, or bind the cards "
            "to nvidia again (driverctl unset-override ADDRESS)"};
  std::vector<pci_device> idle;
  if (is_driven(node, nullptr))
    std::ranges::copy_if(cards, std::back_inserter(idle), [&](const pci_device& card) {
      return card.driver.empty() && !is_misfit(card, node.module_version);
    });
  if (!idle.empty())
    return {check_state::failed, "no driver has taken " + addresses(idle),
            "journalctl -k | grep NVRM says why; often a reset helps (restart the machine), or the card's power or "
            "seat is bad"};
  return {check_state::ok, std::to_string(cards.size()), {}};
}

judgement nouveau_judgement(const machine_facts& node) {
  const auto held = bound_to(cards_on(node), "nouveau");
  const std::string remedy =
      "echo 'blacklist nouveau' > /etc/modprobe.d/nouveau.conf, renew the initramfs (update-initramfs -u or dracut -f) "
      "and restart the machine";
  if (!held.empty()) return {check_state::failed, "nouveau drives " + addresses(held), remedy};
  if (!node.modules) return {check_state::unknown, node.modules.error(), {}};
  if (has_module(node, "nouveau"))
    return {is_driven(node, nullptr) ? check_state::warning : check_state::failed, "nouveau is loaded", remedy};
  return {check_state::ok, "not loaded", {}};
}

/// A kernel that was installed after the driver has no module of it.
judgement kernel_judgement(const machine_facts& node) {
  if (!node.kernel) return {check_state::unknown, node.kernel.error(), {}};
  if (is_driven(node, nullptr)) return {check_state::ok, *node.kernel, {}};
  if (!node.driver_kernels) return {check_state::unknown, node.driver_kernels.error(), {}};
  const auto& built = *node.driver_kernels;
  if (built.empty()) return {check_state::unknown, *node.kernel + "; no driver is built for any kernel", {}};
  if (std::ranges::find(built, *node.kernel) != built.end()) return {check_state::ok, *node.kernel, {}};
  return {check_state::failed, *node.kernel + " runs; the driver is built for " + text::some_of(built),
          "build the driver for this kernel (install its headers, then dkms autoinstall), or start the older kernel; "
          "then modprobe nvidia"};
}

/// For device plugins, whatever the card.
bool is_too_old(const std::string& driver) {
  const auto parts = version_parts(driver);
  return !parts.empty() && parts < version_parts(entry_of(check::driver).version);
}

judgement driver_judgement(const machine_facts& node, const cards::inventory* inventory, const std::vector<row>& rows) {
  const auto& version = inventory && !inventory->driver.empty() ? inventory->driver : node.module_version;
  if (is_too_old(version))
    return {check_state::failed, version,
            "install driver " + std::string(entry_of(check::driver).version) +
                " or newer on the node: device plugins need it"};
  if (!version.empty() || is_driven(node, inventory)) return {check_state::ok, version, {}};
  const auto cause = std::ranges::find(rows, check_state::failed, &row::state);
  if (cause != rows.end()) return {check_state::unknown, "not loaded, because of " + cause->name, {}};
  if (!node.modules) return {check_state::unknown, node.modules.error(), {}};
  const bool is_built = node.kernel && node.driver_kernels &&
                        std::ranges::find(*node.driver_kernels, *node.kernel) != node.driver_kernels->end();
  if (is_built)
    return {check_state::failed, "missing",
            "the driver is installed and not loaded: modprobe nvidia; journalctl -k | grep NVRM says why it fails "
            "(Secure Boot refuses a module without a signature)"};
  return {check_state::failed, "missing",
          "install NVIDIA's driver on the node (nvidia-smi must work there), or let the GPU Operator do it"};
}

judgement library_judgement(const machine_facts& node) {
  if (!node.libraries) return {check_state::unknown, node.libraries.error(), {}};
  const auto& versions = *node.libraries;
  const auto& loaded = node.module_version;
  if (versions.empty()) return {check_state::unknown, "no libnvidia-ml where libraries usually are", {}};
  if (std::ranges::find(versions, loaded) == versions.end())
    return {check_state::failed, "the kernel runs " + loaded + ", the libraries are " + text::joined(versions),
            "the driver was upgraded while it was loaded: drain the node and restart it, or unload and load the "
            "driver (rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; modprobe nvidia)"};
  if (versions.size() > 1)
    return {check_state::warning, "libraries of several drivers: " + text::joined(versions),
            "remove what other drivers have left in the folders of libraries; containers may get the wrong one"};
  return {check_state::ok, loaded, {}};
}

judgement branch_judgement(const machine_facts& node, const std::vector<pci_device>& cards) {
  const auto& driver = node.module_version;
  if (is_too_old(driver)) return {check_state::unknown, driver + ", because of driver", {}};
  for (const auto& card : cards) {
    const auto* architecture = architecture_of(card);
    if (!architecture || !is_misfit(card, driver)) continue;
    const auto about = driver + " does not drive " + card.address + " (" + std::string(architecture->name) + ")";
    if (version_parts(driver) < version_parts(architecture->first_driver))
      return {check_state::failed, about,
              "the card needs driver " + std::string(architecture->first_driver) + " or newer"};
    return {check_state::failed, about,
            "branch " + std::to_string(architecture->last_branch) + " is the last that drives this card: install it"};
  }
  const auto unknown = std::ranges::find_if(cards, [](const pci_device& card) { return !architecture_of(card); });
  if (unknown != cards.end()) {
    char number[8];
    std::snprintf(&number[0], sizeof number, "%04x", unknown->device & 0xffffU);
    return {
        check_state::unknown, "which drivers card 10de:" + std::string(&number[0]) + " needs is not known here", {}};
  }
  return {check_state::ok, driver, {}};
}

judgement flavor_judgement(const machine_facts& node, const std::vector<pci_device>& cards) {
  const std::string found = node.is_open_module ? "open" : "proprietary";
  for (const auto& card : cards) {
    const auto* architecture = architecture_of(card);
    if (!architecture || is_misfit(card, node.module_version)) continue;
    const bool is_wrong = architecture->module == (node.is_open_module ? flavor::only_proprietary : flavor::only_open);
    if (is_wrong)
      return {check_state::failed, found + "; " + card.address + " is " + std::string(architecture->name),
              "install the " + std::string(node.is_open_module ? "proprietary" : "open") +
                  " kernel modules of the same driver: the other flavor does not drive this card"};
  }
  return {check_state::ok, found, {}};
}

judgement cuda_judgement(const cards::inventory* inventory) {
  if (!inventory) return {check_state::unknown, "NVML has not answered yet", {}};
  if (!inventory->cuda.empty()) return {check_state::ok, inventory->cuda, {}};
  return {check_state::unknown, inventory->problem.empty() ? "NVML does not say" : inventory->problem, {}};
}

}  // namespace

void judge_driver(const machine_facts& node, const cards::inventory* inventory, std::vector<row>& rows) {
  add(rows, check::cards, cards_judgement(node, inventory));
  const auto cards = cards_on(node);
  if (cards.empty() && rows.back().state == check_state::failed) return;  // nothing to drive
  add(rows, check::nouveau, nouveau_judgement(node));
  if (!node.module_version.empty() || rows.back().state != check_state::failed)
    add(rows, check::kernel, kernel_judgement(node));
  add(rows, check::driver, driver_judgement(node, inventory, rows));
  if (!node.module_version.empty()) {
    add(rows, check::driver_library, library_judgement(node));
    if (!cards.empty()) {
      add(rows, check::driver_branch, branch_judgement(node, cards));
      add(rows, check::kernel_module, flavor_judgement(node, cards));
    }
  }
  add(rows, check::cuda, cuda_judgement(inventory));
}

}  // namespace agent::facts
