#pragma once
// The real transport: libcurl's multi interface inside one asio loop, HTTP/1.1 over TLS, three lanes that never wait
// for each other (facts: docs/architecture.md, "Three lanes").
//
//   watch  no cap, no deadline of its own; silence ends a stream
//   unary  8 requests at a time, the rest queue in order; 30 s, waiting included
//   lease  its own connection, 5 s
//
// After a failure or a deadline a lane gives up its idle connections (they may be as dead as the one that failed): the
// next request opens a new one, transfers that are running go on. A 401 renews the credential and tries once more if
// there is another to try. A request on a kept connection that the server closed before its first byte is sent again by
// libcurl, POST too: creates must be safe to repeat (AlreadyExists may be our own).
//
// Cancelling a coroutine that waits here (asio cancellation slots) takes the request out and closes its connection.

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstddef>
#include <memory>

#include "kube/config.hpp"
#include "kube/curl_transfer.hpp"
#include "kube/transport.hpp"

namespace kube {

struct transport_options {
  int unary_in_flight = 8;
  std::chrono::milliseconds unary_deadline{30'000};
  std::chrono::milliseconds lease_deadline{5'000};
  std::chrono::milliseconds connect_limit{10'000};
  std::size_t body_limit = 256u << 20;  ///< bytes of one answer

  transport_options() = default;
};

class curl_transport final : public transport {
 public:
  /// `executor` is the one loop thread. Coroutines that are still inside when the transport goes away stay valid.
  curl_transport(boost::asio::any_io_executor executor, cluster_config config,
                 transport_options options = transport_options());
  ~curl_transport() override;

  task<response> send(request request) override;
  task<response> stream(request request, chunk_sink sink) override;

  const lane_counters& count(lane lane) const;
  /// Gives up the idle connections of a lane; what is running goes on.
  void reset(lane lane);
  const cluster_config& config() const;

 private:
  struct core;
  static task<response> perform(std::shared_ptr<core> self, request request, chunk_sink sink, bool streaming);
  std::shared_ptr<core> core_;
};

}  // namespace kube
