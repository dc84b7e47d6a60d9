#pragma once
// An HTTP proxy that knows CONNECT only, on the test's own loop.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>
#include <vector>

namespace kube_test {

class test_proxy {
  using tcp = boost::asio::ip::tcp;

 public:
  explicit test_proxy(boost::asio::io_context& loop) : state_(std::make_shared<state>(loop)) {
    boost::asio::co_spawn(loop, accept(state_), boost::asio::detached);
  }
  ~test_proxy() { state_->acceptor.close(); }
  test_proxy(const test_proxy&) = delete;
  test_proxy& operator=(const test_proxy&) = delete;
  std::string url() const { return "http://127.0.0.1:" + std::to_string(state_->acceptor.local_endpoint().port()); }
  /// First lines of what came.
  const std::vector<std::string>& asked() const { return state_->requests; }

 private:
  struct state {
    explicit state(boost::asio::io_context& loop) : acceptor(loop, {boost::asio::ip::address_v4::loopback(), 0}) {}
    tcp::acceptor acceptor;
    std::vector<std::string> requests;
  };
  using socket_ptr = std::shared_ptr<tcp::socket>;

  static boost::asio::awaitable<void> accept(std::shared_ptr<state> self) {
    for (;;) {
      auto [failed, socket] = co_await self->acceptor.async_accept(boost::asio::as_tuple(boost::asio::use_awaitable));
      if (failed) co_return;
      auto client = std::make_shared<tcp::socket>(std::move(socket));
      const auto executor = self->acceptor.get_executor();
      boost::asio::co_spawn(executor, serve(self, std::move(client)), boost::asio::detached);
    }
  }

  static boost::asio::awaitable<void> serve(std::shared_ptr<state> self, socket_ptr client) {
    std::string head;
    auto [failed, size] = co_await boost::asio::async_read_until(*client, boost::asio::dynamic_buffer(head), "\r\n\r\n",
                                                                 boost::asio::as_tuple(boost::asio::use_awaitable));
    if (failed) co_return;
    self->requests.push_back(head.substr(0, head.find("\r\n")));
    const auto colon = head.find(':');
    const auto port = static_cast<unsigned short>(std::stoi(head.substr(colon + 1)));
    auto server = std::make_shared<tcp::socket>(self->acceptor.get_executor());
    const tcp::endpoint target(boost::asio::ip::address_v4::loopback(), port);
    auto [refused] = co_await server->async_connect(target, boost::asio::as_tuple(boost::asio::use_awaitable));
    if (refused) co_return;
    const std::string yes = "HTTP/1.1 200 Connection established\r\nX-Proxy: 1\r\n\r\n";
    co_await boost::asio::async_write(*client, boost::asio::buffer(yes),
                                      boost::asio::as_tuple(boost::asio::use_awaitable));
    const auto executor = self->acceptor.get_executor();
    boost::asio::co_spawn(executor, pump(client, server), boost::asio::detached);
    co_await pump(server, client);
  }

  static boost::asio::awaitable<void> pump(socket_ptr source, socket_ptr target) {
    std::string buffer(16384, '\0');
    for (;;) {
      auto [failed, size] = co_await source->async_read_some(boost::asio::buffer(buffer),
                                                             boost::asio::as_tuple(boost::asio::use_awaitable));
      if (failed) break;
      auto [cut, sent] = co_await boost::asio::async_write(*target, boost::asio::buffer(buffer.data(), size),
                                                           boost::asio::as_tuple(boost::asio::use_awaitable));
      if (cut) break;
    }
    boost::system::error_code ignored;
    target->close(ignored);
  }

  std::shared_ptr<state> state_;
};

}  // namespace kube_test
