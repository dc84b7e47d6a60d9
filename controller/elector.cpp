#include "controller/elector.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "kube/status.hpp"

namespace controller {
namespace {

using json = nlohmann::json;

std::string text_at(const json& in, const char* name) {
  const auto at = in.find(name);
  return at != in.end() && at->is_string() ? at->get<std::string>() : std::string();
}
std::int64_t number_at(const json& in, const char* name) {
  const auto at = in.find(name);
  return at != in.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}

}  // namespace

std::string make_identity() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", host, random(), random());
}

void end_process_now(std::string_view why) {
  log::error("leadership lost, the process ends", {{"reason", why}});
  log::flush();
  _exit(1);
}

lease_record record_of(const json& lease) {
  lease_record out;
  if (const auto spec = lease.find("spec"); spec != lease.end() && spec->is_object()) {
    out.holder = text_at(*spec, "holderIdentity");
    out.duration_seconds = number_at(*spec, "leaseDurationSeconds");
    out.transitions = number_at(*spec, "leaseTransitions");
    out.acquire_time = text_at(*spec, "acquireTime");
    out.renew_time = text_at(*spec, "renewTime");
  }
  if (const auto meta = lease.find("metadata"); meta != lease.end() && meta->is_object())
    out.resource_version = text_at(*meta, "resourceVersion");
  return out;
}

json lease_document(json base, const kube::object_key& key, const lease_settings& settings, const lease_step& step,
                    wall_time when) {
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
  const std::string now = rfc3339_micros(when);
  spec["renewTime"] = now;
  if (!step.keep_acquire_time || !spec.contains("acquireTime")) spec["acquireTime"] = now;
  return base;
}

json released_document(json base, wall_time when) {
  json& spec = base["spec"];
  spec["holderIdentity"] = "";
  spec["leaseDurationSeconds"] = 1;
  spec["renewTime"] = spec["acquireTime"] = rfc3339_micros(when);
  return base;
}

elector::elector(kube::transport& over, options how, registry& metrics)
    : over_(over),
      how_(std::move(how)),
      machine_(how_.timing, random_jitter),
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

kube::task<json> elector::call(kube::request what, milliseconds deadline, std::string_view operation) {
  what.via = kube::lane::lease;
  what.deadline = deadline;
  const std::string name = fmt::format("{} lease {}", operation, how_.lease.to_string());
  const auto sent = how_.now();
  auto answer = co_await over_.send(std::move(what));
  seconds_.observe(std::chrono::duration<double>(how_.now() - sent).count());
  kube::result<json> out = std::unexpected(kube::error());
  if (!answer) {
    out = std::unexpected(answer.error());
    out.error().what = name + ": " + out.error().what;
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
  const auto sent = how_.now();
  if (step.what == lease_step::kind::read) {
    auto answer = co_await call(kube::get_request(kube::resources::leases, how_.lease), step.deadline, "get");
    if (answer) {
      document_ = std::move(*answer);
      machine_.on_record(record_of(document_), how_.now());
      co_return kube::result<void>();
    }
    if (answer.error().code == kube::errc::not_found) {
      machine_.on_record(std::nullopt, how_.now());
      co_return kube::result<void>();
    }
    machine_.on_failed(answer.error(), how_.now());
    co_return std::unexpected(answer.error());
  }
  auto body = lease_document(document_, how_.lease, how_.timing, step, std::chrono::system_clock::now());
  auto request = step.create ? kube::create_request(kube::resources::leases, how_.lease.ns, body)
                             : kube::replace_request(kube::resources::leases, how_.lease, body);
  auto answer = co_await call(std::move(request), step.deadline, step.create ? "create" : "update");
  if (!answer) {
    machine_.on_failed(answer.error(), how_.now());
    co_return std::unexpected(answer.error());
  }
  document_ = std::move(*answer);
  machine_.on_written(record_of(document_), sent, how_.now());
  co_return kube::result<void>();
}

kube::task<void> elector::run() {
  std::string holder, trouble;
  for (;;) {
    const auto step = machine_.next(how_.now());
    publish();
    if (step.what == lease_step::kind::lost) {
      how_.on_lost(step.why);
      co_return std::unexpected(kube::error{kube::errc::conflict, 0, step.why, {}});
    }
    if (step.what == lease_step::kind::wait) {
      const bool slept = co_await sleep_for(step.wait);
      if (!slept) co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "the elector was stopped", {}});
      continue;
    }
    const auto done = co_await take(step);
    if (!done && done.error().code == kube::errc::cancelled) co_return std::unexpected(done.error());
    // A conflict is the normal end of a race; of the rest, one line when it begins and one when it is over.
    const bool race =
        !done && (done.error().code == kube::errc::conflict || done.error().code == kube::errc::already_exists);
    if (!done && !race && done.error().what != trouble)
      log::warn("lease not reachable", {{"error", done.error().what}});
    if (done && !trouble.empty()) log::info("lease reachable again");
    if (done || !race) trouble = done ? std::string() : done.error().what;
    if (machine_.holder() != holder) {
      holder = machine_.holder();
      log::info("lease holder changed",
                {{"lease", how_.lease.to_string()}, {"holder", holder}, {"identity", identity()}});
    }
    if (held() && !std::exchange(told_, true)) {
      publish();
      log::info("leading", {{"identity", identity()}});
      if (how_.on_acquired) how_.on_acquired();
    }
  }
}

kube::task<void> elector::release() {
  const auto record = machine_.release(how_.now());
  publish();
  if (!record) co_return kube::result<void>();
  // A renewal that was cut off may have moved the version: look once, and give back only what is still ours.
  for (bool looked = false;; looked = true) {
    auto body = released_document(document_, std::chrono::system_clock::now());
    auto request = kube::replace_request(kube::resources::leases, how_.lease, body);
    const auto answer = co_await call(std::move(request), milliseconds(1000), "release");
    if (answer) break;
    if (looked || answer.error().code != kube::errc::conflict) co_return std::unexpected(answer.error());
    auto now = co_await call(kube::get_request(kube::resources::leases, how_.lease), milliseconds(1000), "get");
    if (!now) co_return std::unexpected(now.error());
    if (record_of(*now).holder != identity()) co_return kube::result<void>();
    document_ = std::move(*now);
  }
  log::info("lease released", {{"lease", how_.lease.to_string()}});
  co_return kube::result<void>();
}

}  // namespace controller
