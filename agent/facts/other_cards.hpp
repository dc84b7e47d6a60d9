#pragma once
// Which PCI devices are accelerators of vendors other than NVIDIA. Pure.

#include <string_view>
#include <vector>

#include "agent/facts/node.hpp"
#include "api/other_card.hpp"

namespace agent::facts {

/// "AMD"; empty where the device is no accelerator of a vendor that we know.
std::string_view vendor_of_card(const pci_device& device);

/// In the order of their addresses; none where the PCI bus cannot be seen.
std::vector<api::other_card> other_cards(const machine_facts& node);

}  // namespace agent::facts
