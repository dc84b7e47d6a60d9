#pragma once
// Lines to a file descriptor that may be a pipe no one reads. For a pipe or a terminal we open the same file again
// without blocking: the flag belongs to our own open file then, not to the one we share with others. What is not taken
// now is kept, in order, up to a bound; beyond it the oldest whole lines go. No thread: what could be written was
// written before the call returned, also before a crash.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace controller {

class log_sink {
 public:
  /// Keeps at most `bound` bytes that could not be written. `fd` stays the caller's.
  explicit log_sink(int fd, std::size_t bound = 256 * 1024);
  ~log_sink();
  log_sink(const log_sink&) = delete;
  log_sink& operator=(const log_sink&) = delete;

  /// One line with its line end.
  void write(std::string line);
  /// True when nothing is kept any more.
  bool flush();
  std::uint64_t dropped() const { return dropped_; }

 private:
  /// Bytes taken, 0 when it would block, -1 when the line can never be written (disk full, reader gone).
  long try_write(const char* bytes, std::size_t size);

  int fd_;
  bool own_ = false;
  bool socket_ = false;
  std::size_t bound_;
  std::deque<std::string> kept_;
  std::size_t kept_bytes_ = 0;
  std::size_t written_of_first_ = 0;  // a line that was begun is finished before anything else
  std::uint64_t dropped_ = 0;
};

}  // namespace controller
