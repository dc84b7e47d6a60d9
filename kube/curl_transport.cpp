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
  asio::any_io_executor io_executor;
  long cap = 0;              // connections; 0: none
  int free_slots = 0;        // of `cap`
  milliseconds deadline{0};  // 0: none
  transfer_limits limits;
  lane_counters count;
  std::shared_ptr<curl_multi> pool;  // replaced as a whole by reset()
  std::shared_ptr<wait_list> queue = std::make_shared<wait_list>();

  void reset() {
    pool = std::make_shared<curl_multi>(io_executor, cap);
    ++count.resets;
  }
  void leave() {
    if (!queue->notify_one()) ++free_slots;
  }
};

/// One of the lane's slots, handed to the next in line when it is given back.
class slot {
 public:
  explicit slot(lane_state& lane_state) : lane_(lane_state) {}
  slot(const slot&) = delete;
  slot& operator=(const slot&) = delete;
  ~slot() {
    if (held_) lane_.leave();
  }
  void hold() { held_ = true; }

 private:
  lane_state& lane_;
  bool held_ = false;
};

/// A transfer is never left inside libcurl by a coroutine that ends in its middle.
struct taken_out {
  std::shared_ptr<curl_multi> pool;
  curl_transfer& transfer;
  ~taken_out() {
    if (!transfer.done()) pool->cancel(transfer.easy());
  }
};

error timed_out(const request& request, const std::string& detail) {
  return {errc::timeout, 0, operation_of(request) + ": " + detail, {}};
}

/// Sleeps until the transfer is done, its deadline or its silence has passed, or the caller is gone.
task<void> finish(curl_transfer& running, const request& request, steady_clock::time_point started,
                  milliseconds limit) {
  const auto deadline = limit.count() > 0 ? started + limit : steady_clock::time_point::max();
  while (!running.done()) {
    const auto quiet_at =
        request.silence.count() > 0 ? running.last_byte() + request.silence : steady_clock::time_point::max();
    running.alarm().expires_at(std::min(deadline, quiet_at));
    co_await running.alarm().async_wait(asio::as_tuple(asio::use_awaitable));
    if (running.done()) break;
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none)
      co_return std::unexpected(error{errc::cancelled, 0, operation_of(request) + ": cancelled", {}});
    const auto now = steady_clock::now();
    if (now >= deadline)
      co_return std::unexpected(
          timed_out(request, "no whole answer within " + seconds_text(limit) + "; the connection is given up"));
    if (request.silence.count() > 0 && now >= running.last_byte() + request.silence)
      co_return std::unexpected(
          timed_out(request, "no byte for " + seconds_text(request.silence) + "; the connection is taken for dead"));
  }
  co_return result<void>();
}

}  // namespace

struct curl_transport::core {
  core(asio::any_io_executor executor, cluster_config config, transport_options options)
      : io_executor(std::move(executor)), auth(io_executor, std::move(config)) {
    bodies.most = options.bodies_limit;
    for (auto& each : lanes) {
      each.io_executor = io_executor;
      each.limits.connect = options.connect_limit;
      each.limits.body = options.body_limit;
      each.limits.bodies = &bodies;
    }
    auto& unary = of(lane::unary);
    unary.cap = unary.free_slots = options.unary_in_flight;
    unary.deadline = options.unary_deadline;
    auto& lease = of(lane::lease);
    lease.deadline = options.lease_deadline;
    lease.limits.connect = std::min(options.connect_limit, options.lease_deadline);
    for (auto& each : lanes) each.pool = std::make_shared<curl_multi>(io_executor, each.cap);
  }
  lane_state& of(lane lane) { return lanes.at(static_cast<std::size_t>(lane)); }

  curl_library library;
  asio::any_io_executor io_executor;
  credentials auth;
  body_memory bodies;
  std::array<lane_state, 3> lanes;
};

curl_transport::curl_transport(asio::any_io_executor executor, cluster_config config, transport_options options)
    : core_(std::make_shared<core>(std::move(executor), std::move(config), options)) {}

curl_transport::~curl_transport() = default;

task<response> curl_transport::send(request request) { return perform(core_, std::move(request), chunk_sink(), false); }

task<response> curl_transport::stream(request request, chunk_sink sink) {
  return perform(core_, std::move(request), std::move(sink), true);
}

const lane_counters& curl_transport::count(lane lane) const {
  auto& state = core_->of(lane);
  state.count.waiting = static_cast<int>(state.queue->size());
  return state.count;
}

std::size_t curl_transport::receiving() const { return core_->bodies.used; }

void curl_transport::reset(lane lane) { core_->of(lane).reset(); }

const cluster_config& curl_transport::config() const { return core_->auth.config(); }

task<response> curl_transport::perform(std::shared_ptr<core> self, request request, chunk_sink sink, bool streaming) {
  auto& state = self->of(request.channel);
  const auto started = steady_clock::now();
  const auto limit = request.deadline.count() > 0 ? request.deadline : state.deadline;
  const auto deadline = limit.count() > 0 ? started + limit : steady_clock::time_point::max();
  const std::string operation = operation_of(request);

  slot place(state);
  if (state.cap > 0 && state.free_slots == 0) {
    const auto reason = co_await wait_list::wait(state.queue, deadline);
    if (reason == woken::by_deadline)
      co_return std::unexpected(timed_out(
          request, "waited " + seconds_text(limit) + " for " + std::to_string(state.cap) + " requests before it"));
    if (reason == woken::by_cancellation)
      co_return std::unexpected(error{errc::cancelled, 0, operation + ": cancelled", {}});
    place.hold();
  } else if (state.cap > 0) {
    --state.free_slots;
    place.hold();
  }

  for (bool again = false;; again = true) {
    auto credential = co_await self->auth.current(deadline);
    if (!credential) {
      credential.error().message = operation + ": " + credential.error().message;
      co_return std::unexpected(std::move(credential.error()));
    }
    curl_transfer running(self->io_executor, self->auth.config(), request, *credential, self->auth.fixed_headers(),
                          streaming ? &sink : nullptr, state.limits, state.count);
    auto pool = state.pool;
    const taken_out guard{pool, running};
    while (!pool->start(running.easy(), &running)) co_await asio::post(self->io_executor, asio::use_awaitable);
    auto end = co_await finish(running, request, started, limit);

    const bool dead = end ? running.suspect() : end.error().code == errc::timeout;
    if (dead && state.pool == pool) state.reset();
    if (!end) {
      if (dead) ++state.count.failures;
      co_return std::unexpected(std::move(end.error()));
    }
    auto answer = running.take();
    if (again || !answer || answer->status != 401) co_return answer;
    const auto renewed = co_await self->auth.renew(credential->serial, deadline);
    if (!renewed || !*renewed) co_return answer;
  }
}

}  // namespace kube
