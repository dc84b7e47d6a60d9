#pragma once
// One accepted connection of the HTTP server, plain or TLS, with a deadline: Boost.Beast's stream, which closes when
// the deadline passes, and Boost.Asio's TLS above it. For one coroutine at a time, on the loop's thread.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "controller/clock.hpp"
#include "controller/x509.hpp"

namespace controller {

/// An error is a value next to the result, not thrown.
inline constexpr auto as_pair = boost::asio::as_tuple(boost::asio::use_awaitable);

class http_stream {
 public:
  using error_code = boost::system::error_code;

  /// Without a context: plain.
  http_stream(boost::asio::ip::tcp::socket socket, std::shared_ptr<boost::asio::ssl::context> tls);
  http_stream(const http_stream&) = delete;
  http_stream& operator=(const http_stream&) = delete;

  /// From here on; what is waited for longer fails with beast::error::timeout, and so does everything after it.
  void expires_after(milliseconds limit) { tcp_.expires_after(limit); }
  void expires_never() { tcp_.expires_never(); }

  /// The server's side of TLS; nothing to do for a plain one.
  boost::asio::awaitable<error_code> handshake();
  /// After it: the certificate of the other side; empty where it showed none.
  std::optional<x509::info> peer();
  /// Of the other side, without the port; empty where it has gone.
  std::string address() const;
  /// One byte at least, or an error: error::eof where the other side has ended.
  boost::asio::awaitable<std::pair<error_code, std::size_t>> read_some(std::span<char> buffer);
  /// All of it, or an error.
  boost::asio::awaitable<error_code> write(std::string_view bytes);
  /// The other side has ended, and waits for no answer. Seen without reading.
  bool has_gone();
  /// Says that we are done. With `drain` what still comes is thrown away until the deadline, the end, or 16 MiB of it:
  /// closing with unread bytes resets the connection, and the caller would never see why it was refused.
  boost::asio::awaitable<void> finish(bool drain);
  /// At once, whatever it waits for.
  void close() { tcp_.close(); }

 private:
  boost::beast::tcp_stream tcp_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls_;
};

}  // namespace controller
