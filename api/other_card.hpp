#pragma once
// An accelerator that is not NVIDIA's, as the node's agent lists it in AcceleratorNode.status.otherCards. No one but
// people reads it: what such cards can do, and how many pods share one, is known to their own device plugin.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace api {

struct other_card {
  std::string bus_id;      ///< "0000:3b:00.0"
  std::string vendor;      ///< "AMD"
  std::string pci_id;      ///< "1002:740c", as `lspci -n` has it
  std::string model;       ///< as its driver calls it; empty: not known
  std::string driver;      ///< that is bound to it; empty: none
  std::int32_t numa = -1;  ///< -1: not known
  friend bool operator==(const other_card&, const other_card&) = default;
};

/// AcceleratorNode has room for so many.
inline constexpr std::size_t most_other_cards = 64;

nlohmann::json json_of(const other_card& card);

}  // namespace api
