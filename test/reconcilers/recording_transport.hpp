#pragma once
// The API server as a reconciler's test sees it: every request is kept, and a function answers it. For tests of what is
// written and when; the wire itself is tested in test/kube.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kube/transport.hpp"

namespace reconcilers {

class recording_transport final : public kube::transport {
 public:
  using answerer = std::function<kube::result<kube::response>(const kube::request&)>;

  std::vector<kube::request> sent;
  /// Without one every request is answered 200 with an empty object.
  answerer answer;

  kube::task<kube::response> send(kube::request request) override {
    sent.push_back(request);
    co_return answer ? answer(request) : kube::result<kube::response>(answered(200, nlohmann::json::object()));
  }
  kube::task<kube::response> stream(kube::request, kube::chunk_sink) override {
    co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "no streams here", std::nullopt});
  }

  static kube::response answered(int status, const nlohmann::json& body) {
    kube::response out;
    out.status = status;
    out.body = body.dump();
    out.content_type = "application/json";
    return out;
  }
  /// A metav1.Status.
  static kube::response refused(int status, const std::string& reason, const std::string& message = "scripted") {
    return answered(status, {{"kind", "Status"},
                             {"apiVersion", "v1"},
                             {"status", "Failure"},
                             {"reason", reason},
                             {"message", message},
                             {"code", status}});
  }
};

/// Runs a task to its end on a loop of its own and gives back its result; a task that waits for something no one does
/// is an error.
template <class T>
kube::result<T> run(kube::task<T> task) {
  boost::asio::io_context loop(1);
  std::optional<kube::result<T>> out;
  std::exception_ptr thrown;
  boost::asio::co_spawn(loop, std::move(task), [&](std::exception_ptr e, kube::result<T> result) {
    thrown = e;
    out = std::move(result);
  });
  loop.run();
  if (thrown) std::rethrow_exception(thrown);
  if (!out) throw std::runtime_error("the task never ended");
  return std::move(*out);
}

}  // namespace reconcilers
