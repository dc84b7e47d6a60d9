#pragma once
// What /readyz and /healthz say. Ready: every cache has been filled once, and the API server answered lately; a replica
// that does not lead is ready too, it answers from its stores. Alive: the loop turns, which the answer itself proves;
// nothing remote can make us unalive, because a restart would not fix it.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "controller/clock.hpp"
#include "controller/http_server.hpp"
#include "controller/metrics.hpp"
#include "kube/transport.hpp"

namespace controller {

class health {
 public:
  explicit health(registry& metrics, std::function<milliseconds()> now = boot_now);

  /// A reason not to be ready, empty when there is none; asked at every call of `problems`.
  void check(std::string name, std::function<std::string()> reason) {
    checks_.emplace_back(std::move(name), std::move(reason));
  }
  /// An answer of the API server (any status), or none.
  void on_contact();
  void on_silence(std::string_view reason);
  /// The lease is read or written every so often, at the least: two and a half such periods without an answer, and
  /// never less than five seconds, are a fact and not a pause.
  void expect_contact_every(milliseconds period) { contact_limit_ = std::max(milliseconds(5000), period * 5 / 2); }
  /// How long the API server has not answered, where that is a fact and not a pause; empty: it answers, or never did.
  std::optional<milliseconds> silence() const;
  /// We are going: not ready from now on.
  void stopping() { stopping_ = true; }

  /// "name: reason" each; empty means ready.
  std::vector<std::string> problems() const;
  bool ready() const { return problems().empty(); }

 private:
  std::function<milliseconds()> now_;
  std::vector<std::pair<std::string, std::function<std::string()>>> checks_;
  bool heard_ = false;
  milliseconds last_contact_{0}, contact_limit_{5000};
  std::string silence_;
  bool stopping_ = false;
};

/// GET /readyz (200 or 503, a line a reason) and /healthz (200).
void add_health_routes(http_server& server, const health& health);

/// Counts requests to the API server by lane, verb and status, and tells `health` which of the lease and unary lanes
/// were answered.
class observed_transport : public kube::transport {
 public:
  observed_transport(kube::transport& inner, health& tell, registry& metrics);
  kube::task<kube::response> send(kube::request request) override;
  kube::task<kube::response> stream(kube::request request, kube::chunk_sink sink) override;
  /// Gets the Date of each answer that counts as contact, when the answer is whole. Not of streams: they end long after
  /// their head.
  void on_date(std::function<void(std::int64_t)> sink) { date_sink_ = std::move(sink); }

 private:
  kube::transport& inner_;
  health& tell_;
  std::function<void(std::int64_t)> date_sink_;
  family<counter>& requests_;
  family<histogram>& seconds_;
};

}  // namespace controller
