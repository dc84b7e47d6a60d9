#pragma once
// How much is used of each card, and by which processes: one reading of NVML and /proc. What a card or a driver does
// not say is absent, and never 0.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/cards/nvml.hpp"
#include "agent/cards/process.hpp"

namespace agent::cards {

struct process_usage {
  unsigned pid = 0;
  process_owner owner;
  std::optional<std::uint64_t> memory;  ///< bytes
  std::uint64_t utilization_ppm = 0;    ///< of the card's multiprocessors; mean of the samples since the last reading
  bool is_mps_client = false;
};

struct card_usage {
  std::string uuid;
  std::vector<std::string> mig_uuids;                                       ///< of the devices that it is cut into
  std::optional<std::uint64_t> memory_total, memory_used, memory_reserved;  ///< bytes
  std::optional<std::uint64_t> utilization_ppm;                             ///< time in which a kernel ran
  std::optional<unsigned> temperature_celsius;
  std::optional<std::uint64_t> power_mw, energy_mj;
  std::optional<std::uint64_t> throttle_reasons;                     ///< nvml::throttle_bit
  std::optional<std::uint64_t> nvlink_transmitted, nvlink_received;  ///< bytes since the driver was loaded
  bool lists_processes = false;
  bool samples_processes = false;  ///< the driver says how busy each process is
  std::vector<process_usage> processes;
};

class usage_reader {
 public:
  explicit usage_reader(std::string proc) : proc_(std::move(proc)) {}
  /// Of the cards that answer: some 15 calls for a card. NVML has been started.
  std::vector<card_usage> read(const nvml_library& nvml);

 private:
  void read_processes(const nvml_library& nvml, nvml::device device, card_usage& card);

  std::string proc_;
  std::map<std::string, std::uint64_t> last_sample_;  ///< by UUID, microseconds since 1970
};

}  // namespace agent::cards
