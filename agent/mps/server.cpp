#include "agent/mps/server.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace agent::mps {
namespace {

namespace asio = boost::asio;
namespace log = controller::log;
using clock = std::chrono::steady_clock;
using kube::wait_list;
using std::chrono::milliseconds;

constexpr milliseconds look_again{50}, look_alive{1'000};
/// Each question starts a program, so most looks ask one only. Before a container starts the limits are read anyway.
constexpr int looks_for_limits = 4;

std::string differ(std::string_view part, const ceilings& is, const ceilings& wanted) {
  return "the MPS " + std::string(part) + " has limits of " + text_of(is) + " where " + text_of(wanted) + " were set";
}

}  // namespace

card_server::card_server(card_driver& driver, server_options options)
    : driver_(driver), options_(std::move(options)), control_(options_.control), wanted_(options_.whole) {}

card_server::~card_server() {
  if (process_file_ >= 0) ::close(process_file_);
}

void card_server::report(std::string problem) {
  if (problem.empty()) failure_.clear();
  if (problem == problem_) return;
  problem_ = std::move(problem);
  if (problem_.empty())
    log::info("a card is ready for shares by MPS", {{"card", card()}, {"ceilings", text_of(applied_)}});
  else
    log::warn("a card is not lent by MPS", {{"card", card()}, {"reason", problem_}});
  answered_->notify_all();
}

answer_of<void> card_server::start_daemon() {
  daemon_.reset(), died_.reset();
  // One that a killed predecessor has left: its clients go on.
  const auto there = co_await control_.servers();
  if (there) co_return std::expected<void, mps::problem>();
  auto started = control_.start();
  if (!started) co_return std::unexpected(started.error());
  daemon_ = std::move(*started);
  const auto until = clock::now() + options_.start;
  for (;;) {
    const auto servers = co_await control_.servers();
    if (servers) co_return std::expected<void, mps::problem>();
    if (const auto status = daemon_->ended()) {
      const auto words = kube::last_line(daemon_->complaints() + daemon_->output());
      co_return std::unexpected("the MPS control daemon " + kube::end_in_words(*status) +
                                (words.empty() ? "" : ": " + words));
    }
    if (clock::now() > until) co_return std::unexpected("the MPS control daemon does not answer: " + servers.error());
    const bool slept = co_await controller::sleep_for(look_again);
    if (!slept) co_return std::unexpected("cancelled");
  }
}

answer_of<unsigned> card_server::started_server() {
  const auto until = clock::now() + options_.start;
  auto servers = co_await control_.servers();
  if (!servers) co_return std::unexpected(servers.error());
  if (servers->empty()) {
    const auto done = co_await control_.start_server();
    if (!done) co_return std::unexpected(done.error());
  }
  for (;;) {
    servers = co_await control_.servers();
    if (!servers) co_return std::unexpected(servers.error());
    if (!servers->empty()) co_return servers->front();
    if (clock::now() > until)
      co_return std::unexpected("no MPS server starts; see server.log in " + options_.control.folder + "/log");
    const bool slept = co_await controller::sleep_for(look_again);
    if (!slept) co_return std::unexpected("cancelled");
  }
}

/// The order matters: a server that starts on its own has the daemon's defaults.
answer_of<void> card_server::apply() {
  const auto limits = wanted_;
  auto done = co_await control_.set_default(limits);
  if (!done) co_return done;
  const auto defaults = co_await control_.defaults();
  if (!defaults) co_return std::unexpected(defaults.error());
  if (*defaults != limits) co_return std::unexpected(differ("control daemon", *defaults, limits));
  const auto server = co_await started_server();
  if (!server) co_return std::unexpected(server.error());
  done = co_await control_.set(*server, limits);
  if (!done) co_return done;
  const auto is = co_await control_.limits_of(*server);
  if (!is) co_return std::unexpected(is.error());
  if (*is != limits) co_return std::unexpected(differ("server", *is, limits));
  applied_ = limits, process_ = *server, looks_ = 0;
  watch_server();
  answered_->notify_all();
  co_return std::expected<void, mps::problem>();
}

bool card_server::has_died() {
  if (daemon_ && !died_)
    if (const auto status = daemon_->ended()) died_ = "the MPS control daemon " + kube::end_in_words(*status);
  return died_.has_value();
}

/// A number alone could be another process's by the next look.
void card_server::watch_server() {
  if (process_file_ >= 0) ::close(process_file_);
  process_file_ = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process_), 0));
}

