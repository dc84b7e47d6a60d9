#pragma once
// Runs one reconciler from its queue: at most so many keys at once, never the same key twice at once, and only after
// `start` (we lead and all caches are synced). Every outcome ends in one switch: what the queue does, what is counted,
// what is logged. An exception out of a reconciler is a bug: caught, counted, and the key backs off as after an error.

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "controller/loop.hpp"
#include "controller/metrics.hpp"
#include "controller/reconciler.hpp"
#include "controller/work_queue.hpp"

namespace controller {

/// Shared by all runners; the first label is the reconciler's name.
struct runner_metrics {
  explicit runner_metrics(registry& registry);
  family<counter>& outcomes;   ///< by result: success, requeue, conflict, error, exception
  family<histogram>& seconds;  ///< of one reconcile
  family<histogram>& waits;    ///< from due to taken
  family<gauge>& depth;        ///< keys that could be taken
  family<gauge>& delayed;      ///< keys waiting for their time
  family<gauge>& running;
};

struct runner_options {
  std::size_t at_once = 2;  ///< reconciles in flight, 1 to 8: more only wait for the API server
  work_queue::settings back_off;
  std::function<milliseconds()> now = boot_now;

  runner_options() = default;
};

class runner {
 public:
  /// All must outlive the runner; the loop must not run any more when the runner goes away.
  runner(loop& loop, reconciler& reconciler, runner_metrics& metrics, runner_options options = runner_options());

  /// Before `start` keys only queue up. A higher priority goes first: 0 is a start or a resync, 10 a change.
  void add(const kube::object_key& key, int priority = 10);
  void add_after(const kube::object_key& key, milliseconds delay, int priority = 0);

  void start();
  /// Takes no more keys. `idle` says when those in flight have ended.
  void stop();
  /// Cancels the reconciles that `stop` did not end. Requests that they sent may still arrive.
  void cancel();
  bool idle() const { return queue_.processing() == 0; }
  std::string_view name() const { return reconciler_.name(); }
  const work_queue& queue() const { return queue_; }

 private:
  void wake();
  void pump();
  boost::asio::awaitable<void> run_one(kube::object_key key);
  /// The one switch. A null result is an exception with this text.
  void settle(const kube::object_key& key, const kube::result<action>* result, std::string_view thrown,
              milliseconds started);

  loop& loop_;
  reconciler& reconciler_;
  runner_metrics& metrics_;
  runner_options options_;
  work_queue queue_;
  boost::asio::steady_timer timer_;
  std::vector<spawned> in_flight_;
  bool started_ = false;
  bool woken_ = false;
};

}  // namespace controller
