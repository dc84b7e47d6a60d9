#include "controller/manager.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "controller/elector.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"

namespace controller {

using namespace std::chrono_literals;

namespace {
constexpr milliseconds forever = std::chrono::hours(24 * 365);
}

manager::manager(loop& loop, health& state, registry& metrics, stop_limits limits)
    : loop_(loop), health_(state), reflecting_(metrics), limits_(limits), stop_(loop.context()) {}

manager::cache& manager::add_cache(std::string name, std::function<bool()> synced) {
  const auto taken = [this](const std::string& text) {
    return std::ranges::any_of(caches_, [&](const auto& c) { return c->name == text; });
  };
  for (int number = 2; taken(name); ++number) name = name.substr(0, name.find('-')) + "-" + std::to_string(number);
  caches_.push_back(std::make_unique<cache>());
  cache& added = *caches_.back();
  added.name = std::move(name);
  added.synced = std::move(synced);
  health_.check("cache " + added.name, [this, &added] { return cache_problem(added); });
  return added;
}

std::string manager::cache_problem(const cache& cache) const {
  const std::string reason = cache.state.trouble.empty() ? std::string() : ": " + cache.state.trouble;
  if (!cache.synced()) return reason.empty() ? "not synced yet" : "not synced" + reason;
  // What is answered from it may have been true long ago.
  const auto silent = cache.now() - cache.state.last_contact;
  if (silent <= reflector_options::contact_limit) return {};
  return "no contact for " + std::to_string(std::chrono::floor<std::chrono::seconds>(silent).count()) + " s" + reason;
}

void manager::add_always(std::string name, std::function<kube::task<void>()> start,
                         std::function<kube::task<void>()> flush) {
  always_.push_back({std::move(name), std::move(start), std::move(flush), {}});
}

void manager::stop() {
  stopping_ = true;
  stop_.cancel();
}

/// True when it became so; false when the time was over first. Looked at every `step`, and when the stop begins.
boost::asio::awaitable<bool> manager::wait_until(std::function<bool()> callback, milliseconds at_most,
                                                 milliseconds step) {
  const auto end = boot_now() + at_most;
  while (!callback()) {
    if (boot_now() >= end) co_return false;
    stop_.expires_after(step);
    co_await stop_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
  co_return true;
}

bool manager::watching(std::string_view cache) const {
  const auto match =
      std::ranges::find(caches_, cache, [](const auto& entry) -> const std::string& { return entry->name; });
  return match != caches_.end() && (*match)->state.trouble.empty();
}

std::vector<std::string> manager::refused() const {
  std::vector<std::string> out;
  for (const auto& entry : caches_)
    if (entry->state.refused) out.push_back(entry->name);
  return out;
}

/// Runs one step of the stop, but not longer than it may take.
boost::asio::awaitable<void> manager::bounded(std::string name, kube::task<void> task, milliseconds at_most) {
  const auto step = loop_.spawn("stop_" + name, std::move(task));
  const bool ended = co_await wait_until([&step] { return !step.running(); }, at_most, 10ms);
  if (ended) co_return;
  log::warn("step of the stop took too long, going on", {{"step", name}, {"limit_ms", at_most.count()}});
  step.cancel();
}

kube::task<void> manager::run() {
  // 1. Servers. First, so that /healthz answers while the caches fill (a probe must not kill a slow start), and a port
  //    that is taken ends the process before it has touched the cluster.
  for (auto* server : servers_) {
    auto started = server->start();
    if (!started) co_return std::unexpected(std::move(started.error()));
  }
  // 2. Caches. Nothing may act on what it has not seen: a missing object looks like one that was deleted.
  for (auto& each : caches_) each->running = loop_.spawn_essential("reflect_" + each->name, each->start());
  const auto synced = [this] {
    return stopping_ || std::ranges::all_of(caches_, [](const auto& c) { return c->synced(); });
  };
  co_await wait_until(synced, forever, 20ms);
  // 3. What every replica does: events, probes. After the caches, because it answers from them.
  if (!stopping_) {
    log::info("caches synced", {{"caches", caches_.size()}});
    for (auto& each : always_) each.running = loop_.spawn_essential(each.name, each.start());
    // 4. The lease. Only now: the leader must be able to work at once, or a replica that can never sync would keep
    // one that could
    //    from leading.
    if (!leadership_.run) leadership_ = always_leading();
    electing_ = loop_.spawn_essential("elect", leadership_.run());
  }
  co_await wait_until([this] { return stopping_ || leadership_.held(); }, forever, 200ms);
  if (!stopping_) {
    leading_ = true;
    for (const auto& call : on_leading_) call();
    // 5. Reconcilers. Last, and only here do writes begin.
    for (auto* each : runners_) each->start();
  }
  co_await wait_until([this] { return stopping_; }, forever, 1h);
  co_await shut_down();
  co_return kube::result<void>();
}

boost::asio::awaitable<void> manager::shut_down() {
  const auto began = boot_now();
  // Readiness first: endpoints need time to forget us, and everything below still answers meanwhile.
  health_.stopping();
  // 5. Reconcilers take nothing new; what is under way may finish, because half of a change is the next leader's first
  // surprise.
  for (auto* each : runners_) each->stop();
  const bool idle =
      co_await wait_until([this] { return std::ranges::all_of(runners_, &runner::idle); }, limits_.reconciles, 10ms);
  if (!idle) {
    log::warn("reconciles did not end in time, the lease is not given back: it expires");
    for (auto* each : runners_) each->cancel();
  }
  // 3. Events that report it, while the lease still lets us write.
  for (auto& each : always_) {
    if (each.flush) co_await bounded("flush_" + each.name, each.flush(), limits_.flush);
    each.running.cancel();
  }
  // 4. The lease goes back only when none of our parts writes any more: the next leader may start the moment it is
  // free. A write that was cut off may still arrive.
  if (leading_) {
    for (const auto& call : before_release_) co_await bounded("before_release", call(), limits_.before_release);
  }
  electing_.cancel();
  if (idle && leadership_.release) co_await bounded("release", leadership_.release(), limits_.release);
  leading_ = false;
  // 1. Servers last but for the caches they answer from: requests that are on their way still get their answer.
  const auto served = boot_now() - began;
  if (served < drain_delay_) co_await sleep_for(drain_delay_ - served);
  for (auto* server : servers_) server->stop();
  const bool drained = co_await wait_until([this] { return std::ranges::all_of(servers_, &http_server::drained); },
                                           limits_.connections, 10ms);
  if (!drained) log::warn("connections did not end in time");
  // 2. Caches.
  for (auto& each : caches_) each->running.cancel();
  log::info("stopped", {{"took_ms", (boot_now() - began).count()}});
}

leadership elector_leadership(elector& elector) {
  return {[&elector] { return elector.run(); }, [&elector] { return elector.held(); },
          [&elector] { return elector.release(); }};
}

leadership always_leading() {
  leadership out;
  out.run = []() -> kube::task<void> { co_return kube::result<void>(); };
  out.held = [] { return true; };
  return out;
}

}  // namespace controller
