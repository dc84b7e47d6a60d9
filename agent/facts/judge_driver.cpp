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
  return text::abridged(out, 4);
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
  if (cards.empty() && answering > 0) return {check_state::ok, std::to_string(answering)};
  if (!node.pci) return unknown(node.pci.error());
  if (cards.empty()) return {check_state::failed, {}, {check_cause::cards_absent}};
  const auto passed = bound_to(cards, "vfio-pci");
  if (!passed.empty())
    return {passed.size() == cards.size() ? check_state::failed : check_state::warning,
            {},
            {check_cause::cards_passed_through, {{"cards", addresses(passed)}}}};
  std::vector<pci_device> idle;
  if (is_driven(node, nullptr))
    std::ranges::copy_if(cards, std::back_inserter(idle), [&](const pci_device& card) {
      return card.driver.empty() && !is_misfit(card, node.module_version);
    });
  if (!idle.empty())
    return {check_state::failed, {}, {check_cause::cards_without_driver, {{"cards", addresses(idle)}}}};
  return {check_state::ok, std::to_string(cards.size())};
}

judgement nouveau_judgement(const machine_facts& node) {
  const auto held = bound_to(cards_on(node), "nouveau");
  if (!held.empty()) return {check_state::failed, {}, {check_cause::nouveau_bound, {{"cards", addresses(held)}}}};
  if (!node.modules) return unknown(node.modules.error());
  if (has_module(node, "nouveau"))
    return {is_driven(node, nullptr) ? check_state::warning : check_state::failed, {}, {check_cause::nouveau_loaded}};
  return {check_state::ok, {}, {check_cause::nouveau_absent}};
}

/// A kernel that was installed after the driver has no module of it.
judgement kernel_judgement(const machine_facts& node) {
  if (!node.kernel) return unknown(node.kernel.error());
  if (is_driven(node, nullptr)) return {check_state::ok, *node.kernel};
  if (!node.driver_kernels) return unknown(node.driver_kernels.error());
  const auto& built = *node.driver_kernels;
  if (built.empty()) return unknown({check_cause::kernel_without_driver, {{"kernel", *node.kernel}}});
  if (std::ranges::find(built, *node.kernel) != built.end()) return {check_state::ok, *node.kernel};
  return {check_state::failed,
          {},
          {check_cause::kernel_other, {{"kernel", *node.kernel}, {"kernels", text::abridged(built)}}}};
}

/// For device plugins, whatever the card.
bool is_too_old(const std::string& driver) {
  const auto parts = version_parts(driver);
  return !parts.empty() && parts < version_parts(entry_of(check::driver).version);
}

judgement driver_judgement(const machine_facts& node, const cards::inventory* inventory, const std::vector<row>& rows) {
  const auto& version = inventory && !inventory->driver.empty() ? inventory->driver : node.module_version;
  if (is_too_old(version))
    return {check_state::failed,
            version,
            {check_cause::driver_too_old, {{"needed", std::string(entry_of(check::driver).version)}}}};
  if (!version.empty() || is_driven(node, inventory)) return {check_state::ok, version};
  const auto first = std::ranges::find(rows, check_state::failed, &row::state);
  if (first != rows.end()) return unknown({check_cause::driver_follows, {{"check", first->name}}});
  if (!node.modules) return unknown(node.modules.error());
  const bool is_built = node.kernel && node.driver_kernels &&
                        std::ranges::find(*node.driver_kernels, *node.kernel) != node.driver_kernels->end();
  return {check_state::failed, "missing", {is_built ? check_cause::driver_not_loaded : check_cause::driver_absent}};
}

judgement library_judgement(const machine_facts& node) {
  if (!node.libraries) return unknown(node.libraries.error());
  const auto& versions = *node.libraries;
  const auto& loaded = node.module_version;
  if (versions.empty()) return unknown({check_cause::libraries_unseen});
  const text::parameter libraries{"libraries", text::abridged(versions)};
  if (std::ranges::find(versions, loaded) == versions.end())
    return {check_state::failed, {}, {check_cause::library_other, {{"loaded", loaded}, libraries}}};
  if (versions.size() > 1) return {check_state::warning, {}, {check_cause::libraries_mixed, {libraries}}};
  return {check_state::ok, loaded};
}

judgement branch_judgement(const machine_facts& node, const std::vector<pci_device>& cards) {
  const auto& driver = node.module_version;
  if (is_too_old(driver))
    return unknown({check_cause::follows, {{"value", driver}, {"check", std::string(to_string(check::driver))}}});
  for (const auto& card : cards) {
    const auto* architecture = architecture_of(card);
    if (!architecture || !is_misfit(card, driver)) continue;
    const std::string first(architecture->first_driver);
    explained_cause cause{check_cause::driver_too_old_for_card,
                          {{"driver", driver},
                           {"card", card.address},
                           {"architecture", std::string(architecture->name)},
                           {"needed", first}}};
    if (version_parts(driver) >= version_parts(first)) {
      cause.code = check_cause::driver_too_new_for_card;
      cause.parameters.back() = {"branch", std::to_string(architecture->last_branch)};
    }
    return {check_state::failed, {}, std::move(cause)};
  }
  const auto stranger = std::ranges::find_if(cards, [](const pci_device& card) { return !architecture_of(card); });
  if (stranger != cards.end()) {
    char number[16];
    std::snprintf(&number[0], sizeof number, "10de:%04x", stranger->device & 0xffffU);
    return unknown({check_cause::card_unknown, {{"card", &number[0]}}});
  }
  return {check_state::ok, driver};
}

judgement flavor_judgement(const machine_facts& node, const std::vector<pci_device>& cards) {
  const std::string found = node.is_open_module ? "open" : "proprietary";
  for (const auto& card : cards) {
    const auto* architecture = architecture_of(card);
    if (!architecture || is_misfit(card, node.module_version)) continue;
    const bool is_wrong = architecture->module == (node.is_open_module ? flavor::only_proprietary : flavor::only_open);
    if (is_wrong)
      return {check_state::failed,
              {},
              {node.is_open_module ? check_cause::open_module_unfit : check_cause::proprietary_module_unfit,
               {{"card", card.address}, {"architecture", std::string(architecture->name)}}}};
  }
  return {check_state::ok, found};
}

judgement cuda_judgement(const cards::inventory* inventory) {
  if (!inventory) return unknown({check_cause::nvml_pending});
  if (!inventory->cuda.empty()) return {check_state::ok, inventory->cuda};
  if (inventory->problem.empty()) return unknown({check_cause::cuda_unsaid});
  return unknown({check_cause::nvml_failed, {{"error", inventory->problem}}});
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
