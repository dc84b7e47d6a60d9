#pragma once
// Decides who leads, without I/O and without a clock. The driver (controller/elector.hpp) reads and writes the Lease
// and passes each answer and the time to this machine. The rules are those of client-go's tools/leaderelection:
//  - A record is valid for its duration, counted from the local time when we last saw it change. The record's
//    timestamps are never read, so no two clocks are compared. Clocks are assumed to run at about the same rate.
//  - We lead only after the server accepts our write, for the renew deadline, counted from when the write was *sent*.
//    The renew deadline is shorter than the lease, so we stop before another process may start.
//  - This is not mutual exclusion. A request sent in time may arrive late, so writes must be safe to repeat.
// Our own rule: the lease is the witness of the server's data, for a leader and for those who wait. They write or
// read it every two seconds, and if its version falls, etcd was restored (controller/version_witness.hpp).

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "controller/clock.hpp"
#include "controller/version_witness.hpp"
#include "kube/error.hpp"
#include "text/phrase.hpp"

namespace controller {

struct lease_settings {
  std::string identity;                 ///< unique per process
  milliseconds duration{15'000};        ///< others wait this long after our last renewal
  milliseconds renew_deadline{10'000};  ///< we stop this long after we sent the last renewal that worked
  milliseconds retry{2'000};            ///< between tries; followers add up to a fifth at random

  lease_settings() = default;
  /// What breaks client-go's rule: duration > renew deadline > 1.2 * retry, all at least a second. Empty: nothing does.
  text::phrase problem() const;
};

/// The parts of a Lease that matter.
struct lease_record {
  std::string holder;  ///< empty: no one
  std::int64_t duration_seconds = 0;
  std::int64_t transitions = 0;
  std::string acquire_time, renew_time;  ///< as text; only compared for change
  std::string resource_version;
  friend bool operator==(const lease_record&, const lease_record&) = default;
};

struct lease_step {
  enum class kind {
    read,     ///< GET the record
    acquire,  ///< PUT with our name, transitions one higher (or POST where `create`)
    renew,    ///< PUT with our name
    wait,
    lost,      ///< we no longer lead: stop at once. No other step follows
    restored,  ///< the server's data went back to an older state: stop at once. No other step follows
  } action = kind::wait;
  milliseconds wait{0};
  milliseconds deadline{0};  ///< read, acquire, renew: time limit of the request
  bool create = false;       ///< acquire: there is no record yet
  std::int64_t transitions = 0;
  bool keep_acquire_time = false;  ///< renew: acquireTime stays what it was
  std::string reason;              ///< lost: why, in one line
  version_fall fall;               ///< restored: what shows it
};

class lease_machine {
 public:
  lease_machine(lease_settings settings, std::function<double()> jitter);

  lease_step next(milliseconds now);

  /// The answer to `read`; empty: there is no record.
  void on_record(std::optional<lease_record> record, milliseconds now);
  /// The server accepted `acquire` or `renew`. `record` is the stored record, `sent` is when the request left.
  void on_written(lease_record record, milliseconds sent, milliseconds now);
  /// `read`, `acquire` or `renew` failed.
  void on_failed(const kube::error& error, milliseconds now);
  /// Something else shows that the server was away: a watch of it broke. A leader renews at once.
  void doubt(milliseconds now);

  /// May we act as the leader at this moment?
  bool held(milliseconds now) const { return remaining(now) > milliseconds(0); }
  /// How long we lead if no renewal succeeds; zero when not held.
  milliseconds remaining(milliseconds now) const;
  /// The server has answered a request about the lease that left after the server was last seen to be away. Its data
  /// may have been restored then, and only such an answer shows that it was not.
  bool is_confirmed() const { return !away_at_; }
  /// Who leads, as far as we have seen; empty: no one.
  const std::string& holder() const { return seen_ ? seen_->holder : nobody_; }
  /// Releases the lease; from now on it is not held. Returns the record to write; empty when it was not held.
  std::optional<lease_record> release(milliseconds now);

  const lease_settings& settings() const { return settings_; }

 private:
  bool ours() const { return seen_ && seen_->holder == settings_.identity; }
  bool valid(milliseconds now) const;
  /// False: the record is older than one before.
  bool confirm(const lease_record& record);
  void pause(milliseconds now);
  lease_step write_step(milliseconds now) const;
  milliseconds request_deadline(milliseconds now) const;

  lease_settings settings_;
  std::function<double()> jitter_;
  std::optional<lease_record> seen_;
  milliseconds seen_at_{0};  // when `seen_` last changed, on our clock
  bool absent_ = false;      // the last read found no record
  bool fresh_ = false;       // we may write from `seen_` or `absent_` without another read
  bool leading_ = false;     // the server accepted our last acquire or a renew after it
  bool looked_ = false;      // a refused renewal was followed by a read at once; reset when a write is accepted
  bool lost_ = false;
  version_witness witness_;
  std::optional<version_fall> fall_;
  std::optional<milliseconds>
      away_at_;               // no answer, or one of a server that cannot reach its data; empty since confirmed
  milliseconds asked_at_{0};  // when the last request left
  bool released_ = false;
  milliseconds renewed_at_{0};  // when the last accepted write was sent
  milliseconds not_before_{0};  // no request before this
  std::string last_error_;
  std::string lost_why_;
  std::string nobody_;
};

}  // namespace controller
