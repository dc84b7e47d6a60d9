#pragma once
// Other programs: started with posix_spawn, waited for on the loop thread without blocking it, and killed at the
// deadline with all that they started.

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kube/task.hpp"

namespace kube {

struct program {
  std::vector<std::string> command;  ///< the first is a name on the PATH, or a path
  /// Next to the variables of this process, which they replace; nothing: this process's is left out.
  std::map<std::string, std::optional<std::string>> environment = {};
  std::string input = {};     ///< what it reads
  bool has_terminal = false;  ///< it reads and complains where this process does, and Ctrl-C reaches it
};

/// A program that runs; killed and reaped by the destructor unless it has ended.
class running_program {
 public:
  /// An errno in words where it cannot be started: "not found".
  static std::expected<running_program, std::string> start(const program& program);
  running_program(running_program&& other) noexcept;
  running_program& operator=(running_program&& other) noexcept;
  ~running_program();

  /// The wait status once it has ended.
  std::optional<int> ended();
  /// Readable once it has ended, the caller's to close; -1: the kernel gives none (before Linux 5.3).
  int end_file() const;
  void signal(int number) const;
  std::string output() const;      ///< at most 1 MiB
  std::string complaints() const;  ///< what it wrote as errors

 private:
  class memory_file;
  running_program();
  pid_t pid_ = -1;
  bool has_group_ = false;
  std::unique_ptr<memory_file> output_, complaints_;
};

struct program_end {
  int status = 0;  ///< as waitpid has it
  std::string output, complaints;
};

/// The last line that says something, cut to a readable length.
std::string last_line(std::string text);
/// "was killed by signal 9" or "failed with exit code 1".
std::string end_in_words(int status);

/// errc::config where it cannot be started, timeout (then it is killed), cancelled. The message does not name it.
/// SIGINT, SIGTERM and SIGHUP kill it before they end this process.
task<program_end> run(program program, std::chrono::milliseconds limit);

}  // namespace kube
