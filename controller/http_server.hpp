#pragma once
// A small HTTP/1.1 server on the loop: paths with pure functions or coroutines behind them. For callers that keep
// their connections and for hostile ones. Each phase of a request has a deadline, and every byte kept has a limit. What
// no route takes is answered before its body is read. When all places are taken, the longest idle connection is closed,
// so that a probe is answered. Never redirects: an API server follows it. Decision: docs/decisions/006-http-server.md

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/certificate.hpp"
#include "controller/http_reader.hpp"
#include "controller/loop.hpp"
#include "controller/metrics.hpp"

namespace controller {

namespace x509 {
struct info;
}

struct http_request {
  std::string method;
  std::string path;   ///< without the query
  std::string query;  ///< without "?"
  std::string content_type;
  std::string body;
  http_fields fields;
  std::string caller_address;  ///< without the port
  std::string caller_name;     ///< common name of the certificate that the caller has shown; empty: none
};

/// The next piece of an answer without end; empty text: nothing to say now, ask again. Nothing: the answer ends.
using http_pieces = std::function<boost::asio::awaitable<std::optional<std::string>>()>;

struct http_response {
  int status = 200;  ///< 304 is the only one of 3xx, and has no body
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> fields = {};  ///< more of the header
  /// After `body`, until it ends, the caller goes, or the server stops. It is asked for the next piece when the last
  /// one has been taken, so a slow caller costs no memory; one that takes nothing for `body_deadline` is closed. It
  /// should answer within a second.
  http_pieces pieces = {};
};

struct http_server_options {
  std::string name = "http";             ///< metric label, log field
  std::string address = "0.0.0.0:8080";  ///< "host:port", "[::]:port", ":port"; port 0 is any free one
  std::optional<certificate_files> tls;
  std::size_t body_limit = 1u << 20;  ///< bytes, unless the route has its own
  /// Bytes that have come of bodies larger than `small_body`, until answered; a caller that would go beyond is answered
  /// 503. All bodies together take at most bodies_limit + max_connections x small_body.
  std::size_t bodies_limit = 64u << 20;
  std::size_t small_body = 32u << 10;
  std::size_t header_limit = 16u << 10;
  std::size_t max_connections = 256;
  milliseconds header_deadline{10'000};  ///< TLS handshake; and first byte to end of head
  milliseconds body_deadline{20'000};    ///< end of head to end of body; and writing the answer
  milliseconds idle_deadline{300'000};   ///< between requests; Go's client gives up after 90 s, and should be the first
  milliseconds certificate_period{10'000};
  /// Of each caller that shows a certificate, at the handshake and at most once a minute with its requests after that:
  /// a connection may last for weeks. May be empty.
  std::function<void(const x509::info&)> on_caller;

  http_server_options() = default;
  http_server_options(std::string server_name, std::string server_address)
      : name(std::move(server_name)), address(std::move(server_address)) {}
};

/// Shared by all servers; the first label is the server's name.
struct http_server_metrics {
  explicit http_server_metrics(registry& registry);
  certificate_metrics certificates;
  family<counter>& requests;   ///< by server, path (of a route, or "other") and status
  family<histogram>& seconds;  ///< by server and path: end of body to end of answer
  family<gauge>& connections;
  /// By server and reason: full (of answers), evicted, timeout, tls, no_certificate, malformed, too_large, busy.
  family<counter>& refused;
};

class http_server {
 public:
  using handler = std::function<http_response(const http_request&)>;
  using async_handler = std::function<boost::asio::awaitable<http_response>(http_request)>;

  http_server(loop& loop, http_server_metrics& metrics, http_server_options options);
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  /// `methods` such as "GET" or "GET POST"; HEAD is answered where GET is. An exception out of a handler is a 500. A
  /// path that ends in "/*" takes every path below it that no longer one takes.
  void route(std::string_view methods, std::string path, handler handler, std::size_t body_limit = 0);
  void route_async(std::string_view methods, std::string path, async_handler async_handler, std::size_t body_limit = 0);

  /// Binds and begins to accept. errc::config in one line that names the address. Certificate files that cannot be used
  /// are no error: connections are closed until they can (certificate.hpp).
  kube::result<void> start();
  /// With `tls` without files: the pair new connections get; until the first one they are closed. A bad pair is an
  /// error of one line and the old one stays.
  kube::result<void> show(const given_certificate& given_certificate);
  /// A pair that must not be shown: the old one stays and the metric says so.
  void reject_certificate(std::string_view reason);
  /// A certificate is shown, or none is needed.
  bool serving() const;
  /// No new connections; what is being answered is answered with "Connection: close", idle connections are closed.
  void stop();
  /// Nothing is open any more.
  bool drained() const;
  std::size_t connections() const;
  /// The bound port, after `start`.
  unsigned short port() const;

 private:
  struct core;
  std::shared_ptr<core> core_;
};

}  // namespace controller
