#pragma once
// Until when nothing is missing of what a reflector has taken in, and which news may be old. A watch that is opened
// sends what happened since its version, with no word of when; a list only shows what is left. A reader that
// counts time has to know since when a pod that vanishes there may have been away.
//
// No clock and no I/O: controller/reflector.cpp calls it, and tests drive it by hand. Times are any monotonic clock's.

#include <optional>

#include "controller/clock.hpp"

namespace controller {

class continuity {
 public:
  /// What happened before a watch was opened comes right behind its head. Later than this comes what happens then.
  static constexpr milliseconds backlog_limit{5000};

  /// A request goes out, for a list (WatchLists and later pages too) or for a watch from a version.
  void ask(milliseconds now, bool lists);
  /// The head of a stream is here, maybe long before its first bytes. Without this call the first bytes count.
  void open(milliseconds now);
  /// News are here that are not taken in yet: all of it happened after the time returned. Empty: it happens now, or
  /// nothing was known before.
  std::optional<milliseconds> news(milliseconds now);
  /// A list begins with the answer to the last `ask`: it shows that moment or a later one.
  void begin() { begun_ = sent_; }
  /// The list is complete. A WatchList goes on as a watch that has just been opened.
  void complete(milliseconds now);
  /// The news were taken in without an error.
  void took(milliseconds now);
  /// The stream has ended. `clean`: in good order, so that it was whole until then.
  void end(milliseconds now, bool clean);

 private:
  bool settled(milliseconds now) const { return !lists_ && open_ && now - *open_ >= backlog_limit; }

  std::optional<milliseconds> known_;  ///< nothing is missing until then; empty before the first list
  std::optional<milliseconds> open_;   ///< since when the stream is
  milliseconds last_{0};               ///< its last news, or since when it is open
  milliseconds sent_{0}, begun_{0};
  bool lists_ = true;   ///< a list is asked for or in progress
  bool heard_ = false;  ///< news of the stream were taken in
};

}  // namespace controller
