#pragma once
// The one thread and what runs on it. Coroutines are spawned by name. An exception out of one is a bug: it is caught
// here, counted and logged once, and the others go on. Without an essential one (a cache, the election, accepting
// callers) the process would be of no use, so it ends with status 1 and is started again. Signals: the
// first SIGTERM or SIGINT asks for a stop; from then on a second one, or the deadline, ends the process even if the
// thread hangs, because both are plain signal handlers then. SIGPIPE and SIGHUP are ignored.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/clock.hpp"
#include "controller/metrics.hpp"
#include "kube/task.hpp"

namespace controller {

/// A spawned coroutine, to cancel it and to know when it is over. Cheap to copy; letting go of it does not end the
/// coroutine.
class spawned {
 public:
  spawned() = default;
  void cancel() const;
  bool running() const { return state_ && state_->running; }

 private:
  friend class loop;
  struct state {
    boost::asio::cancellation_signal stop;
    bool running = true;
  };
  std::shared_ptr<state> state_;
};

class loop {
 public:
  /// `lag_period`: between two looks at how late the loop is; often enough to see a stall, rare enough to cost nothing.
  explicit loop(registry& metrics, milliseconds lag_period = milliseconds(1000));
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  boost::asio::io_context& context() { return context_; }
  auto executor() { return context_.get_executor(); }

  /// Starts a coroutine with the next turn of the loop. `name` is a metric label: short and constant. An error result
  /// is logged as a warning, unless it is errc::cancelled.
  spawned spawn(std::string name, boost::asio::awaitable<void> coroutine);
  spawned spawn(std::string name, kube::task<void> task);
  /// One the process is of no use without: an exception or an error out of it ends the process (`on_fatal`), unless it
  /// is errc::cancelled.
  spawned spawn_essential(std::string name, boost::asio::awaitable<void> coroutine);
  spawned spawn_essential(std::string name, kube::task<void> task);
  /// Called instead of ending the process, by tests.
  void on_fatal(std::function<void(std::string_view name)> call) { on_fatal_ = std::move(call); }
  /// A call with the next turn of the loop.
  void post(std::function<void()> callback);

  /// SIGTERM and SIGINT call `stop` once. When the process is still there `hard` after that it exits with status 1 and
  /// one line.
  void stop_on_signals(std::function<void()> stop, milliseconds hard = milliseconds(10'000));
  /// Runs until `quit`, or until nothing is left to do.
  void run();
  void quit() { context_.stop(); }

 private:
  boost::asio::awaitable<void> measure_lag();
  spawned start(std::string name, boost::asio::awaitable<void> coroutine, bool essential);
  /// True: it ended by an exception.
  bool on_end(const std::string& name, const std::shared_ptr<spawned::state>& state, std::exception_ptr thrown);

  boost::asio::io_context context_{1};
  boost::asio::signal_set signals_{context_};
  milliseconds lag_period_;
  histogram& lag_;
  family<counter>& exceptions_;
  std::function<void(std::string_view)> on_fatal_;
  bool measuring_ = false;
};

/// The process ends with status 1 and one line after this time, whatever the loop does; 0 takes it back.
void arm_hard_deadline(milliseconds time);

}  // namespace controller
