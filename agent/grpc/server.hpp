#pragma once
// A gRPC server on a Unix socket, in the loop of the agent. What the kubelet calls: unary calls, and calls whose answer
// is a stream (ListAndWatch).

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/grpc/session.hpp"

namespace agent::grpc {

class server_connection;

/// A call of a client. It may outlive its connection; then nothing it does has an effect.
class served_call {
 public:
  served_call(std::weak_ptr<server_connection> connection, call_id id, std::string method)
      : connection_(std::move(connection)), id_(id), method_(std::move(method)) {}

  const std::string& method() const { return method_; }  ///< "/v1beta1.DevicePlugin/Allocate"
  bool is_open() const { return is_open_; }
  void send(std::string_view message);
  void finish(const status& status = {});
  /// Called once, where the client gives up before `finish`.
  void on_given_up(std::function<void()> callback) { given_up_ = std::move(callback); }

 private:
  friend class server_connection;
  std::weak_ptr<server_connection> connection_;
  call_id id_;
  std::string method_;
  bool is_open_ = true;
  std::function<void()> given_up_;
};

struct call_handler {
  virtual ~call_handler() = default;
  /// Answers by `call`, now or later. `message` is valid until this returns.
  virtual void serve(std::shared_ptr<served_call> call, std::string_view message) = 0;
};

struct server_options {
  std::string socket;                      ///< path; a file of that name is replaced
  std::size_t connections = 16;            ///< at once; further ones are closed
  std::chrono::milliseconds idle{30'000};  ///< a connection without a call is closed after this
  session_limits limits = {};
};

class server {
 public:
  server(boost::asio::any_io_executor executor, call_handler& handler, server_options options);
  /// Closes all connections. Removes the socket's file where it is still ours.
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  /// Listens, also again after the file was removed (the kubelet does that when it starts). errc::config.
  kube::result<void> listen();
  /// Open calls go on, new ones are refused.
  void end();
  std::size_t connections() const;

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace agent::grpc
