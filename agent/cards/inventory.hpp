#pragma once
// Which cards a node has, as NVML says at one moment. `inventory` is what the rest of the agent works with; nothing of
// NVML is in it.

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "agent/cards/nvml.hpp"
#include "quota/inventory.hpp"

namespace agent::cards {

struct card {
  std::string uuid, model;         ///< "GPU-…", "NVIDIA A100-SXM4-80GB"
  std::string bus_id;              ///< "00000000:07:00.0"
  std::string compute_capability;  ///< "8.0"
  int minor = -1;                  ///< N of /dev/nvidiaN
  int numa = -1;                   ///< -1: not known
  std::int64_t memory_mib = 0;
  bool mig = false;                   ///< cut by MIG
  bool is_limited = false;            ///< the driver limits the memory of pods on it
  std::vector<quota::link> links;     ///< to each card of the inventory, in its order; unknown to itself
  std::string defect;                 ///< what is wrong with it, in a word or two; empty: nothing
  std::vector<std::string> warnings;  ///< what a person should look at, in a word each; the card is used all the same
  friend bool operator==(const card&, const card&) = default;
};

/// Of one node; AcceleratorNode has no room for more.
inline constexpr unsigned most_cards = 64;

struct inventory {
  std::string driver, cuda;     ///< "550.90.07", "12.4"; empty: there is no driver
  std::vector<card> cards;      ///< those that answer, in the order of their numbers
  int silent = 0;               ///< cards that the driver counts and that do not answer, or that cannot be told apart
  std::string problem;          ///< why nothing is known, in one line
  bool hangs = false;           ///< the problem is a call into the driver that does not come back
  int without_persistence = 0;  ///< cards that the driver lets go of when no program uses them
  /// Of cards behind NVSwitches, the worst: "completed", "in progress", "not started"; empty: none.
  std::string fabric;
  friend bool operator==(const inventory&, const inventory&) = default;
};

/// Everything, links included: some 50 calls for a card. NVML has been started.
inventory read_inventory(const nvml_library& nvml);
}  // namespace agent::cards
