#pragma once
// Drives a lease_machine: GET, POST and PUT of one Lease on the lease lane. Losing the lease ends the process by
// default, at once and without hooks: what is bound to the process cannot outlive the lease that way (shutdown hooks
// that blocked have made double leaders). So does a server whose data went back, for those who do not lead too.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "controller/lease_machine.hpp"
#include "controller/metrics.hpp"
#include "kube/task.hpp"
#include "kube/transport.hpp"

namespace controller {

/// Hostname, "_", and 16 random hex digits: another one after every start, because a process that was killed does not
/// lead any more.
std::string make_identity();

/// One line to the log, then `_exit(1)`: no destructor, no hook.
[[noreturn]] void end_process_now(std::string_view reason);

/// A Lease document as the machine sees it, and back. `time` is wall time, written for people only.
lease_record record_of(const nlohmann::json& lease);
nlohmann::json lease_document(nlohmann::json base, const kube::object_key& key, const lease_settings& settings,
                              const lease_step& step, wall_time time);
nlohmann::json released_document(nlohmann::json base, wall_time time);

class elector {
 public:
  struct options {
    kube::object_key lease{"", "quartermaster"};
    lease_settings timing;
    std::function<void()> on_acquired;  ///< once
    std::function<void(std::string_view reason)> on_lost = end_process_now;
    std::function<void(std::string_view resource, const version_fall& fall)> on_restored = start_afresh;
    std::function<milliseconds()> now = boot_now;

    options() = default;
  };

  /// `transport` must outlive the elector, and must not be the fenced one.
  elector(kube::transport& transport, options options, registry& metrics);

  /// Tries to lead, then renews, until the lease is lost, the server's data goes back, or the coroutine is cancelled.
  /// errc::cancelled, or, after on_lost or on_restored returned, errc::conflict with the reason.
  kube::task<void> run();
  /// Gives the lease back, so that another leads within a retry period. To be called when none of our parts will write
  /// any more; `held` is false from the call on. At most two seconds.
  kube::task<void> release();

  bool held() const { return machine_.held(options_.now()); }
  milliseconds remaining() const { return machine_.remaining(options_.now()); }
  /// The same for what must not be decided from data that may have been restored a moment ago: zero from when a request
  /// about the lease fails, or `doubt` is called, until a later one is answered.
  milliseconds remaining_confirmed() const { return machine_.is_confirmed() ? remaining() : milliseconds(0); }
  /// A watch broke. A leader renews at once, which shows whether the data is still that of before.
  void doubt();
  const std::string& holder() const { return machine_.holder(); }
  const std::string& identity() const { return options_.timing.identity; }

 private:
  kube::task<nlohmann::json> call(kube::request request, milliseconds deadline, std::string_view operation);
  kube::task<void> take(const lease_step& step);
  /// Until the time is over or `doubt` is called; false: cancelled.
  boost::asio::awaitable<bool> pause(milliseconds time);
  /// Did a write whose answer never came make us the holder? Then document_ is the lease. Otherwise no one could lead
  /// until it expires.
  kube::task<bool> taken_unanswered();
  void publish();

  kube::transport& transport_;
  options options_;
  lease_machine machine_;
  nlohmann::json document_;
  std::optional<boost::asio::steady_timer> pause_;
  bool doubted_ = false;  ///< in the pause
  bool announced_ = false;
  bool unanswered_ = false;  ///< the last write has no answer: the lease may be ours, or not
  gauge& leader_;
  gauge& transitions_;
  family<counter>& requests_;
  histogram& seconds_;
};

}  // namespace controller
