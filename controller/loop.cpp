#include "controller/loop.hpp"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace controller {

namespace asio = boost::asio;

namespace {

// Handlers that work while the loop hangs: only what is allowed in a signal handler.
void end_with(const char* line) {
  const auto size = std::strlen(line);
  [[maybe_unused]] const auto written = write(2, line, size);
  _exit(1);
}
void on_second_signal(int) { end_with("quartermaster: second signal, exiting at once\n"); }
void on_hard_deadline(int) { end_with("quartermaster: not stopped within the deadline, exiting at once\n"); }

void handle(int number, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

[[noreturn]] void end_without(std::string_view name) {
  log::error("the process ends: it is of no use without this coroutine", {{"name", name}});
  log::flush();
  _exit(1);
}

struct ended_with_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

asio::awaitable<void> log_result(std::string name, kube::task<void> task) {
  const auto result = co_await std::move(task);
  if (!result && result.error().code != kube::errc::cancelled)
    log::warn("coroutine ended with an error", {{"name", name}, {"error", result.error().message}});
}

asio::awaitable<void> throw_error(kube::task<void> task) {
  const auto result = co_await std::move(task);
  if (!result && result.error().code != kube::errc::cancelled) throw ended_with_error(result.error().message);
}

}  // namespace

void arm_hard_deadline(milliseconds time) {
  handle(SIGALRM, on_hard_deadline);
  itimerval once{};
  once.it_value = {time.count() / 1000, time.count() % 1000 * 1000};
  setitimer(ITIMER_REAL, &once, nullptr);
}

void spawned::cancel() const {
  const auto keep = state_;  // the coroutine may end inside the call
  if (keep && keep->running) keep->stop.emit(asio::cancellation_type::terminal);
}

loop::loop(registry& metrics, milliseconds lag_period)
    : lag_period_(lag_period),
      lag_(metrics.make_histogram("quartermaster_loop_lag_seconds", "How late the loop's one-second timer was.")),
      exceptions_(metrics.counters("quartermaster_coroutine_exceptions_total", "Exceptions out of coroutines: bugs.",
                                   {"name"})),
      on_fatal_(end_without) {
  metrics.collect([](metric_text& metric_text) {
    metric_text.family("quartermaster_log_dropped_total", "Log lines no one took in time.", "counter");
    metric_text.sample("quartermaster_log_dropped_total", {}, static_cast<double>(log::dropped()));
  });
}

spawned loop::start(std::string name, asio::awaitable<void> coroutine, bool essential) {
  spawned out;
  out.state_ = std::make_shared<spawned::state>();
  auto state = out.state_;
  auto ended = [this, state, essential, name = std::move(name)](std::exception_ptr thrown) {
    if (on_end(name, state, thrown) && essential) on_fatal_(name);
  };
  asio::co_spawn(context_, std::move(coroutine),
                 asio::bind_cancellation_slot(out.state_->stop.slot(), std::move(ended)));
  return out;
}

spawned loop::spawn(std::string name, asio::awaitable<void> coroutine) {
  return start(std::move(name), std::move(coroutine), false);
}
spawned loop::spawn(std::string name, kube::task<void> task) {
  std::string same = name;
  return start(std::move(name), log_result(std::move(same), std::move(task)), false);
}
spawned loop::spawn_essential(std::string name, asio::awaitable<void> coroutine) {
  return start(std::move(name), std::move(coroutine), true);
}
spawned loop::spawn_essential(std::string name, kube::task<void> task) {
  return start(std::move(name), throw_error(std::move(task)), true);
}

bool loop::on_end(const std::string& name, const std::shared_ptr<spawned::state>& state, std::exception_ptr thrown) {
  state->running = false;
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& e) {
    if (e.code() == asio::error::operation_aborted)
      return false;  // cancelled while it waited: how a coroutine is meant to end
    exceptions_.with({name}).add();
    log::error("exception out of a coroutine", {{"name", name}, {"error", e.what()}});
  } catch (const ended_with_error& e) {
    log::error("coroutine ended with an error", {{"name", name}, {"error", e.what()}});
  } catch (const std::exception& e) {
    exceptions_.with({name}).add();
    log::error("exception out of a coroutine", {{"name", name}, {"error", e.what()}});
  } catch (...) {
    exceptions_.with({name}).add();
    log::error("exception out of a coroutine", {{"name", name}, {"error", "not a std::exception"}});
  }
  return true;
}

void loop::post(std::function<void()> callback) { asio::post(context_, std::move(callback)); }

void loop::stop_on_signals(std::function<void()> stop, milliseconds hard) {
  handle(SIGPIPE, SIG_IGN);
  handle(SIGHUP, SIG_IGN);
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  signals_.async_wait([this, stop = std::move(stop), hard](boost::system::error_code failed, int number) {
    if (failed) return;
    signals_.clear();
    handle(SIGTERM, on_second_signal);
    handle(SIGINT, on_second_signal);
    arm_hard_deadline(hard);
    log::info("stopping", {{"signal", number}, {"deadline_ms", hard.count()}});
    stop();
  });
}

asio::awaitable<void> loop::measure_lag() {
  for (;;) {
    const auto due = std::chrono::steady_clock::now() + lag_period_;
    const bool slept = co_await sleep_for(lag_period_);
    if (!slept) co_return;
    const double late = std::max(0.0, std::chrono::duration<double>(std::chrono::steady_clock::now() - due).count());
    lag_.observe(late);
    log::flush();
  }
}

void loop::run() {
  if (!std::exchange(measuring_, true)) spawn_essential("lag", measure_lag());
  for (;;) {
    try {
      context_.run();
      return;
    } catch (const std::exception& e) {
      // Out of a plain handler; coroutines have their own net.
      exceptions_.with({"loop"}).add();
      log::error("exception out of a handler", {{"error", e.what()}});
    }
  }
}

}  // namespace controller
