#include "agent/grpc/client.hpp"

#include <sys/un.h>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <optional>

namespace agent::grpc {
namespace {

namespace asio = boost::asio;
using protocol = asio::local::stream_protocol;
using kube::errc;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

struct answer final : session_listener {
  std::optional<std::string> message;
  std::optional<status> end;
  bool is_double = false;

  void answered(call_id, std::string_view bytes) override {
    is_double = is_double || message;
    message = bytes;
  }
  void ended(call_id, const status& status) override { end = status; }
};

/// Closes the socket when the time is over. Owns what its handler touches, which may run after the call has ended.
struct deadline {
  struct shared {
    protocol::socket socket;
    bool is_over = false;
  };
  std::shared_ptr<shared> state;
  asio::steady_timer timer;

  deadline(const asio::any_io_executor& executor, std::chrono::milliseconds after)
      : state(std::make_shared<shared>(protocol::socket(executor))), timer(executor, after) {
    timer.async_wait([state = state](boost::system::error_code problem) {
      if (problem) return;
      state->is_over = true;
      state->socket.close(problem);
    });
  }
};

std::unexpected<kube::error> fails(errc code, std::string text) {
  return std::unexpected(kube::error{code, 0, std::move(text), std::nullopt});
}

kube::result<reply> reply_of(answer answer) {
  if (!answer.end) return fails(errc::decode, "no answer");
  if (!answer.end->good()) return reply{std::move(*answer.end), {}};
  if (!answer.message || answer.is_double)
    return fails(errc::decode, answer.message ? "more than one message" : "no message");
  return reply{{}, std::move(*answer.message)};
}

}  // namespace

kube::task<reply> call(asio::any_io_executor executor, client_options options, std::string method,
                       std::string message) {
  if (options.socket.size() >= sizeof(sockaddr_un::sun_path)) co_return fails(errc::connect, "the path is too long");
  deadline guard(executor, options.deadline);
  auto& socket = guard.state->socket;
  const auto broken = [&](boost::system::error_code problem, const char* doing) {
    if (guard.state->is_over)
      return fails(errc::timeout, "no answer within " + std::to_string(options.deadline.count()) + " ms");
    if (problem == asio::error::operation_aborted) return fails(errc::cancelled, "cancelled");
    return fails(errc::connect, std::string(doing) + ": " + problem.message());
  };
  if (const auto [problem] = co_await socket.async_connect(protocol::endpoint(options.socket), no_throw); problem)
    co_return broken(problem, "cannot connect");
  answer found;
  session connection(role::client, found, options.limits);
  connection.call(method, message);
  std::array<char, 16'384> buffer{};
  while (!found.end) {
    while (true) {
      const auto bytes = connection.output();
      if (bytes.empty()) break;
      if (const auto [problem, size] = co_await asio::async_write(socket, asio::buffer(bytes), no_throw); problem)
        co_return broken(problem, "cannot send");
    }
    if (connection.over()) connection.lost("the server ends the connection");
    if (found.end) break;
    const auto [problem, size] = co_await socket.async_read_some(asio::buffer(buffer), no_throw);
    if (problem) co_return broken(problem, "no answer");
    if (const auto taken = connection.receive({buffer.data(), size}); !taken) co_return std::unexpected(taken.error());
  }
  co_return reply_of(std::move(found));
}

}  // namespace agent::grpc
