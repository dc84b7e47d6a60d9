#pragma once
// Starts what the program is made of in phases and stops it in reverse; the reason for each place in the order stands
// next to the step in manager.cpp. Knows nothing of what the parts do.

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "controller/health.hpp"
#include "controller/http_server.hpp"
#include "controller/loop.hpp"
#include "controller/reflector.hpp"
#include "controller/runner.hpp"

namespace controller {

/// How the manager sees leadership; made from an elector (elector_leadership), or one that always leads.
struct leadership {
  std::function<kube::task<void>()> run;  ///< runs until lost or cancelled
  std::function<bool()> held;
  std::function<kube::task<void>()> release;  ///< clean hand-over; may be empty
};

/// How long the steps of the stop are waited for.
struct stop_limits {
  milliseconds reconciles{3000}, flush{1000}, before_release{3000}, release{2000}, connections{1500};

  stop_limits() = default;
};

class manager {
 public:
  manager(loop& loop, health& state, registry& metrics, stop_limits limits = {});

  /// Phase 1, servers: started first, stopped last.
  void add_server(http_server& server) { servers_.push_back(&server); }
  /// Phase 2, caches: one reflector for `store`, named after its resource; further ones of the same get a number, or
  /// `options.name`. `Source` reads its objects, as `reflect` has it.
  template <class Source = void, kube::projection T>
  void add_cache(kube::transport& transport, kube::watch_settings settings, store<T>& store,
                 reflector_options options = {}) {
    const std::string name = options.name.empty() ? std::string(T::of().plural) : options.name;
    cache& added = add_cache(name, [&store] { return store.synced(); });
    options.name = added.name;
    options.state = &added.state;
    if (!options.on_restored) options.on_restored = start_afresh;
    added.now = options.now;
    added.start = [this, &transport, &store, settings = std::move(settings), options = std::move(options)] {
      using source = std::conditional_t<std::is_void_v<Source>, T, Source>;
      return reflect<T, source>(transport, settings, store, reflecting_, options);
    };
  }
  /// Phase 3, always: coroutines every replica runs once the caches are synced. `flush` is awaited before they end,
  /// while the lease is still held; may be empty.
  void add_always(std::string name, std::function<kube::task<void>()> start,
                  std::function<kube::task<void>()> flush = {});
  /// Phase 4, leader: with the first hold of the lease.
  void set_leadership(leadership leadership) { leadership_ = std::move(leadership); }
  void add_runner(runner& runner) { runners_.push_back(&runner); }
  /// Called once when we lead, before the runners start: label the pod, queue everything.
  void on_leading(std::function<void()> call) { on_leading_.push_back(std::move(call)); }
  /// Awaited at a clean stop while the lease is still held: take the label off the pod.
  void before_release(std::function<kube::task<void>()> call) { before_release_.push_back(std::move(call)); }

  /// Servers keep answering this long after readiness has gone, so that the load balancer has noticed.
  void set_drain_delay(milliseconds delay) { drain_delay_ = delay; }

  /// From start to the end of the stop; the caller ends the loop then. errc::config when a server cannot start.
  kube::task<void> run();
  /// Begins the stop; safe to call more than once.
  void stop();
  bool leading() const { return leading_; }
  /// The last request of this cache did not fail. False where there is none of this name.
  bool watching(std::string_view cache) const;
  /// The caches that the API server may not fill: a right is missing.
  std::vector<std::string> refused() const;

 private:
  struct cache {
    std::string name;
    std::function<bool()> synced;
    std::function<kube::task<void>()> start;
    reflector_state state;
    std::function<milliseconds()> now = boot_now;
    spawned running;
  };
  struct background {
    std::string name;
    std::function<kube::task<void>()> start, flush;
    spawned running;
  };
  cache& add_cache(std::string name, std::function<bool()> synced);
  boost::asio::awaitable<bool> wait_until(std::function<bool()> callback, milliseconds at_most, milliseconds step);
  boost::asio::awaitable<void> bounded(std::string name, kube::task<void> task, milliseconds at_most);
  boost::asio::awaitable<void> shut_down();
  std::string cache_problem(const cache& cache) const;

  loop& loop_;
  health& health_;
  reflector_metrics reflecting_;
  std::vector<http_server*> servers_;
  std::vector<std::unique_ptr<cache>> caches_;
  std::vector<background> always_;
  std::vector<runner*> runners_;
  std::vector<std::function<void()>> on_leading_;
  std::vector<std::function<kube::task<void>()>> before_release_;
  leadership leadership_;
  spawned electing_;
  milliseconds drain_delay_{0};
  stop_limits limits_;
  boost::asio::steady_timer stop_;
  bool stopping_ = false;
  bool leading_ = false;
};

class elector;
leadership elector_leadership(elector& elector);
/// For one replica without a Lease, and for tests.
leadership always_leading();

}  // namespace controller
