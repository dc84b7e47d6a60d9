#pragma once
// Keeps the preflight rows and the cards of other vendors in this node's AcceleratorNode true. A thread of its own
// reads the files: when it starts, every few minutes, and when someone says that something has changed. The rows are
// judged and written on the loop.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "agent/cards/inventory.hpp"
#include "agent/facts/status.hpp"
#include "controller/clock.hpp"
#include "controller/coded_status.hpp"
#include "kube/client.hpp"

namespace agent::facts {

/// The thread.
class facts_reader {
 public:
  /// `deliver` is called on the thread.
  facts_reader(facts::folders folders, std::chrono::milliseconds period, std::function<void(machine_facts)> deliver);
  facts_reader(const facts_reader&) = delete;
  facts_reader& operator=(const facts_reader&) = delete;
  /// Reads soon instead of after the period.
  void read_again();
  /// False: the thread still reads, and must be left to itself. A file system of the node may not answer.
  bool end_within(std::chrono::milliseconds time);

 private:
  void work(const std::stop_token& stop);

  facts::folders folders_;
  std::chrono::milliseconds period_;
  std::function<void(machine_facts)> deliver_;
  std::mutex lock_;
  std::condition_variable_any changed_;
  bool is_asked_ = false;
  std::atomic<bool> has_ended_ = false;
  std::jthread thread_;  ///< last, so that it ends first
};

/// What is to be written. Used on the loop only.
class reporter {
 public:
  void take(machine_facts seen) { seen_ = std::move(seen); }
  /// Applies the rows where the object does not say them. At most every few seconds: `due` says when the rest comes.
  /// @param cards nothing: NVML has not answered yet
  kube::task<void> write(kube::client& api, const api::reported_node* object, const cards::inventory* cards);
  /// The rows as they are now; empty before the first look at the files.
  std::vector<row> rows(const cards::inventory* cards) const {
    return seen_ ? judge(*seen_, cards) : std::vector<row>();
  }
  /// When to call `write` again although nothing happened, as controller::boot_now().
  std::optional<std::chrono::milliseconds> due() const { return due_; }

 private:
  std::optional<machine_facts> seen_;
  std::uint64_t written_version_ = 0;  ///< of the object that we wrote over; the watch may not have shown more yet
  std::vector<row> written_;
  std::vector<api::other_card> written_others_;
  std::chrono::milliseconds began_ = controller::boot_now();
  std::optional<std::chrono::milliseconds> last_, due_;
  controller::coded_status status_;
};

}  // namespace agent::facts
