#pragma once
// PCI addresses: "0000:3b:00.0" in fixtures, "00000000:3B:00.0" at the interface.

#include <cstdio>
#include <string>

#include "../call.hpp"

namespace nvml {

struct bus_address {
  unsigned domain = ~0U, bus = 0, device = 0;
};

inline bus_address parsed_bus_id(const std::string& text) {
  bus_address address;
  if (std::sscanf(text.c_str(), "%x:%x:%x", &address.domain, &address.bus, &address.device) == 3) return address;
  address.domain = 0;
  if (std::sscanf(text.c_str(), "%x:%x", &address.bus, &address.device) == 2) return address;
  throw failure{invalid_argument};
}

inline pci_info pci_at(const std::string& bus_id) {
  pci_info info{};
  const auto address = parsed_bus_id(bus_id);
  info.domain = address.domain;
  info.bus = address.bus;
  info.device = address.device;
  std::snprintf(info.bus_id, sizeof info.bus_id, "%08X:%02X:%02X.0", info.domain, info.bus, info.device);
  std::snprintf(info.bus_id_legacy, sizeof info.bus_id_legacy, "%04X:%02X:%02X.0", info.domain & 0xffff,
                info.bus & 0xff, info.device & 0xff);
  return info;
}

inline pci_info pci_of(const json& card) {
  auto info = pci_at(card["pci_bus_id"]);
  info.device_id = static_cast<unsigned>(std::stoul(card.value("pci_device_id", "0"), nullptr, 16));
  info.subsystem_id = static_cast<unsigned>(std::stoul(card.value("pci_subsystem_id", "0"), nullptr, 16));
  return info;
}

}  // namespace nvml
