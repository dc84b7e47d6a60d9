#pragma once
// What of XIDs is logged: one line per card and second, however many the driver reports. Pure: time is an argument. The
// watcher delivers each XID of a card once a second, so what is counted here are different XIDs.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/cards/history.hpp"

namespace agent::cards {

struct xid_line {
  std::string card;                 ///< UUID
  std::vector<std::uint64_t> xids;  ///< the first of them, and before these what withdraws the card
  std::size_t count = 0;            ///< of all

  /// "13, 31 and 5 more"
  std::string numbers() const;
  /// Of those in `xids` that have a name.
  std::string names() const;
};

class xid_log {
 public:
  /// The line for now; nothing: it is counted in a later one.
  std::optional<xid_line> see(const xid_note& note, std::chrono::milliseconds now);
  /// Lines about what was counted; to be called once a second.
  std::vector<xid_line> due(std::chrono::milliseconds now);
  /// The same of what was counted in a second that is not over.
  std::vector<xid_line> rest();
  /// Cards with a line of the last second.
  std::size_t size() const { return windows_.size(); }

  static constexpr std::chrono::milliseconds window_length{1'000};
  static constexpr std::size_t most_numbers = 3;

 private:
  struct window {
    std::chrono::milliseconds begin{0};  ///< when the last line was given
    xid_line later;
  };
  std::map<std::string, window> windows_;  ///< by UUID
};

}  // namespace agent::cards
