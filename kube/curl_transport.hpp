#pragma once
// The real transport: libcurl's multi interface inside one asio loop, HTTP/1.1 over TLS, three lanes that never wait
// for each other (facts: docs/architecture.md, "Three lanes").
//
//   watch  no cap, no deadline of its own; silence ends a stream
//   unary  8 requests at a time, the rest queue in order; 30 s, waiting included
//   lease  its own connection, 5 s
//
// After a failure or a timeout a lane drops its idle connections, which may be dead too. The next request opens a new
// connection; running transfers go on. A 401 renews the credential. If the new credential differs, the request is sent
// once more. When the server closes a kept connection before the first byte of an answer, libcurl sends the request
// again, even a POST. So creates must be safe to repeat: AlreadyExists may mean our own object.
//
// Cancelling a coroutine that waits here (asio cancellation slots) removes its request and closes its connection.

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
  std::size_t body_limit = 256u << 20;    ///< bytes of one answer
  std::size_t bodies_limit = 256u << 20;  ///< bytes of all answers together that are being received

  transport_options() = default;
};

class curl_transport final : public transport {
 public:
  /// `executor` runs on the one loop thread. Coroutines still in `send` or `stream` stay valid after the destructor.
  curl_transport(boost::asio::any_io_executor executor, cluster_config config,
                 transport_options options = transport_options());
  ~curl_transport() override;

  task<response> send(request request) override;
  task<response> stream(request request, chunk_sink sink) override;

  const lane_counters& count(lane lane) const;
  /// Bytes that bodies take which are being received.
  std::size_t receiving() const;
  /// Drops the idle connections of a lane; running transfers go on.
  void reset(lane lane);
  const cluster_config& config() const;

 private:
  struct core;
  static task<response> perform(std::shared_ptr<core> self, request request, chunk_sink sink, bool streaming);
  std::shared_ptr<core> core_;
};

}  // namespace kube
