#include "controller/elector.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>
#include <utility>

#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/json_text.hpp"
#include "kube/status.hpp"

namespace controller {

using nlohmann::json;

std::string make_identity() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", host, random(), random());
}

void end_process_now(std::string_view reason) {
  log::error("leadership lost, the process ends", {{"reason", reason}});
  log::flush();
  _exit(1);
}

lease_record record_of(const json& lease) {
  lease_record out;
  if (const auto spec = lease.find("spec"); spec != lease.end() && spec->is_object()) {
    out.holder = kube::text_in(*spec, "holderIdentity");
    out.duration_seconds = kube::number_in(*spec, "leaseDurationSeconds");
    out.transitions = kube::number_in(*spec, "leaseTransitions");
    out.acquire_time = kube::text_in(*spec, "acquireTime");
    out.renew_time = kube::text_in(*spec, "renewTime");
  }
  if (const auto meta = lease.find("metadata"); meta != lease.end() && meta->is_object())
    out.resource_version = kube::text_in(*meta, "resourceVersion");
  return out;
}

json lease_document(json base, const kube::object_key& key, const lease_settings& settings, const lease_step& step,
                    wall_time time) {
  if (step.create || !base.is_object()) base = json::object();
  base["apiVersion"] = "coordination.k8s.io/v1";
  base["kind"] = "Lease";
  base["metadata"]["name"] = key.name;
  base["metadata"]["namespace"] = key.ns;
  json& spec = base["spec"];
  if (!spec.is_object()) spec = json::object();
  spec["holderIdentity"] = settings.identity;
  spec["leaseDurationSeconds"] = std::chrono::ceil<std::chrono::seconds>(settings.duration).count();
  spec["leaseTransitions"] = step.transitions;
  const std::string now = rfc3339_micros(time);
  spec["renewTime"] = now;
  if (!step.keep_acquire_time || !spec.contains("acquireTime")) spec["acquireTime"] = now;
  return base;
}

json released_document(json base, wall_time time) {
  json& spec = base["spec"];
  spec["holderIdentity"] = "";
  spec["leaseDurationSeconds"] = 1;
  spec["renewTime"] = spec["acquireTime"] = rfc3339_micros(time);
  return base;
}

elector::elector(kube::transport& transport, options options, registry& metrics)
    : transport_(transport),
      options_(std::move(options)),
      machine_(options_.timing, random_jitter),
      leader_(metrics.make_gauge("quartermaster_leader", "1 while this process holds the lease.")),
      transitions_(
          metrics.make_gauge("quartermaster_lease_transitions", "How often the lease changed hands, by its record.")),
      requests_(metrics.counters("quartermaster_lease_requests_total", "Lease reads and writes by outcome.",
                                 {"operation", "result"})),
      seconds_(metrics.make_histogram("quartermaster_lease_request_seconds", "Time of lease reads and writes.")) {}

void elector::publish() {
  leader_.set(held() ? 1 : 0);
  if (document_.is_object()) transitions_.set(static_cast<double>(record_of(document_).transitions));
}

kube::task<json> elector::call(kube::request request, milliseconds deadline, std::string_view operation) {
  request.channel = kube::lane::lease;
  request.deadline = deadline;
  const std::string name = fmt::format("{} lease {}", operation, options_.lease.to_string());
  const auto sent = options_.now();
  auto answer = co_await transport_.send(std::move(request));
  seconds_.observe(std::chrono::duration<double>(options_.now() - sent).count());
  kube::result<json> out = std::unexpected(kube::error());
  if (!answer) {
    out = std::unexpected(answer.error());
    out.error().message = name + ": " + out.error().message;
  } else if (!kube::succeeded(answer->status)) {
    out = std::unexpected(kube::error_of(name, *answer));
  } else {
    auto parsed = json::parse(answer->body, nullptr, false);
    if (parsed.is_object())
      out = std::move(parsed);
    else
      out = std::unexpected(kube::error{kube::errc::decode, answer->status, name + ": the answer is not JSON", {}});
  }
  requests_.with({operation, out ? "ok" : kube::to_string(out.error().code)}).add();
  co_return out;
}

