#pragma once
// The thread that talks to NVML. It reads the inventory when it starts, every period, and when the driver's list of
// cards changes. Between two readings it waits for XIDs. It starts NVML again when the driver was away. It decides
// nothing.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "agent/cards/inventory.hpp"
#include "agent/cards/usage.hpp"

namespace agent::cards {

struct xid_event {
  std::string card;  ///< UUID
  std::uint64_t xid = 0;
};

/// What the thread has seen. Exactly one of these is set.
struct sighting {
  std::optional<inventory> now;
  std::optional<xid_event> event;
  bool driver_loaded = false;                    ///< NVML works again after it did not
  std::optional<std::vector<card_usage>> usage;  ///< once a period, where it is asked for
};

struct watcher_options {
  std::string root = "/";                                 ///< where the node's file system is mounted
  std::string driver_cards = "/proc/driver/nvidia/gpus";  ///< the kernel module has a folder per card there
  std::chrono::milliseconds period{10'000};               ///< between two readings of everything
  std::chrono::milliseconds retry{1'000};                 ///< between two tries to start NVML
  std::chrono::milliseconds event_wait{500};              ///< one call into the driver that waits for XIDs
  bool reads_usage = false;                               ///< also reads usage, every period
  std::string proc = "/proc";                             ///< where processes of the node are looked up
};

class watcher {
 public:
  /// `deliver` is called on the thread.
  watcher(watcher_options options, std::function<void(sighting)> deliver);
  /// Asks the thread to end and waits for it. False: it is still in a call, and this must not be destroyed.
  bool end_within(std::chrono::milliseconds time);
  /// Waits for the thread; at most for the NVML call that it is in.
  ~watcher() = default;
  /// For how long the thread has been in one call into the driver; little more than `event_wait` while the driver
  /// answers. Any thread may call this.
  std::chrono::milliseconds silence() const { return life_.age(); }
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

 private:
  void work(const std::stop_token& stop);
  void deliver_usage(const nvml_library& nvml);
  /// Reads and delivers until NVML has to be started again. True: the driver has gone.
  bool follow(const std::stop_token& stop, const nvml_library& nvml);

  watcher_options options_;
  std::function<void(sighting)> deliver_;
  usage_reader usage_{options_.proc};
  sign_of_life life_;
  std::atomic<bool> has_ended_ = false;
  std::jthread thread_;  ///< last, so that it ends first
};

}  // namespace agent::cards