bool card_server::has_server_ended() const {
  pollfd file{.fd = process_file_, .events = POLLIN, .revents = 0};
  return process_file_ >= 0 && ::poll(&file, 1, 0) == 1;
}

/// Containers wait for this, and each question starts a program. So the list of servers is asked for only where the
/// limits are not those, or the server's end cannot be seen otherwise.
answer_of<bool> card_server::is_as_applied() {
  const auto limits = co_await control_.limits_of(process_);
  const bool is_so = limits && *limits == applied_;
  if (!is_so || process_file_ < 0 || has_server_ended()) {
    const auto servers = co_await control_.servers();
    if (!servers) co_return std::unexpected(servers.error());
    if (servers->size() != 1 || servers->front() != process_) co_return false;
    if (!limits) co_return std::unexpected(limits.error());
    if (!is_so) co_return std::unexpected(differ("server", *limits, applied_));
  }
  looks_ = 0;
  co_return true;
}

answer_of<void> card_server::check() {
  if (has_died()) co_return std::unexpected(*died_);
  if (!wedge_.empty()) co_return std::unexpected(wedge_);
  if (wanted_ != applied_) co_return co_await apply();
  const auto status = co_await control_.status_of(process_);
  if (!status) co_return std::unexpected(status.error());
  const bool has_ended = has_server_ended();
  const bool is_active = *status == "ACTIVE" && !has_ended;
  if (is_active && ++looks_ < looks_for_limits) co_return std::expected<void, mps::problem>();
  const auto is = co_await is_as_applied();
  if (!is) co_return std::unexpected(is.error());
  if (!*is) co_return co_await apply();
  if (has_ended) co_return std::unexpected("the MPS server has ended");
  if (!is_active) co_return std::unexpected("the MPS server is in state \"" + *status + "\"");
  co_return std::expected<void, mps::problem>();
}

answer_of<void> card_server::begin() {
  wedge_.clear();
  const auto there = co_await control_.servers();
  if (!there) {
    const auto processes = co_await driver_.processes_on(card());
    if (!processes) co_return std::unexpected(processes.error());
    if (*processes > 0)
      co_return std::unexpected(std::to_string(*processes) +
                                " processes use the card without MPS; nvidia-smi names them");
  }
  auto done = co_await driver_.set_mode(card(), compute_mode::exclusive_process);
  if (!done) co_return done;
  done = co_await start_daemon();
  if (!done) co_return done;
  co_return co_await apply();
}

asio::awaitable<void> card_server::follow() {
  int missed = 0;
  for (;;) {
    auto woken = kube::woken::by_deadline;
    const auto until = clock::now() + (missed ? options_.retry : options_.period);
    // A request that came during the last check woke no one.
    const auto is_asked = [&] { return missed == 0 && wanted_ != applied_; };
    const auto is_over = [&] { return has_died() || !wedge_.empty() || (missed == 0 && has_server_ended()); };
    while (woken == kube::woken::by_deadline && clock::now() < until && !is_over() && !is_asked())
      woken = co_await wait_list::wait(requests_, std::min(until, clock::now() + look_alive));
    if (woken == kube::woken::by_cancellation) co_return;
    const auto is = co_await check();
    if (is) {
      missed = 0;
      report({});
      continue;
    }
    report(is.error());
    if (has_died() || !wedge_.empty() || ++missed > 2) co_return;
  }
}

/// A client that runs is left alone: its daemon is ended after it.
asio::awaitable<void> card_server::end_when_unused() {
  const auto prohibited = co_await driver_.set_mode(card(), compute_mode::prohibited);
  if (!prohibited) log::debug("a card was not closed", {{"card", card()}, {"reason", prohibited.error()}});
  for (;;) {
    const auto processes = co_await driver_.processes_on(card());
    if (processes && *processes == 0) break;
    const bool slept = co_await controller::sleep_for(options_.retry);
    if (!slept) co_return;
  }
  (void)co_await control_.quit();
  daemon_.reset();
}

