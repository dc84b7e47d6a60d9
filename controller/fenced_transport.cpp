#include "controller/fenced_transport.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace controller {
namespace {

constexpr milliseconds unary_default{30'000};

bool changes_something(const kube::request& request) {
  return request.verb != kube::method::get && request.channel != kube::lane::lease;
}

kube::task<kube::response> refuse(std::string target) {
  kube::error error;
  error.code = kube::errc::cancelled;
  error.message = "not the leader: nothing is written to " + target;
  co_return std::unexpected(std::move(error));
}

}  // namespace

kube::task<kube::response> fenced_transport::send(kube::request request) {
  if (changes_something(request)) {
    const auto left = remaining_();
    if (left <= milliseconds(0)) {
      refused_.add();
      return refuse(request.target.substr(0, request.target.find('?')));
    }
    request.deadline = std::min(request.deadline > milliseconds(0) ? request.deadline : unary_default, left);
    request.allowed = [this] {
      const bool held = remaining_() > milliseconds(0);
      if (!held) refused_.add();
      return held;
    };
  }
  return inner_.send(std::move(request));
}

kube::task<kube::response> fenced_transport::stream(kube::request request, kube::chunk_sink sink) {
  return inner_.stream(std::move(request), std::move(sink));
}

}  // namespace controller
