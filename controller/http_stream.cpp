#include "controller/http_stream.hpp"

#include <poll.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace controller {

namespace asio = boost::asio;
using boost::asio::awaitable;
using boost::system::error_code;

namespace {

/// More than is on its way when someone who is refused hears of it; who goes on does not listen.
constexpr std::size_t most_drained = 16u << 20;

}  // namespace

http_stream::http_stream(asio::ip::tcp::socket socket, std::shared_ptr<asio::ssl::context> tls)
    : tcp_(std::move(socket)), context_(std::move(tls)) {
  if (context_) tls_.emplace(tcp_, *context_);
}

awaitable<error_code> http_stream::handshake() {
  if (!tls_) co_return error_code();
  const auto [failed] = co_await tls_->async_handshake(asio::ssl::stream_base::server, as_pair);
  co_return failed;
}

std::optional<x509::info> http_stream::peer() {
  if (!tls_) return std::nullopt;
  return x509::peer_of(tls_->native_handle());
}

std::string http_stream::address() const {
  error_code gone;
  const auto other = tcp_.socket().remote_endpoint(gone);
  return gone ? std::string() : other.address().to_string();
}

awaitable<std::pair<error_code, std::size_t>> http_stream::read_some(std::span<char> buffer) {
  const auto room = asio::buffer(buffer.data(), buffer.size());
  if (tls_) {
    const auto [failed, size] = co_await tls_->async_read_some(room, as_pair);
    co_return std::pair(failed, size);
  }
  const auto [failed, size] = co_await tcp_.async_read_some(room, as_pair);
  co_return std::pair(failed, size);
}

awaitable<error_code> http_stream::write(std::string_view bytes) {
  const auto all = asio::buffer(bytes.data(), bytes.size());
  if (tls_) {
    const auto [failed, size] = co_await asio::async_write(*tls_, all, as_pair);
    co_return failed;
  }
  const auto [failed, size] = co_await asio::async_write(tcp_, all, as_pair);
  co_return failed;
}

bool http_stream::has_gone() {
  pollfd socket{.fd = tcp_.socket().native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&socket, 1, 0) == 1;
}

awaitable<void> http_stream::finish(bool drain) {
  if (tls_) co_await tls_->async_shutdown(as_pair);
  error_code ignored;
  tcp_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  std::array<char, 4096> nowhere{};
  for (std::size_t drained = 0; drain && drained < most_drained;) {
    const auto [failed, size] = co_await tcp_.async_read_some(asio::buffer(nowhere), as_pair);
    if (failed) co_return;
    drained += size;
  }
}

}  // namespace controller
