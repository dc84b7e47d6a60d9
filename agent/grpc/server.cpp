#include "agent/grpc/server.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <map>
#include <set>
#include <utility>

namespace agent::grpc {
namespace {

namespace asio = boost::asio;
using protocol = asio::local::stream_protocol;
using boost::system::error_code;

}  // namespace

/// Lives as long as the socket has something to do.
class server_connection final : public session_listener, public std::enable_shared_from_this<server_connection> {
 public:
  server_connection(protocol::socket socket, call_handler& handler, const server_options& options)
      : socket_(std::move(socket)),
        handler_(&handler),
        options_(options),
        session_(role::server, *this, options.limits),
        idle_(socket_.get_executor()) {}

  void start() {
    rest();
    flush();
    read();
  }
  void end() {
    session_.end();
    flush();
  }
  void close(const std::string& reason) {
    if (std::exchange(is_closed_, true)) return;
    error_code ignored;
    socket_.close(ignored);
    idle_.cancel();
    session_.lost(reason);
    if (auto callback = std::exchange(closed, {})) callback();
  }
  /// The server is gone, and its service with it.
  void leave() {
    handler_ = nullptr;
    closed = {};
    close("the server ends");
  }
  std::function<void()> closed;

  void send(call_id id, std::string_view message) {
    session_.send(id, message);
    flush();
  }
  void finish(call_id id, const status& status) {
    calls_.erase(id);
    session_.finish(id, status);
    flush();
  }

 private:
  void called(call_id id, std::string_view method, std::string_view message) override {
    auto call = std::make_shared<served_call>(weak_from_this(), id, std::string(method));
    calls_.emplace(id, call);
    idle_.cancel();
    if (handler_) handler_->serve(std::move(call), message);
  }
  void given_up(call_id id) override {
    const auto match = calls_.find(id);
    if (match == calls_.end()) return;
    const auto call = std::move(match->second);
    calls_.erase(match);
    call->is_open_ = false;
    if (auto callback = std::exchange(call->given_up_, {})) callback();
  }

  /// Closes the connection where no call comes for a while.
  void rest() {
    idle_.expires_after(options_.idle);
    idle_.async_wait([weak = weak_from_this()](error_code problem) {
      const auto self = weak.lock();
      if (!problem && self && self->session_.open_calls() == 0) self->close("idle");
    });
  }

  void read() {
    socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](error_code problem, std::size_t size) {
      if (self->is_closed_) return;
      if (problem) return self->close("the client has gone");
      self->is_receiving_ = true;
      const auto taken = self->session_.receive({self->buffer_.data(), size});
      self->is_receiving_ = false;
      if (!taken) self->is_broken_ = true;
      if (!taken && self->is_writing_) return self->close("the client breaks the protocol and takes no answer");
      self->flush();
      if (!taken || self->is_closed_) return;
      if (self->session_.open_calls() == 0) self->rest();
      self->read();
    });
  }

  void flush() {
    if (is_writing_ || is_receiving_ || is_closed_) return;
    unsent_ = session_.output();
    if (unsent_.empty()) {
      if (is_broken_ || session_.over()) close("the connection has ended");
      return;
    }
    is_writing_ = true;
    asio::async_write(socket_, asio::buffer(unsent_), [self = shared_from_this()](error_code problem, std::size_t) {
      self->is_writing_ = false;
      if (problem) return self->close("the client has gone");
      if (self->session_.open_calls() == 0 && !self->is_closed_) self->rest();
      self->flush();
    });
  }

  protocol::socket socket_;
  call_handler* handler_;
  const server_options options_;
  session session_;
  asio::steady_timer idle_;
  std::map<call_id, std::shared_ptr<served_call>> calls_;
  std::array<char, 16'384> buffer_{};
  std::string unsent_;
  bool is_writing_ = false, is_receiving_ = false, is_closed_ = false, is_broken_ = false;
};

void served_call::send(std::string_view message) {
  const auto connection = connection_.lock();
  if (is_open_ && connection) connection->send(id_, message);
}

void served_call::finish(const status& status) {
  const auto connection = connection_.lock();
  if (!std::exchange(is_open_, false) || !connection) return;
  given_up_ = {};
  connection->finish(id_, status);
}

struct server::state : std::enable_shared_from_this<state> {
  asio::any_io_executor executor;
  call_handler& served;
  const server_options options;
  protocol::acceptor acceptor;
  std::set<std::shared_ptr<server_connection>> connections = {};
  std::pair<dev_t, ino_t> file = {};  ///< of our socket; a file of that name may be another's by now

  state(asio::any_io_executor executor, call_handler& handler, server_options options)
      : executor(executor), served(handler), options(std::move(options)), acceptor(executor) {}

  static std::pair<dev_t, ino_t> file_at(const std::string& path) {
    struct stat found{};
    return lstat(path.c_str(), &found) == 0 ? std::pair(found.st_dev, found.st_ino) : std::pair<dev_t, ino_t>();
  }

  void accept() {
    acceptor.async_accept([weak = weak_from_this()](error_code problem, protocol::socket socket) {
      const auto self = weak.lock();
      if (!self || problem == asio::error::operation_aborted || !self->acceptor.is_open()) return;
      if (!problem && self->connections.size() < self->options.connections) self->take(std::move(socket));
      self->accept();
    });
  }
  void take(protocol::socket socket) {
    auto connection = std::make_shared<server_connection>(std::move(socket), served, options);
    connections.insert(connection);
    connection->closed = [weak = weak_from_this(), raw = std::weak_ptr(connection)] {
      if (const auto self = weak.lock()) self->connections.erase(raw.lock());
    };
    connection->start();
  }
};

server::server(asio::any_io_executor executor, call_handler& handler, server_options options)
    : state_(std::make_shared<state>(std::move(executor), handler, std::move(options))) {}

server::~server() {
  error_code ignored;
  state_->acceptor.close(ignored);
  for (const auto& connection : std::exchange(state_->connections, {})) connection->leave();
  const auto& path = state_->options.socket;
  if (state_->file != std::pair<dev_t, ino_t>() && state::file_at(path) == state_->file) ::unlink(path.c_str());
}

kube::result<void> server::listen() {
  auto& self = *state_;
  const auto& path = self.options.socket;
  error_code problem;
  self.acceptor.close(problem);
  // Under another name first: a client finds an old socket or a new one that listens.
  const auto fresh = path + ".new";
  ::unlink(fresh.c_str());
  const auto fails = [&](const std::string& detail) {
    return kube::config_error("cannot listen at " + path + ": " + detail);
  };
  if (fresh.size() >= sizeof(sockaddr_un::sun_path)) return fails("the path is too long for a socket");
  const protocol::endpoint place(fresh);
  self.acceptor.open(place.protocol(), problem);
  if (!problem) self.acceptor.bind(place, problem);
  if (!problem) self.acceptor.listen(asio::socket_base::max_listen_connections, problem);
  if (problem) return fails(problem.message());
  self.file = state::file_at(fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) return fails(std::generic_category().message(errno));
  self.accept();
  return {};
}

void server::end() {
  const auto all = state_->connections;
  for (const auto& connection : all) connection->end();
}

std::size_t server::connections() const { return state_->connections.size(); }

}  // namespace agent::grpc
