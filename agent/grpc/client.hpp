#pragma once
// One gRPC call on a Unix socket, with a connection of its own: a server that was started again is no matter.

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <string>

#include "agent/grpc/session.hpp"
#include "kube/task.hpp"

namespace agent::grpc {

struct reply {
  status is;            ///< as the server says it
  std::string message;  ///< where it is good
};

struct client_options {
  std::string socket;
  std::chrono::milliseconds deadline{5'000};
  session_limits limits = {};
};

/// errc::connect, timeout or cancelled; of a server that is no gRPC server, or whose answer is none, errc::decode.
kube::task<reply> call(boost::asio::any_io_executor executor, client_options options, std::string method,
                       std::string message);

}  // namespace agent::grpc
