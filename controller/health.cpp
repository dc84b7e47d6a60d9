#include "controller/health.hpp"

#include <fmt/format.h>

#include <chrono>

#include "kube/status.hpp"

namespace controller {
namespace {

std::string_view verb_name(kube::method verb) {
  switch (verb) {
    case kube::method::get:
      return "GET";
    case kube::method::post:
      return "POST";
    case kube::method::put:
      return "PUT";
    case kube::method::patch:
      return "PATCH";
    case kube::method::del:
      return "DELETE";
  }
  return "?";
}

}  // namespace

health::health(registry& metrics, std::function<milliseconds()> now) : now_(std::move(now)) {
  metrics.collect([this](metric_text& metric_text) {
    metric_text.family("quartermaster_ready", "1 while /readyz answers 200.", "gauge");
    metric_text.sample("quartermaster_ready", {}, ready() ? 1 : 0);
  });
}

void health::on_contact() {
  heard_ = true;
  last_contact_ = now_();
  silence_.clear();
}
void health::on_silence(std::string_view reason) { silence_ = reason; }

std::optional<milliseconds> health::silence() const {
  const auto since = now_() - last_contact_;
  const auto limit = silence_.empty() ? contact_limit_ : std::min(contact_limit_, milliseconds(5000));
  return heard_ && since > limit ? std::optional(since) : std::nullopt;
}

std::vector<std::string> health::problems() const {
  std::vector<std::string> out;
  if (stopping_) out.emplace_back("process: stopping");
  if (!silence_.empty()) {
    out.push_back("api-server: " + silence_);
  } else if (!heard_) {
    out.emplace_back("api-server: no answer yet");
  } else if (const auto since = now_() - last_contact_; since > contact_limit_) {
    out.push_back(
        fmt::format("api-server: no answer for {} s", std::chrono::floor<std::chrono::seconds>(since).count()));
  }
  for (const auto& [name, reason] : checks_) {
    if (const auto problem = reason(); !problem.empty()) out.push_back(name + ": " + problem);
  }
  return out;
}

void add_health_routes(http_server& server, const health& health) {
  server.route("GET", "/readyz", [&health](const http_request&) {
    const auto problems = health.problems();
    http_response out{problems.empty() ? 200 : 503, problems.empty() ? "ok\n" : "not ready\n"};
    for (const auto& line : problems) out.body += line + "\n";
    return out;
  });
  server.route("GET", "/healthz", [](const http_request&) { return http_response{200, "ok\n"}; });
}

observed_transport::observed_transport(kube::transport& inner, health& tell, registry& metrics)
    : inner_(inner),
      tell_(tell),
      requests_(metrics.counters("quartermaster_api_requests_total",
                                 "Requests to the API server, by verb and status or error.", {"verb", "code"})),
      seconds_(metrics.histograms("quartermaster_api_request_seconds", "From sending to the whole answer.", {"verb"})) {
}

kube::task<kube::response> observed_transport::send(kube::request request) {
  const std::string_view verb = verb_name(request.verb);
  const auto lane = request.channel;
  const auto sent = std::chrono::steady_clock::now();
  auto answer = co_await inner_.send(std::move(request));
  seconds_.with({verb}).observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - sent).count());
  // The lease is the heartbeat. A failure of another request may be its own: a webhook in its way, a deadline of the
  // fence.
  const bool heartbeat = lane == kube::lane::lease;
  if (answer) {
    requests_.with({verb, std::to_string(answer->status)}).add();
    // 5xx (etcd away, shutting down) is an answer, but not one to rely on; a redirect is someone else's.
    if (kube::succeeded(answer->status) || (answer->status >= 400 && answer->status < 500)) {
      tell_.on_contact();
      if (date_sink_ && answer->date > 0) date_sink_(answer->date);
    } else if (heartbeat) {
      tell_.on_silence("answers " + std::to_string(answer->status));
    }
  } else {
    requests_.with({verb, kube::to_string(answer.error().code)}).add();
    if (heartbeat && answer.error().code != kube::errc::cancelled) tell_.on_silence(answer.error().message);
  }
  co_return answer;
}

kube::task<kube::response> observed_transport::stream(kube::request request, kube::chunk_sink sink) {
  auto answer = co_await inner_.stream(std::move(request), std::move(sink));
  if (answer)
    requests_.with({"WATCH", std::to_string(answer->status)}).add();
  else
    requests_.with({"WATCH", kube::to_string(answer.error().code)}).add();
  co_return answer;
}

}  // namespace controller