/// One request of the machine's, and its answer back to it.
kube::task<void> elector::take(const lease_step& step) {
  const auto sent = options_.now();
  if (step.action == lease_step::kind::read) {
    auto answer = co_await call(kube::get_request(kube::resources::leases, options_.lease), step.deadline, "get");
    if (answer) {
      document_ = std::move(*answer);
      machine_.on_record(record_of(document_), options_.now());
      co_return kube::result<void>();
    }
    if (answer.error().code == kube::errc::not_found) {
      machine_.on_record(std::nullopt, options_.now());
      co_return kube::result<void>();
    }
    machine_.on_failed(answer.error(), options_.now());
    co_return std::unexpected(answer.error());
  }
  auto body = lease_document(document_, options_.lease, options_.timing, step, std::chrono::system_clock::now());
  auto request = step.create ? kube::create_request(kube::resources::leases, options_.lease.ns, body)
                             : kube::replace_request(kube::resources::leases, options_.lease, body);
  unanswered_ = true;
  auto answer = co_await call(std::move(request), step.deadline, step.create ? "create" : "update");
  unanswered_ = !answer && answer.error().http == 0;
  if (!answer) {
    machine_.on_failed(answer.error(), options_.now());
    co_return std::unexpected(answer.error());
  }
  document_ = std::move(*answer);
  machine_.on_written(record_of(document_), sent, options_.now());
  co_return kube::result<void>();
}

void elector::doubt() {
  machine_.doubt(options_.now());
  doubted_ = true;
  if (pause_) pause_->cancel();
}

boost::asio::awaitable<bool> elector::pause(milliseconds time) {
  doubted_ = false;
  pause_.emplace(co_await boost::asio::this_coro::executor, time);
  const auto [failed] = co_await pause_->async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  pause_.reset();
  co_return !failed || doubted_;
}

kube::task<void> elector::run() {
  std::string holder, trouble;
  for (;;) {
    const auto step = machine_.next(options_.now());
    publish();
    if (step.action == lease_step::kind::lost) {
      options_.on_lost(step.reason);
      co_return std::unexpected(kube::error{kube::errc::conflict, 0, step.reason, {}});
    }
    if (step.action == lease_step::kind::restored) {
      options_.on_restored(kube::resources::leases.plural, step.fall);
      co_return std::unexpected(kube::error{kube::errc::conflict, 0, "the server's data is older than before", {}});
    }
    if (step.action == lease_step::kind::wait) {
      const bool slept = co_await pause(step.wait);
      if (!slept) co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "the elector was stopped", {}});
      continue;
    }
    const auto done = co_await take(step);
    if (!done && done.error().code == kube::errc::cancelled) co_return std::unexpected(done.error());
    // A conflict is the normal end of a race; of the rest, one line when it begins and one when it is over.
    const bool race =
        !done && (done.error().code == kube::errc::conflict || done.error().code == kube::errc::already_exists);
    if (!done && !race && done.error().message != trouble)
      log::warn("lease not reachable", {{"error", done.error().message}});
    if (done && !trouble.empty()) log::info("lease reachable again");
    if (done || !race) trouble = done ? std::string() : done.error().message;
    if (machine_.holder() != holder) {
      holder = machine_.holder();
      log::info("lease holder changed",
                {{"lease", options_.lease.to_string()}, {"holder", holder}, {"identity", identity()}});
    }
    if (held() && !std::exchange(announced_, true)) {
      publish();
      log::info("leading", {{"identity", identity()}});
      if (options_.on_acquired) options_.on_acquired();
    }
  }
}

kube::task<bool> elector::taken_unanswered() {
  // Twice, because a write that was cut off may still arrive.
  for (int looks = 0; unanswered_ && looks < 2; ++looks) {
    if (looks > 0) {
      const bool slept = co_await sleep_for(milliseconds(200));
      if (!slept) break;
    }
    auto now = co_await call(kube::get_request(kube::resources::leases, options_.lease), milliseconds(400), "get");
    if (!now) co_return std::unexpected(now.error());
    if (record_of(*now).holder != identity()) continue;
    document_ = std::move(*now);
    co_return true;
  }
  co_return false;
}

kube::task<void> elector::release() {
  const auto record = machine_.release(options_.now());
  publish();
  if (!record) {
    const auto taken = co_await taken_unanswered();
    if (!taken) co_return std::unexpected(taken.error());
    if (!*taken) co_return kube::result<void>();
  }
  // A renewal that was cut off may have moved the version: look once, and give back only what is still ours.
  for (bool looked = false;; looked = true) {
    auto body = released_document(document_, std::chrono::system_clock::now());
    auto request = kube::replace_request(kube::resources::leases, options_.lease, body);
    const auto answer = co_await call(std::move(request), milliseconds(1000), "release");
    if (answer) break;
    if (looked || answer.error().code != kube::errc::conflict) co_return std::unexpected(answer.error());
    auto now = co_await call(kube::get_request(kube::resources::leases, options_.lease), milliseconds(1000), "get");
    if (!now) co_return std::unexpected(now.error());
    if (record_of(*now).holder != identity()) co_return kube::result<void>();
    document_ = std::move(*now);
  }
  log::info("lease released", {{"lease", options_.lease.to_string()}});
  co_return kube::result<void>();
}

}  // namespace controller
