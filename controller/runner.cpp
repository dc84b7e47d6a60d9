#include "controller/runner.hpp"

#include <utility>

#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace controller {

runner_metrics::runner_metrics(registry& registry)
    : outcomes(registry.counters("quartermaster_reconcile_total", "Reconciles by result.", {"reconciler", "result"})),
      seconds(registry.histograms("quartermaster_reconcile_seconds", "Time of one reconcile.", {"reconciler"})),
      waits(registry.histograms("quartermaster_queue_wait_seconds", "From the moment a key is due to its reconcile.",
                                {"reconciler"})),
      depth(registry.gauges("quartermaster_queue_depth", "Keys that are due and not yet taken.", {"reconciler"})),
      delayed(registry.gauges("quartermaster_queue_delayed", "Keys whose time has not come.", {"reconciler"})),
      running(registry.gauges("quartermaster_reconciles_running", "Reconciles in flight.", {"reconciler"})) {}

runner::runner(loop& loop, reconciler& reconciler, runner_metrics& metrics, runner_options options)
    : loop_(loop),
      reconciler_(reconciler),
      metrics_(metrics),
      options_(std::move(options)),
      queue_(options_.back_off, random_jitter),
      timer_(loop.context()) {}

void runner::add(const kube::object_key& key, int priority) {
  queue_.add(key, options_.now(), priority);
  wake();
}

void runner::add_after(const kube::object_key& key, milliseconds delay, int priority) {
  queue_.add(key, options_.now() + delay, priority);
  wake();
}

void runner::start() {
  started_ = true;
  wake();
}

void runner::stop() {
  started_ = false;
  timer_.cancel();
}

void runner::cancel() {
  for (const auto& each : std::exchange(in_flight_, {})) each.cancel();
}

void runner::wake() {
  // One turn of the loop later: a burst of changes is one look at the queue.
  if (!started_ || std::exchange(woken_, true)) return;
  loop_.post([this] {
    woken_ = false;
    pump();
  });
}

void runner::pump() {
  if (!started_) return;
  const auto now = options_.now();
  while (queue_.processing() < options_.at_once) {
    auto key = queue_.take(now);
    if (!key) break;
    metrics_.waits.with({name()}).observe(std::chrono::duration<double>(queue_.last_wait()).count());
    std::erase_if(in_flight_, [](const spawned& each) { return !each.running(); });
    in_flight_.push_back(loop_.spawn("reconcile", run_one(std::move(*key))));
  }
  metrics_.depth.with({name()}).set(static_cast<double>(queue_.depth(now)));
  metrics_.delayed.with({name()}).set(static_cast<double>(queue_.delayed()));
  metrics_.running.with({name()}).set(static_cast<double>(queue_.processing()));
  if (queue_.processing() >= options_.at_once) return;  // the next one to end wakes us
  if (const auto due = queue_.next_due()) {
    timer_.expires_after(std::max(milliseconds(0), *due - now));
    timer_.async_wait([this](boost::system::error_code cancelled) {
      if (!cancelled) pump();
    });
  }
}

boost::asio::awaitable<void> runner::run_one(kube::object_key key) {
  const auto started = options_.now();
  std::string thrown;
  try {
    const auto result = co_await reconciler_.reconcile(key);
    settle(key, &result, {}, started);
    co_return;
  } catch (const boost::system::system_error& e) {
    if (e.code() == boost::asio::error::operation_aborted) {
      queue_.done(key);
      throw;
    }
    thrown = e.what();
  } catch (const std::exception& e) {
    thrown = e.what();
  } catch (...) {
    thrown = "not a std::exception";
  }
  settle(key, nullptr, thrown, started);
}

void runner::settle(const kube::object_key& key, const kube::result<action>* result, std::string_view thrown,
                    milliseconds started) {
  const auto now = options_.now();
  metrics_.seconds.with({name()}).observe(std::chrono::duration<double>(now - started).count());
  enum class outcome { success, requeue, conflict, error, exception } status = outcome::exception;
  if (result && *result) {
    status = (*result)->again_in ? outcome::requeue : outcome::success;
  } else if (result) {
    status = result->error().code == kube::errc::conflict ? outcome::conflict : outcome::error;
    thrown = result->error().message;
  }
  std::string_view label, line;
  log::level level = log::level::debug;
  milliseconds again{0};
  switch (status) {
    case outcome::success:
      label = "success";
      line = "reconciled";
      queue_.forget(key);
      queue_.done(key);
      break;
    case outcome::requeue:
      label = "requeue";
      line = "reconciled, will look again";
      again = (*result)->again_in.value_or(milliseconds(0));
      queue_.forget(key);
      queue_.done(key);
      queue_.add(key, now + again);
      break;
    case outcome::conflict:  // someone was quicker, and what they wrote is on its way to the store
      label = "conflict";
      line = "reconcile met another writer, retrying";
      level = log::level::info;
      again = queue_.failed(key, now);
      break;
    case outcome::error:
      label = "error";
      line = "reconcile failed, retrying";
      level = log::level::warn;
      again = queue_.failed(key, now, result->error().retry_after.value_or(std::chrono::seconds(0)));
      break;
    case outcome::exception:
      label = "exception";
      line = "exception out of a reconcile";
      level = log::level::error;
      again = queue_.failed(key, now);
      break;
  }
  metrics_.outcomes.with({name(), label}).add();
  log::write(level, line,
             {{"reconciler", name()},
              {"key", key.to_string()},
              {"took_ms", (now - started).count()},
              {"failures", queue_.failures(key)},
              {"again_in_ms", again.count()},
              {"error", thrown}});
  wake();
}

}  // namespace controller
