#pragma once
// One card under MPS, from the first step to the last. A share is lent only while `problem` is empty: the card is in
// EXCLUSIVE_PROCESS, so that a program that passes MPS by gets nothing; a server holds it; and the ceilings were read
// back from daemon and server. Whatever is otherwise takes this card out, and no other. Then the card is PROHIBITED,
// and its daemon starts again when the last client has gone. Loop thread only.

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "agent/mps/control.hpp"
#include "kube/wait_list.hpp"

namespace agent::mps {

enum class compute_mode : std::uint8_t { shared, prohibited, exclusive_process };

/// The driver's side of a card. A call may take long; nothing else of the card goes on meanwhile.
struct card_driver {
  virtual ~card_driver() = default;
  /// Set and read back.
  virtual answer_of<void> set_mode(std::string card, compute_mode mode) = 0;
  /// How many processes are on the card that are no servers of MPS.
  virtual answer_of<std::size_t> processes_on(std::string card) = 0;
};

struct server_options {
  control_options control;
  ceilings whole;                          ///< all of the card
  std::chrono::milliseconds start{5'000};  ///< for a daemon, and for a server
  /// Between two questions to a daemon whose server is in order: each starts a program. That one of them has ended is
  /// seen without a question.
  std::chrono::milliseconds period{30'000};
  std::chrono::milliseconds retry{2'000};       ///< between two looks at a card that is not
  std::chrono::milliseconds hold_limit{8'000};  ///< for ceilings that someone waits for
  /// After its share was held a container is there, or will not be.
  std::chrono::milliseconds until_started{15'000};
  /// Whether a container of a share is there, whether it uses the card by now or not. Nothing: none ever is.
  std::function<bool()> has_container = {};
};

class card_server {
 public:
  card_server(card_driver& driver, server_options options);
  ~card_server();
  card_server(const card_server&) = delete;
  card_server& operator=(const card_server&) = delete;

  /// Until it is cancelled.
  boost::asio::awaitable<void> run();
  /// New clients get at least this and at most what was asked last; read back. Clients that are there keep theirs.
  answer_of<void> hold(ceilings limits);
  /// Ends the work of those clients whose process is one of these, and of no other; how many there were. What they have
  /// on the card ends in order: a process that is killed while it computes may take the server with it. A server that
  /// does not come back from it is wedged, whatever it says of itself, and its card is given up.
  answer_of<int> end_clients(std::function<bool(unsigned)> is_one);
  /// Ends daemon and server with all clients, and gives the card back, unless a container of a share is there: what it
  /// then starts would have all of the card. After `run` has ended.
  boost::asio::awaitable<void> leave();

  const std::string& card() const { return control_.options().card; }
  const std::string& problem() const { return problem_; }  ///< empty: in order
  /// Why it was given up: its clients end or hang, and it starts again after the last of them. Empty: it is in order,
  /// is being set up, or is looked at again.
  const std::string& failure() const { return failure_; }
  std::string pipe_folder() const { return control_.pipe_folder(); }

 private:
  answer_of<void> begin();
  answer_of<void> start_daemon();
  answer_of<unsigned> started_server();
  answer_of<void> apply();
  answer_of<void> check();
  answer_of<bool> is_as_applied();  ///< false: another server, or none
  answer_of<void> reached(ceilings limits);
  boost::asio::awaitable<void> follow();
  boost::asio::awaitable<void> end_when_unused();
  bool has_died();  ///< the daemon
  bool has_server_ended() const;
  void watch_server();
  bool has_container() const;
  bool may_get_container() const;  ///< a share was held a moment ago
  void report(std::string problem);

  card_driver& driver_;
  const server_options options_;
  const control control_;
  std::optional<kube::running_program> daemon_;  ///< nothing: there was one already, or there is none
  std::optional<std::string> died_;              ///< how
  ceilings wanted_, applied_;
  unsigned process_ = 0;                        ///< of the server that has what was applied
  int process_file_ = -1;                       ///< that process, to be polled; -1: the kernel gave none
  int looks_ = 0;                               ///< since its limits were read
  int waiting_ = 0;                             ///< calls of `hold`
  std::set<unsigned> ending_;                   ///< clients
  std::string wedge_;                           ///< how it showed; empty: it is not wedged
  std::chrono::steady_clock::time_point held_;  ///< when it was asked for a share last
  std::string problem_ = "it is being set up", failure_;
  std::shared_ptr<kube::wait_list> requests_ = std::make_shared<kube::wait_list>();
  std::shared_ptr<kube::wait_list> answered_ = std::make_shared<kube::wait_list>();
};

}  // namespace agent::mps
