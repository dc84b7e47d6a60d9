#pragma once
// A small HTTPS server on the test's own loop: loopback, port 0, keep-alive, chunked streams that end, hang or are cut.
// What it answers is a function of the request; what it saw is kept.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "test/kube/test_pki.hpp"

namespace kube_test {

namespace asio = boost::asio;

struct seen_request {
  std::string verb, target, body;
  std::map<std::string, std::string> headers;  ///< names in lower case
  int connection = 0;                          ///< 1 is the first that finished its handshake
  std::string client_name;                     ///< CN of the client certificate
};

struct reply {
  int status = 200;
  std::string body;
  std::vector<std::string> headers;  ///< "Name: value"
  std::vector<std::string> chunks;   ///< not empty or `open`: a chunked answer
  enum class ending { keep, hang, cut } end = ending::keep;
  bool answered = true;                ///< false: read the request and never say a word
  std::chrono::milliseconds delay{0};  ///< before the answer
  std::chrono::milliseconds gap{0};    ///< before each chunk

  reply() = default;
  static reply of(int status, std::string text) {
    reply made;
    made.status = status;
    made.body = std::move(text);
    return made;
  }
  static reply stream(std::vector<std::string> parts, ending ending) {
    reply made;
    made.chunks = std::move(parts);
    made.end = ending;
    return made;
  }
  static reply silence() {
    reply made;
    made.answered = false;
    return made;
  }
};

class test_server {
 public:
  using handler = std::function<reply(const seen_request&)>;

  test_server(asio::io_context& loop, const pem_pair& leaf, handler answers, unsigned short port = 0,
              const std::string& client_ca = {})
      : state_(std::make_shared<state>(loop, std::move(answers))) {
    auto& tls = state_->tls;
    use(leaf);
    if (!client_ca.empty()) {
      tls.add_certificate_authority(asio::buffer(client_ca));
      tls.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
    }
    state_->acceptor.open(asio::ip::tcp::v4());
    state_->acceptor.set_option(asio::socket_base::reuse_address(true));
    state_->acceptor.bind({asio::ip::address_v4::loopback(), port});
    state_->acceptor.listen();
    state_->port = state_->acceptor.local_endpoint().port();
    asio::co_spawn(loop, accept(state_), asio::detached);
  }
  test_server(const test_server&) = delete;
  test_server& operator=(const test_server&) = delete;
  ~test_server() { stop(); }

  /// New connections get this certificate.
  void use(const pem_pair& leaf) {
    state_->tls.use_certificate_chain(asio::buffer(leaf.certificate));
    state_->tls.use_private_key(asio::buffer(leaf.key), asio::ssl::context::pem);
  }
  void answers(handler other) { state_->answers = std::move(other); }
  /// Connections are accepted by the kernel and no one reads them.
  void freeze() { state_->frozen = true; }
  /// As if killed: the port is closed, every connection too.
  void stop() {
    boost::system::error_code ignored;
    state_->acceptor.close(ignored);
    for (auto& weak : state_->connections)
      if (auto socket = weak.lock()) socket->lowest_layer().close(ignored);
  }

