#include "agent/cards/inventory.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "text/escape.hpp"
#include "text/messages.hpp"

namespace agent::cards {
namespace {

constexpr std::int64_t mib = 1024 * 1024;
constexpr std::size_t longest_driver = 63, longest_capability = 16;  // of the CRD

/// A text that NVML wrote, which may have no end and need not be UTF-8.
template <std::size_t Length>
std::string text_in(const char (&text)[Length]) {
  return text::utf8_clean({&text[0], strnlen(&text[0], Length)});
}

/// Empty where the card has none.
template <class Function, class... Arguments>
std::string text_of(const nvml_library& nvml, const Function& function, Arguments... arguments) {
  char text[96] = {};
  const unsigned length = sizeof text;
  return nvml(function, arguments..., &text[0], length) == nvml::success ? text_in(text) : "";
}

int numa_of(const nvml_library& nvml, nvml::device device) {
  constexpr unsigned words = 16, node_scope = 0;
  std::array<unsigned long, words> mask{};
  if (nvml(call::memory_affinity, device, words, mask.data(), node_scope) != nvml::success) return -1;
  for (unsigned i = 0; i < words; ++i)
    if (mask[i] != 0) return static_cast<int>(i * 8 * sizeof(unsigned long)) + std::countr_zero(mask[i]);
  return -1;
}

std::string version_of(int packed) { return std::to_string(packed / 1000) + "." + std::to_string(packed % 1000 / 10); }

/// The addresses of what the card's working NVLinks lead to: other cards, or switches.
std::vector<std::string> nvlink_peers(const nvml_library& nvml, nvml::device device) {
  std::vector<std::string> out;
  for (unsigned link = 0; link < nvml::max_links; ++link) {
    int is_active = 0;
    if (nvml(call::nvlink_state, device, link, &is_active) != nvml::success) break;
    nvml::pci_info peer{};
    if (is_active && nvml(call::nvlink_peer, device, link, &peer) == nvml::success) out.push_back(text_in(peer.bus_id));
  }
  return out;
}

quota::path path_of(int level) {
  switch (level) {
    case nvml::single:
      return quota::path::bridge;
    case nvml::multiple:
      return quota::path::bridges;
    case nvml::host_bridge:
      return quota::path::host_bridge;
    case nvml::same_node:
      return quota::path::numa_node;
    case nvml::across_nodes:
      return quota::path::system;
    default:
      return quota::path::unknown;
  }
}

struct seen_card {
  nvml::device device;
  std::string bus_id;
  std::vector<std::string> peers;
};

/// The NVLinks between two cards: direct ones, and those to switches, which join all cards of a machine.
long links_between(const std::vector<seen_card>& all, const seen_card& left, const seen_card& right) {
  const auto count = [&](const seen_card& card, const seen_card& other) {
    return std::ranges::count_if(card.peers, [&](const std::string& peer) {
      return peer == other.bus_id || std::ranges::find(all, peer, &seen_card::bus_id) == all.end();
    });
  };
  return std::min(count(left, right), count(right, left));
}

quota::link link_of(const nvml_library& nvml, const std::vector<seen_card>& all, const seen_card& left,
                    const seen_card& right) {
  if (left.device == right.device) return {};
  quota::link out;
  out.nvlinks = static_cast<std::uint8_t>(links_between(all, left, right));
  int level = -1;
  if (nvml(call::common_ancestor, left.device, right.device, &level) == nvml::success) out.pci = path_of(level);
  return out;
}

/// Rows of memory that cannot be replaced any more: NVIDIA asks for such a card to be exchanged. Rows that wait for a
/// reset, pages that wait for a restart, and errors that ECC could not correct since the driver was loaded are only
/// reported. Source: NVIDIA GPU Memory Error Management (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt).
void read_memory_health(const nvml_library& nvml, nvml::device device, card& out) {
  unsigned correctable = 0, uncorrectable = 0, is_remap_pending = 0, has_failed = 0;
  if (nvml(call::remapped_rows, device, &correctable, &uncorrectable, &is_remap_pending, &has_failed) ==
      nvml::success) {
    if (has_failed) out.defect = "RowRemapFailed";
    if (is_remap_pending) out.warnings.emplace_back("RowRemapPending");
  }
  int is_retirement_pending = 0;
  if (nvml(call::retirement_pending, device, &is_retirement_pending) == nvml::success && is_retirement_pending)
    out.warnings.emplace_back("PageRetirementPending");
  std::uint64_t errors = 0;
  if (nvml(call::total_ecc_errors, device, nvml::uncorrected, nvml::since_load, &errors) == nvml::success && errors > 0)
    out.warnings.emplace_back("UncorrectedECC");
}

/// The card has halved its clocks or more, because of heat or because its power supply asks for it. Source: NVML API
/// reference, nvmlClocksEventReasons.
bool is_slowed_by_hardware(const nvml_library& nvml, nvml::device device) {
  constexpr std::uint64_t hardware =
      nvml::throttle_hw_slowdown | nvml::throttle_hw_thermal | nvml::throttle_hw_power_brake;
  std::uint64_t reasons = 0;
  return nvml(call::throttle_reasons, device, &reasons) == nvml::success && (reasons & hardware) != 0;
}

/// How far the card is joined to the others behind its switches; empty where it has none.
std::string fabric_of(const nvml_library& nvml, nvml::device device) {
  nvml::fabric_info info{};
  if (nvml(call::fabric_info, device, &info) != nvml::success) return {};
  switch (info.state) {
    case nvml::fabric_not_started:
      return "not started";
    case nvml::fabric_in_progress:
      return "in progress";
    case nvml::fabric_completed:
      return info.status == nvml::success ? "completed" : "failed: " + nvml.error_text(info.status);
    default:
      return {};
  }
}

/// The settings that are of no single card: `inventory` has the worst.
void take_in_settings(const nvml_library& nvml, nvml::device device, inventory& inventory) {
  int is_persistent = 1;
  if (nvml(call::persistence_mode, device, &is_persistent) == nvml::success && is_persistent == 0)
    ++inventory.without_persistence;
  const auto fabric = fabric_of(nvml, device);
  if (inventory.fabric.empty() || (inventory.fabric == "completed" && !fabric.empty())) inventory.fabric = fabric;
}

card read_card(const nvml_library& nvml, nvml::device device, const std::string& uuid) {
  card out;
  out.uuid = uuid;
  out.model = text_of(nvml, call::name, device);
  unsigned minor = 0;
  if (nvml(call::minor_number, device, &minor) == nvml::success) out.minor = static_cast<int>(minor);
  nvml::pci_info address{};
  if (nvml(call::pci_info, device, &address) == nvml::success) out.bus_id = text_in(address.bus_id);
  nvml::memory memory{};
  if (nvml(call::memory_info, device, &memory) == nvml::success)
    out.memory_mib = static_cast<std::int64_t>(memory.total) / mib;
  int major = 0, minor_capability = 0;
  if (nvml(call::compute_capability, device, &major, &minor_capability) == nvml::success)
    out.compute_capability =
        text::utf8_clean(std::to_string(major) + "." + std::to_string(minor_capability), longest_capability);
  out.numa = numa_of(nvml, device);
  unsigned is_cut = 0, will_be_cut = 0;
  out.mig = nvml(call::mig_mode, device, &is_cut, &will_be_cut) == nvml::success && is_cut != 0;
  read_memory_health(nvml, device, out);
  if (is_slowed_by_hardware(nvml, device)) out.warnings.emplace_back("HwSlowdown");
  std::ranges::sort(out.warnings);
  return out;
}

}  // namespace

inventory read_inventory(const nvml_library& nvml) {
  inventory out;
  out.driver = text::utf8_clean(text_of(nvml, call::driver_version), longest_driver);
  int cuda = 0;
  if (nvml(call::cuda_version, &cuda) == nvml::success) out.cuda = version_of(cuda);
  unsigned count = 0;
  if (const auto code = nvml(call::count, &count); code != nvml::success) {
    out.problem = text::message("nvml.no_count", text::language::en, {{"error", nvml.error_text(code)}});
    return out;
  }
  std::vector<seen_card> seen;
  if (count > most_cards) out.silent = static_cast<int>(std::min(count - most_cards, 1'000'000U));
  for (unsigned index = 0; index < std::min(count, most_cards); ++index) {
    nvml::device device = nullptr;
    const bool answers = nvml(call::handle_by_index, index, &device) == nvml::success;
    const auto uuid = answers ? text_of(nvml, call::uuid, device) : std::string();
    if (uuid.empty() || std::ranges::find(out.cards, uuid, &card::uuid) != out.cards.end()) {
      ++out.silent;
      continue;
    }
    out.cards.push_back(read_card(nvml, device, uuid));
    take_in_settings(nvml, device, out);
    seen.push_back({device, out.cards.back().bus_id, nvlink_peers(nvml, device)});
  }
  for (std::size_t i = 0; i < seen.size(); ++i)
    for (const auto& other : seen) out.cards[i].links.push_back(link_of(nvml, seen, seen[i], other));
  return out;
}

}  // namespace agent::cards
