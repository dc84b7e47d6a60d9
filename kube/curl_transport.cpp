#include "kube/curl_transport.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <stdexcept>

#include "kube/credentials.hpp"
#include "kube/curl_multi.hpp"
#include "kube/wait_list.hpp"

namespace kube {

namespace asio = boost::asio;

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// libcurl counts the calls: the first sets up, the last cleans up.
struct curl_library {
  curl_library() {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw std::runtime_error("curl_global_init failed");
  }
  curl_library(const curl_library&) = delete;
  curl_library& operator=(const curl_library&) = delete;
  ~curl_library() { curl_global_cleanup(); }
};

std::string seconds_text(milliseconds time) {
  if (time.count() % 1000 == 0) return std::to_string(time.count() / 1000) + " s";
  return std::to_string(time.count()) + " ms";
}

struct lane_state {
  asio::any_io_executor on;
  long cap = 0;              // connections; 0: none
  int free_slots = 0;        // of `cap`
  milliseconds deadline{0};  // 0: none
  transfer_limits limits;
  lane_counters count;
  std::shared_ptr<curl_multi> pool;  // replaced as a whole by reset()
  std::shared_ptr<wait_list> queue = std::make_shared<wait_list>();

  void reset() {
    pool = std::make_shared<curl_multi>(on, cap);
    ++count.resets;
  }
  void leave() {
    if (!queue->notify_one()) ++free_slots;
  }
};

/// One of the lane's slots, handed to the next in line when it is given back.
class slot {
 public:
  explicit slot(lane_state& of) : of_(of) {}
  slot(const slot&) = delete;
  slot& operator=(const slot&) = delete;
  ~slot() {
    if (held_) of_.leave();
  }
  void hold() { held_ = true; }

 private:
  lane_state& of_;
  bool held_ = false;
};

/// A transfer is never left inside libcurl by a coroutine that ends in its middle.
struct taken_out {
  std::shared_ptr<curl_multi> pool;
  curl_transfer& what;
  ~taken_out() {
    if (!what.done()) pool->cancel(what.easy());
  }
};

error timed_out(const request& what, const std::string& how) {
  return {errc::timeout, 0, operation_of(what) + ": " + how, {}};
}

/// Sleeps until the transfer is done, its deadline or its silence has passed, or the caller is gone.
task<void> finish(curl_transfer& running, const request& what, steady_clock::time_point started, milliseconds limit) {
  const auto deadline = limit.count() > 0 ? started + limit : steady_clock::time_point::max();
  while (!running.done()) {
    const auto quiet_at =
        what.silence.count() > 0 ? running.last_byte() + what.silence : steady_clock::time_point::max();
    running.alarm().expires_at(std::min(deadline, quiet_at));
    co_await running.alarm().async_wait(asio::as_tuple(asio::use_awaitable));
    if (running.done()) break;
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none)
      co_return std::unexpected(error{errc::cancelled, 0, operation_of(what) + ": cancelled", {}});
    const auto now = steady_clock::now();
    if (now >= deadline)
      co_return std::unexpected(
          timed_out(what, "no whole answer within " + seconds_text(limit) + "; the connection is given up"));
    if (what.silence.count() > 0 && now >= running.last_byte() + what.silence)
      co_return std::unexpected(
          timed_out(what, "no byte for " + seconds_text(what.silence) + "; the connection is taken for dead"));
  }
  co_return result<void>();
}

}  // namespace

struct curl_transport::core {
  core(asio::any_io_executor executor, cluster_config config, transport_options with)
      : on(std::move(executor)), who(on, std::move(config)) {
    for (auto& each : lanes) {
      each.on = on;
      each.limits.connect = with.connect_limit;
      each.limits.body = with.body_limit;
    }
    auto& unary = of(lane::unary);
    unary.cap = unary.free_slots = with.unary_in_flight;
    unary.deadline = with.unary_deadline;
    auto& lease = of(lane::lease);
    lease.deadline = with.lease_deadline;
    lease.limits.connect = std::min(with.connect_limit, with.lease_deadline);
    for (auto& each : lanes) each.pool = std::make_shared<curl_multi>(on, each.cap);
  }
  lane_state& of(lane which) { return lanes.at(static_cast<std::size_t>(which)); }

  curl_library library;
  asio::any_io_executor on;
  credentials who;
  std::array<lane_state, 3> lanes;
};

curl_transport::curl_transport(asio::any_io_executor on, cluster_config config, transport_options options)
    : core_(std::make_shared<core>(std::move(on), std::move(config), options)) {}

curl_transport::~curl_transport() = default;

task<response> curl_transport::send(request what) { return perform(core_, std::move(what), chunk_sink(), false); }

task<response> curl_transport::stream(request what, chunk_sink sink) {
  return perform(core_, std::move(what), std::move(sink), true);
}

const lane_counters& curl_transport::count(lane which) const {
  auto& of = core_->of(which);
  of.count.waiting = static_cast<int>(of.queue->size());
  return of.count;
}

void curl_transport::reset(lane which) { core_->of(which).reset(); }

const cluster_config& curl_transport::config() const { return core_->who.config(); }

task<response> curl_transport::perform(std::shared_ptr<core> self, request what, chunk_sink sink, bool streaming) {
  auto& on = self->of(what.via);
  const auto started = steady_clock::now();
  const auto limit = what.deadline.count() > 0 ? what.deadline : on.deadline;
  const auto deadline = limit.count() > 0 ? started + limit : steady_clock::time_point::max();
  const std::string operation = operation_of(what);

  slot place(on);
  if (on.cap > 0 && on.free_slots == 0) {
    const auto why = co_await wait_list::wait(on.queue, deadline);
    if (why == woken::by_deadline)
      co_return std::unexpected(
          timed_out(what, "waited " + seconds_text(limit) + " for " + std::to_string(on.cap) + " requests before it"));
    if (why == woken::by_cancellation)
      co_return std::unexpected(error{errc::cancelled, 0, operation + ": cancelled", {}});
    place.hold();
  } else if (on.cap > 0) {
    --on.free_slots;
    place.hold();
  }

  for (bool again = false;; again = true) {
    auto who = co_await self->who.current(deadline);
    if (!who) {
      who.error().what = operation + ": " + who.error().what;
      co_return std::unexpected(std::move(who.error()));
    }
    curl_transfer running(self->on, self->who.config(), what, *who, self->who.fixed_headers(),
                          streaming ? &sink : nullptr, on.limits, on.count);
    auto pool = on.pool;
    const taken_out guard{pool, running};
    while (!pool->start(running.easy(), &running)) co_await asio::post(self->on, asio::use_awaitable);
    auto end = co_await finish(running, what, started, limit);

    const bool dead = end ? running.suspect() : end.error().code == errc::timeout;
    if (dead && on.pool == pool) on.reset();
    if (!end) {
      if (dead) ++on.count.failures;
      co_return std::unexpected(std::move(end.error()));
    }
    auto answer = running.take();
    if (again || !answer || answer->status != 401) co_return answer;
    const auto renewed = co_await self->who.renew(who->serial, deadline);
    if (!renewed || !*renewed) co_return answer;
  }
}

}  // namespace kube
