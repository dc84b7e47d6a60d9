#pragma once
// The last gate before the network: a request that changes something leaves only while we hold the lease. We check
// when it is handed over and again right before its bytes go out, on a clock that goes on while the process is stopped.
// So a leader that was frozen for a minute writes nothing when it thaws, whatever its coroutines had in mind. What
// passes gets a deadline within the time left, so that a request cannot wait in a queue of the transport until after
// the lease is over. Reads pass; so does the lease's own lane.

#include <functional>

#include "controller/clock.hpp"
#include "controller/metrics.hpp"
#include "kube/transport.hpp"

namespace controller {

class fenced_transport : public kube::transport {
 public:
  /// `remaining()` is the time left to act as the leader, zero when not held (elector::remaining). `refused` is counted
  /// up per request.
  fenced_transport(kube::transport& inner, std::function<milliseconds()> remaining, counter& refused)
      : inner_(inner), remaining_(std::move(remaining)), refused_(refused) {}

  /// errc::cancelled, "not the leader: ...", when the lease is not held.
  kube::task<kube::response> send(kube::request request) override;
  kube::task<kube::response> stream(kube::request request, kube::chunk_sink sink) override;

 private:
  kube::transport& inner_;
  std::function<milliseconds()> remaining_;
  counter& refused_;
};

}  // namespace controller
