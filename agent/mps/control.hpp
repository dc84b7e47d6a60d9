#pragma once
// NVIDIA's MPS control daemon of one card, spoken to by its own program, one command a call (recorded on an H200 with
// driver 580.159.04). The program ends with 0 whatever the daemon thinks of a command, and limits of cards that it does
// not know are ignored without a word: only reading back tells.

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/program.hpp"

namespace agent::mps {

/// What no client of a server gets more of, whatever its environment says. Of each process, not of all together.
struct ceilings {
  std::int32_t cores = 100;     ///< hundredths of the card's multiprocessors
  std::int64_t memory_mib = 0;  ///< pinned on the card

  friend bool operator==(const ceilings&, const ceilings&) = default;
  bool reaches(const ceilings& other) const { return cores >= other.cores && memory_mib >= other.memory_mib; }
};
std::string text_of(const ceilings& limits);  ///< "30 % and 2048 MiB"

/// "30.0".
std::optional<std::int32_t> percentage_in(std::string_view answer);
/// "2G", "1500M".
std::optional<std::int64_t> memory_mib_in(std::string_view answer);
/// One number a line, nothing else.
std::optional<std::vector<unsigned>> processes_in(std::string_view answer);

struct control_options {
  std::string program = "nvidia-cuda-mps-control";
  std::string folder;  ///< its pipes, and its logs in a folder next to them
  std::string card;    ///< UUID: the only one that the daemon sees, so it has number 0 there
  std::chrono::milliseconds deadline{1'000};
  std::chrono::milliseconds end_deadline{10'000};  ///< for the end of a client, whose work on the card ends first
};

using problem = std::string;  ///< one line
template <class T>
using answer_of = boost::asio::awaitable<std::expected<T, problem>>;

class control {
 public:
  explicit control(control_options options) : options_(std::move(options)) {}

  /// The daemon, in the foreground. Folders are made.
  std::expected<kube::running_program, problem> start() const;
  answer_of<std::string> command(std::string text) const { return command(std::move(text), options_.deadline); }

  /// None: no client has come yet, or the server has ended.
  answer_of<std::vector<unsigned>> servers() const;
  answer_of<void> start_server() const { return nothing("start_server -uid 0"); }
  answer_of<std::string> status_of(unsigned server) const;  ///< "ACTIVE"
  /// Of servers that start later.
  answer_of<void> set_default(ceilings limits) const;
  answer_of<ceilings> defaults() const;
  /// Of clients of this server that come later.
  answer_of<void> set(unsigned server, ceilings limits) const;
  answer_of<ceilings> limits_of(unsigned server) const;
  /// Of all users.
  answer_of<std::vector<unsigned>> clients_of(unsigned server) const;
  /// The client's next call into CUDA fails with 810, and its work on the card has ended. Its process goes on, and so
  /// do all others.
  answer_of<void> terminate(unsigned server, unsigned client) const;
  answer_of<void> quit() const { return nothing("quit"); }

  const control_options& options() const { return options_; }
  std::string pipe_folder() const { return options_.folder + "/pipe"; }

 private:
  answer_of<std::string> command(std::string text, std::chrono::milliseconds deadline) const;
  answer_of<std::vector<unsigned>> processes(std::string text) const;
  answer_of<void> nothing(std::string text) const;
  answer_of<ceilings> read(std::string cores, std::string memory) const;
  kube::program program(std::vector<std::string> arguments, std::string input) const;
  control_options options_;
};

}  // namespace agent::mps