asio::awaitable<void> card_server::run() {
  for (;;) {
    const auto begun = co_await begin();
    if (begun) {
      report({});
      co_await follow();
    } else {
      report(begun.error());
    }
    failure_ = problem_;
    co_await end_when_unused();
    const bool slept = co_await controller::sleep_for(options_.retry);
    if (!slept) co_return;
  }
}

answer_of<void> card_server::reached(ceilings limits) {
  const auto until = clock::now() + options_.hold_limit;
  // What was applied last may reach it by chance, and be about to be lowered.
  while (applied_ != wanted_ || !applied_.reaches(limits)) {
    const auto woken = co_await wait_list::wait(answered_, until);
    if (woken == kube::woken::by_cancellation) co_return std::unexpected("cancelled");
    if (!problem_.empty()) co_return std::unexpected(problem_);
    if (woken == kube::woken::by_deadline) co_return std::unexpected("the MPS control daemon is too slow");
  }
  co_return std::expected<void, mps::problem>();
}

answer_of<void> card_server::hold(ceilings limits) {
  if (!problem_.empty()) co_return std::unexpected(problem_);
  if (limits.cores < 1 || limits.memory_mib < 1 || !options_.whole.reaches(limits))
    co_return std::unexpected("a share of " + text_of(limits) + " is none of a card with " + text_of(options_.whole));
  held_ = clock::now();
  // While another container waits for more it gets that: the two may have been sent in the other order.
  wanted_ = waiting_ == 0
                ? limits
                : ceilings{std::max(wanted_.cores, limits.cores), std::max(wanted_.memory_mib, limits.memory_mib)};
  if (wanted_ == applied_) {
    // A client without a daemon would run without limits.
    if (has_died()) co_return std::unexpected(*died_);
    const auto is = co_await is_as_applied();
    if (!is) co_return std::unexpected(is.error());
    if (*is) co_return std::expected<void, mps::problem>();
    applied_ = {};
  }
  requests_->notify_all();
  ++waiting_;
  auto done = co_await reached(limits);
  --waiting_;
  co_return done;
}

answer_of<int> card_server::end_clients(std::function<bool(unsigned)> is_one) {
  const auto servers = co_await control_.servers();
  if (!servers) co_return std::unexpected(servers.error());
  int out = 0;
  for (const auto server : *servers) {
    const auto clients = co_await control_.clients_of(server);
    if (!clients) co_return std::unexpected(clients.error());
    for (const auto client : *clients) {
      if (!is_one(client)) continue;                 // asked last: its number may be another process's by now
      if (!ending_.insert(client).second) continue;  // the call before waits for it
      const auto until = clock::now() + control_.options().end_deadline;
      const auto done = co_await control_.terminate(server, client);
      ending_.erase(client);
      if (!done && clock::now() >= until) {
        wedge_ = "the MPS server is wedged: it does not let go of process " + std::to_string(client);
        requests_->notify_all();
      }
      if (!done) co_return std::unexpected(done.error());
      ++out;
    }
  }
  co_return out;
}

bool card_server::has_container() const { return options_.has_container && options_.has_container(); }

bool card_server::may_get_container() const {
  return held_ != clock::time_point() && clock::now() < held_ + options_.until_started;
}

asio::awaitable<void> card_server::leave() {
  if (may_get_container() || has_container()) {
    const auto closed = co_await driver_.set_mode(card(), compute_mode::prohibited);
    if (!closed) log::warn("a card was not closed", {{"card", card()}, {"reason", closed.error()}});
    if (closed) log::info("a card is closed: a container has a share of it, or may get it now", {{"card", card()}});
  }
  (void)co_await control_.quit();
  const auto until = clock::now() + options_.start;
  while (daemon_ && !daemon_->ended() && clock::now() < until) (void)co_await controller::sleep_for(look_again);
  daemon_.reset();
  while (may_get_container() && !has_container()) (void)co_await controller::sleep_for(look_alive);
  if (has_container()) {
    log::warn("a card stays closed (compute mode PROHIBITED), because containers with shares of it are still there",
              {{"card", card()}, {"opened by", "the next start of MPS here, or nvidia-smi -c DEFAULT"}});
    co_return;
  }
  const auto done = co_await driver_.set_mode(card(), compute_mode::shared);
  if (!done) log::warn("a card was not given back", {{"card", card()}, {"reason", done.error()}});
}

}  // namespace agent::mps
