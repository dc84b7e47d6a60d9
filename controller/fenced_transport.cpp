#include "controller/fenced_transport.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace controller {
namespace {

constexpr milliseconds unary_default{30'000};

bool changes_something(const kube::request& what) {
  return what.verb != kube::method::get && what.via != kube::lane::lease;
}

kube::task<kube::response> refuse(std::string target) {
  kube::error why;
  why.code = kube::errc::cancelled;
  why.what = "not the leader: nothing is written to " + target;
  co_return std::unexpected(std::move(why));
}

}  // namespace

kube::task<kube::response> fenced_transport::send(kube::request what) {
  if (changes_something(what)) {
    const auto left = remaining_();
    if (left <= milliseconds(0)) {
      refused_.add();
      return refuse(what.target.substr(0, what.target.find('?')));
    }
    what.deadline = std::min(what.deadline > milliseconds(0) ? what.deadline : unary_default, left);
    what.allowed = [this] {
      const bool held = remaining_() > milliseconds(0);
      if (!held) refused_.add();
      return held;
    };
  }
  return inner_.send(std::move(what));
}

kube::task<kube::response> fenced_transport::stream(kube::request what, kube::chunk_sink sink) {
  return inner_.stream(std::move(what), std::move(sink));
}

}  // namespace controller
