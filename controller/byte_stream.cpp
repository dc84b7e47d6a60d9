#include "controller/byte_stream.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <new>

#include "controller/sleep.hpp"

namespace controller {

namespace asio = boost::asio;
using boost::asio::awaitable;
using boost::system::error_code;

namespace {

constexpr auto as_pair = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t most_received = 32 * 1024;
/// A connection that always has something to say still lets the others have their turn.
constexpr std::size_t fair = 256 * 1024, least = 4096;
/// More than is on its way when somebody who is refused hears of it; who goes on does not listen.
constexpr std::size_t most_discarded = 16u << 20;

error_code broken() {
  const auto why = ERR_get_error();
  if (why == 0) return asio::ssl::error::unspecified_system_error;
  return {static_cast<int>(why), asio::error::get_ssl_category()};
}

}  // namespace

byte_stream::byte_stream(asio::ip::tcp::socket socket, std::shared_ptr<asio::ssl::context> tls)
    : socket_(std::move(socket)), context_(std::move(tls)), timer_(socket_.get_executor()) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  if (!context_) return;
  tls_.reset(SSL_new(context_->native_handle()));
  in_ = BIO_new(BIO_s_mem());
  out_ = BIO_new(BIO_s_mem());
  if (!tls_ || !in_ || !out_) {
    BIO_free(in_);
    BIO_free(out_);
    throw std::bad_alloc();
  }
  SSL_set_bio(tls_.get(), in_, out_);
  SSL_set_accept_state(tls_.get());
}

void byte_stream::close() {
  error_code ignored;
  socket_.close(ignored);
}

/// The timer is moved only when it would ring too late: a connection whose deadlines move on with every request costs
/// one timer every few minutes, not two a request.
void byte_stream::arm() {
  if (deadline_ >= armed_) return;
  armed_ = deadline_;
  timer_.expires_at(deadline_);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](const error_code& failed) {
    if (!failed && !alive.expired()) ring();
  });
}

void byte_stream::ring() {
  armed_ = clock::time_point::max();
  if (!waiting_) return;
  if (clock::now() < deadline_) return arm();
  late_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

awaitable<error_code> byte_stream::ready(wait_type what) {
  if (late_) co_return asio::error::timed_out;
  arm();
  spent_ = 0;
  waiting_ = true;
  const auto [failed] = co_await socket_.async_wait(what, as_pair);
  waiting_ = false;
  co_return late_ ? error_code(asio::error::timed_out) : failed;
}

/// After so many bytes without waiting.
awaitable<error_code> byte_stream::turn(std::size_t bytes) {
  spent_ += std::max(bytes, least);
  if (spent_ < fair) co_return error_code();
  spent_ = 0;
  co_await yield_to_others();
  late_ = late_ || clock::now() >= deadline_;
  co_return late_ ? error_code(asio::error::timed_out) : error_code();
}

awaitable<error_code> byte_stream::send(const char* at, std::size_t size) {
  while (size > 0) {
    error_code failed;
    const auto sent = socket_.write_some(asio::buffer(at, size), failed);
    if (failed == asio::error::would_block) failed = co_await ready(wait_type::wait_write);
    if (failed) co_return failed;
    at += sent;
    size -= sent;
  }
  co_return error_code();
}

awaitable<error_code> byte_stream::drain() {
  char* at = nullptr;
  const auto size = BIO_get_mem_data(out_, &at);
  const auto failed = co_await send(at, static_cast<std::size_t>(size));
  BIO_reset(out_);
  co_return failed;
}

awaitable<error_code> byte_stream::fill() {
  static thread_local std::array<char, most_received> received;  // emptied before anybody else can have his turn
  for (error_code failed;;) {
    if (drained_) failed = co_await ready(wait_type::wait_read);
    if (failed) co_return failed;
    const auto size = socket_.read_some(asio::buffer(received), failed);
    drained_ = size < received.size();
    if (failed == asio::error::would_block) continue;
    if (failed) co_return failed;
    BIO_write(in_, received.data(), static_cast<int>(size));
    co_return co_await turn(size);
  }
}

awaitable<error_code> byte_stream::carry_on(int result) {
  const auto needs = SSL_get_error(tls_.get(), result);
  const auto why = needs == SSL_ERROR_SSL || needs == SSL_ERROR_SYSCALL ? broken() : error_code();
  // Also what says why the other side is turned away.
  if (BIO_ctrl_pending(out_) > 0) {
    const auto failed = co_await drain();
    if (failed) co_return failed;
  }
  if (needs == SSL_ERROR_NONE) co_return error_code();
  if (needs == SSL_ERROR_ZERO_RETURN) co_return asio::error::eof;
  if (needs != SSL_ERROR_WANT_READ) co_return why ? why : broken();
  co_return co_await fill();
}

awaitable<error_code> byte_stream::handshake() {
  while (tls_) {
    ERR_clear_error();
    const int result = SSL_do_handshake(tls_.get());
    const auto failed = co_await carry_on(result);
    if (failed || result == 1) co_return failed;
  }
  co_return error_code();
}

awaitable<std::pair<error_code, std::size_t>> byte_stream::read_some(std::span<char> into) {
  for (error_code failed; !failed;) {
    if (!tls_) {
      const auto size = socket_.read_some(asio::buffer(into.data(), into.size()), failed);
      if (!failed) failed = co_await turn(size);
      if (!failed) co_return std::pair(failed, size);
      if (failed == asio::error::would_block) failed = co_await ready(wait_type::wait_read);
    } else {
      std::size_t size = 0;
      ERR_clear_error();
      const int result = SSL_read_ex(tls_.get(), into.data(), into.size(), &size);
      if (result == 1 && BIO_ctrl_pending(out_) == 0) co_return std::pair(failed, size);
      failed = co_await carry_on(result);
      if (!failed && result == 1) co_return std::pair(failed, size);
    }
    if (failed) co_return std::pair(failed, std::size_t(0));
  }
  co_return std::pair(error_code(asio::error::eof), std::size_t(0));
}

awaitable<error_code> byte_stream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto now = bytes.substr(0, piece);
    bytes.remove_prefix(now.size());
    error_code failed;
    if (!tls_) {
      failed = co_await send(now.data(), now.size());
    } else {
      std::size_t taken = 0;
      ERR_clear_error();
      if (SSL_write_ex(tls_.get(), now.data(), now.size(), &taken) != 1 || taken != now.size()) co_return broken();
      failed = co_await drain();
    }
    if (!failed) failed = co_await turn(now.size());
    if (failed) co_return failed;
  }
  co_return error_code();
}

awaitable<void> byte_stream::discard() {
  std::array<char, 4096> nowhere{};
  for (std::size_t thrown_away = 0; thrown_away < most_discarded;) {
    error_code failed;
    const auto size = socket_.read_some(asio::buffer(nowhere), failed);
    thrown_away += size;
    if (!failed)
      failed = co_await turn(size);
    else if (failed == asio::error::would_block)
      failed = co_await ready(wait_type::wait_read);
    if (failed) co_return;
  }
}

awaitable<void> byte_stream::finish() {
  if (tls_) {
    ERR_clear_error();
    SSL_shutdown(tls_.get());
    ERR_clear_error();
    co_await drain();
  }
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace controller
