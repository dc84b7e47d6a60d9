#include "agent/facts/other_cards.hpp"

#include <algorithm>
#include <cstdio>

#include "text/escape.hpp"

namespace agent::facts {
namespace {

/// Numbers of vendors and classes: pci.ids 2026.08.22. Accelerators that are graphics cards, too, have the
/// class of a VGA controller. A VGA controller of another vendor only drives a server's screen (Huawei's 19e5:1711).
struct vendor {
  unsigned number;
  std::string_view name;
  bool makes_graphics = false;
};
constexpr vendor vendors[] = {{0x1002, "AMD", true}, {0x8086, "Intel", true}, {0x1ed5, "Moore Threads", true},
                              {0x19e5, "Huawei"},    {0xcabc, "Cambricon"},   {0x1d94, "Hygon"},
                              {0x1e3e, "Iluvatar"},  {0x9999, "MetaX"},       {0x1e36, "Enflame"},
                              {0x1da3, "Habana"},    {0x1d22, "Baidu"}};
constexpr unsigned vga = 0x0300, controller_3d = 0x0302, other_display = 0x0380, processing = 0x1200;
constexpr unsigned intel = 0x8086;

/// The PCI address of the graphics inside Intel's processors.
constexpr std::string_view integrated_graphics = "0000:00:02.0";

std::string pci_id_of(const pci_device& device) {
  char out[16];
  std::snprintf(&out[0], sizeof out, "%04x:%04x", device.vendor & 0xffffU, device.device & 0xffffU);
  return &out[0];
}

}  // namespace

std::string_view vendor_of_card(const pci_device& device) {
  const auto match = std::ranges::find(vendors, device.vendor, &vendor::number);
  if (match == std::end(vendors)) return {};
  const auto kind = device.class_code >> 8;
  if (kind == vga && (!match->makes_graphics || (device.vendor == intel && device.address == integrated_graphics)))
    return {};
  return kind == vga || kind == controller_3d || kind == other_display || kind == processing ? match->name
                                                                                             : std::string_view();
}

std::vector<api::other_card> other_cards(const machine_facts& node) {
  std::vector<api::other_card> out;
  if (!node.pci) return out;
  for (const auto& device : *node.pci) {
    const auto name = vendor_of_card(device);
    if (name.empty() || out.size() == api::most_other_cards) continue;
    api::other_card card;
    card.bus_id = text::utf8_clean(device.address, 32);
    card.vendor = name;
    card.pci_id = pci_id_of(device);
    card.model = text::utf8_clean(device.product, 128);
    card.driver = text::utf8_clean(device.driver, 63);
    card.numa = device.numa;
    out.push_back(std::move(card));
  }
  std::ranges::sort(out, {}, &api::other_card::bus_id);
  // The API server refuses a list with one address twice, and with it the whole report.
  const auto [rest, end] = std::ranges::unique(out, {}, &api::other_card::bus_id);
  out.erase(rest, end);
  return out;
}

}  // namespace agent::facts
