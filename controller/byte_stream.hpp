#pragma once
// One accepted connection as bytes, plain or TLS, with one deadline for whatever it waits for. Tries first and waits
// only when the kernel has nothing, and sends an answer in pieces of 64 KiB, not of a TLS record: half of what a short
// call costs is the kernel's. For one coroutine at a time, on the loop's thread.

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "controller/clock.hpp"

namespace controller {

class byte_stream {
 public:
  using error_code = boost::system::error_code;
  static constexpr std::size_t piece = 64 * 1024;  ///< what is sent at once

  /// Without a context: plain. Throws std::bad_alloc only.
  byte_stream(boost::asio::ip::tcp::socket socket, std::shared_ptr<boost::asio::ssl::context> tls);
  byte_stream(const byte_stream&) = delete;
  byte_stream& operator=(const byte_stream&) = delete;

  /// From here on; what is waited for longer fails with error::timed_out, and so does everything after it.
  void expires_after(milliseconds how_long) { deadline_ = clock::now() + how_long; }
  void expires_never() { deadline_ = clock::time_point::max(); }

  /// The server's side of TLS; nothing to do for a plain one.
  boost::asio::awaitable<error_code> handshake();
  /// One byte at least, or an error: error::eof where the other side has ended.
  boost::asio::awaitable<std::pair<error_code, std::size_t>> read_some(std::span<char> into);
  /// All of it, or an error.
  boost::asio::awaitable<error_code> write(std::string_view bytes);
  /// What still comes is thrown away, until the deadline, the end, or 16 MiB of it.
  boost::asio::awaitable<void> discard();
  /// TLS's own end, and the end of what we send.
  boost::asio::awaitable<void> finish();
  /// At once, whatever it waits for.
  void close();

 private:
  using clock = std::chrono::steady_clock;
  using wait_type = boost::asio::ip::tcp::socket::wait_type;
  struct engine {
    void operator()(SSL* of) const { SSL_free(of); }
  };

  boost::asio::awaitable<error_code> ready(wait_type what);
  boost::asio::awaitable<error_code> turn(std::size_t bytes);
  boost::asio::awaitable<error_code> send(const char* at, std::size_t size);
  boost::asio::awaitable<error_code> fill();
  boost::asio::awaitable<error_code> drain();
  /// After `result` of a call into TLS: what to do next, which may be nothing, waiting, or giving up.
  boost::asio::awaitable<error_code> carry_on(int result);
  void arm();
  void ring();

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::unique_ptr<SSL, engine> tls_;  // owns the two below
  BIO *in_ = nullptr, *out_ = nullptr;

  clock::time_point deadline_ = clock::time_point::max(), armed_ = clock::time_point::max();
  boost::asio::steady_timer timer_;
  std::size_t spent_ = 0;  // bytes since others had their turn
  bool waiting_ = false, late_ = false;
  bool drained_ = true;  // the last read took all there was
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace controller