  unsigned short port() const { return state_->port; }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port()); }
  const std::vector<seen_request>& seen() const { return state_->seen; }
  int connections() const { return state_->opened; }
  int most_at_once() const { return state_->most_active; }
  /// Streams that hang and have not been closed by the client.
  int hanging() const { return state_->hanging; }

 private:
  using stream = asio::ssl::stream<asio::ip::tcp::socket>;
  struct state {
    state(asio::io_context& loop, handler handler)
        : acceptor(loop), tls(asio::ssl::context::tls_server), answers(std::move(handler)) {}
    asio::ip::tcp::acceptor acceptor;
    asio::ssl::context tls;
    handler answers;
    std::vector<seen_request> seen;
    std::vector<std::weak_ptr<stream>> connections;
    unsigned short port = 0;
    int opened = 0, active = 0, most_active = 0, hanging = 0;
    bool frozen = false;
  };
  using state_ptr = std::shared_ptr<state>;

  static asio::awaitable<void> accept(state_ptr self) {
    for (;;) {
      auto [failed, socket] = co_await self->acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
      if (failed) co_return;
      auto connection = std::make_shared<stream>(std::move(socket), self->tls);
      self->connections.push_back(connection);
      const auto executor = self->acceptor.get_executor();
      asio::co_spawn(executor, serve(self, std::move(connection)), asio::detached);
    }
  }

  static asio::awaitable<void> serve(state_ptr self, std::shared_ptr<stream> connection) {
    boost::asio::steady_timer never(self->acceptor.get_executor(), asio::steady_timer::time_point::max());
    if (self->frozen) co_await never.async_wait(asio::as_tuple(asio::use_awaitable));
    auto [refused] = co_await connection->async_handshake(stream::server, asio::as_tuple(asio::use_awaitable));
    if (refused) co_return;
    const int number = ++self->opened;
    std::string buffer;
    for (;;) {
      seen_request got;
      const bool whole = co_await read(*connection, buffer, got);
      if (!whole) co_return;
      got.connection = number;
      got.client_name = peer(*connection);
      self->seen.push_back(got);
      self->most_active = std::max(self->most_active, ++self->active);
      const auto response = self->answers(got);
      co_await pause(*self, response.delay);
      const bool go_on = co_await answer(*self, *connection, response);
      --self->active;
      if (!go_on) co_return;
    }
  }

  static asio::awaitable<void> pause(state& self, std::chrono::milliseconds time) {
    if (time.count() == 0) co_return;
    asio::steady_timer timer(self.acceptor.get_executor(), time);
    co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  }

  static asio::awaitable<bool> read(stream& stream, std::string& buffer, seen_request& seen_request) {
    auto [failed, size] = co_await asio::async_read_until(stream, asio::dynamic_buffer(buffer), "\r\n\r\n",
                                                          asio::as_tuple(asio::use_awaitable));
    if (failed) co_return false;
    parse(buffer.substr(0, size), seen_request);
    buffer.erase(0, size);
    const auto length =
        seen_request.headers.contains("content-length") ? std::stoul(seen_request.headers["content-length"]) : 0;
    if (buffer.size() < length) {
      auto [cut, more] = co_await asio::async_read(stream, asio::dynamic_buffer(buffer),
                                                   asio::transfer_exactly(length - buffer.size()),
                                                   asio::as_tuple(asio::use_awaitable));
      if (cut) co_return false;
    }
    seen_request.body = buffer.substr(0, length);
    buffer.erase(0, length);
    co_return true;
  }

  static void parse(const std::string& head, seen_request& seen_request) {
    std::size_t index = head.find("\r\n");
    const auto first = head.substr(0, index);
    seen_request.verb = first.substr(0, first.find(' '));
    seen_request.target = first.substr(seen_request.verb.size() + 1, first.rfind(' ') - seen_request.verb.size() - 1);
    for (index += 2; index + 2 < head.size();) {
      const auto end = head.find("\r\n", index);
      const auto line = head.substr(index, end - index);
      const auto colon = line.find(": ");
      std::string name = line.substr(0, colon);
      for (auto& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (colon != std::string::npos) seen_request.headers[name] = line.substr(colon + 2);
      index = end + 2;
    }
  }

  static std::string peer(stream& connection) {
    X509* certificate = SSL_get1_peer_certificate(connection.native_handle());
    if (!certificate) return {};
    char name[100] = {};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
    X509_free(certificate);
    return name;
  }

  static asio::awaitable<bool> write(stream& stream, std::string text) {
    auto [failed, size] = co_await asio::async_write(stream, asio::buffer(text), asio::as_tuple(asio::use_awaitable));
    co_return !failed;
  }

  /// Waits until the client closes.
  static asio::awaitable<void> hang(state& self, stream& connection) {
    ++self.hanging;
    char byte = 0;
    co_await connection.async_read_some(asio::buffer(&byte, 1), asio::as_tuple(asio::use_awaitable));
    --self.hanging;
  }

  static asio::awaitable<bool> answer(state& self, stream& stream, const reply& response) {
    if (!response.answered) {
      co_await hang(self, stream);
      co_return false;
    }
    const bool chunked = !response.chunks.empty() || response.end != reply::ending::keep;
    std::string head = "HTTP/1.1 " + std::to_string(response.status) + " X\r\n";
    for (const auto& line : response.headers) head += line + "\r\n";
    head += chunked ? "Transfer-Encoding: chunked\r\n\r\n"
                    : "Content-Length: " + std::to_string(response.body.size()) + "\r\n\r\n" + response.body;
    bool alive = co_await write(stream, std::move(head));
    for (const auto& part : response.chunks) {
      co_await pause(self, response.gap);
      char size[20];
      std::snprintf(size, sizeof size, "%zx\r\n", part.size());
      std::string framed = size + part + "\r\n";
      if (alive) alive = co_await write(stream, std::move(framed));
    }
    if (response.end == reply::ending::hang) co_await hang(self, stream);
    if (response.end == reply::ending::cut) {
      boost::system::error_code ignored;
      stream.lowest_layer().close(ignored);
    }
    if (response.end != reply::ending::keep) co_return false;
    if (chunked && alive) {
      std::string last = "0\r\n\r\n";
      alive = co_await write(stream, std::move(last));
    }
    co_return alive;
  }

  state_ptr state_;
};

}  // namespace kube_test
