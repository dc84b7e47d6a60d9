#pragma once
// A transport that knows beforehand which requests will come, in order, and what each is answered. One too many, one
// too few or another than expected fails the test. Targets are globs ('*' is any run of characters).
//
//   scripted_transport api;
//   api.on(method::get, "/api/v1/nodes/gpu-1").answers(200, R"({"kind":"Node"})");
//   api.on(method::patch, "/api/v1/nodes/gpu-1?*").body_has(R"("op":"test")").fails(errc::connect);
//   api.on_stream("/api/v1/pods?*watch=true*").chunk(a).chunk(b).closes();      // or .fails(...), .hangs()

#include <gtest/gtest.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/transport.hpp"

namespace kube_test {

inline bool glob(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*')
    return !text.empty() && pattern.front() == text.front() && glob(pattern.substr(1), text.substr(1));
  for (std::size_t skip = 0; skip <= text.size(); ++skip)
    if (glob(pattern.substr(1), text.substr(skip))) return true;
  return false;
}

inline const char* name_of(kube::method verb) {
  constexpr const char* names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
  return names[static_cast<int>(verb)];
}

class scripted_transport final : public kube::transport {
 public:
  /// One expected request and its answer; without one it is an empty 200.
  class step {
   public:
    step(kube::method verb, std::string target, bool stream)
        : verb_(verb), target_(std::move(target)), stream_(stream) {
      answer_.status = 200;
      answer_.content_type = "application/json";
    }
    step& body_has(std::string part) {
      body_parts_.push_back(std::move(part));
      return *this;
    }
    step& accepts(std::string type) {
      accept_ = std::move(type);
      return *this;
    }
    step& answers(int status, std::string body = {}) {
      answer_.status = status;
      answer_.body = std::move(body);
      return *this;
    }
    step& answers(kube::response whole) {
      answer_ = std::move(whole);
      return *this;
    }
    step& retry_after(std::chrono::seconds time) {
      answer_.retry_after = time;
      return *this;
    }
    step& fails(kube::errc code, std::string message = "scripted failure") {
      error_ = kube::error{code, 0, std::move(message), {}};
      return *this;
    }
    step& chunk(std::string bytes) {
      chunks_.push_back(std::move(bytes));
      return *this;
    }
    /// The server ends the stream; the default.
    step& closes() { return *this; }
    /// No answer, or no more of it, until the caller is cancelled.
    step& hangs() {
      hangs_ = true;
      return *this;
    }

   private:
    friend class scripted_transport;
    kube::method verb_;
    std::string target_;
    bool stream_;
    std::vector<std::string> body_parts_;
    std::string accept_;
    kube::response answer_;
    std::optional<kube::error> error_;
    std::vector<std::string> chunks_;
    bool hangs_ = false;
  };

  scripted_transport() = default;
  scripted_transport(const scripted_transport&) = delete;
  scripted_transport& operator=(const scripted_transport&) = delete;
  ~scripted_transport() override { done(); }

  step& on(kube::method verb, std::string target) { return add(verb, std::move(target), false); }
  step& on_stream(std::string target) { return add(kube::method::get, std::move(target), true); }

  /// Fails unless everything expected has come. Called by the destructor too.
  void done() {
    for (const auto& missing : expected_)
      ADD_FAILURE() << "never sent: " << name_of(missing->verb_) << " " << missing->target_;
    expected_.clear();
  }
  std::size_t left() const { return expected_.size(); }
  /// Every request, in order.
  const std::vector<kube::request>& seen() const { return seen_; }

  kube::task<kube::response> send(kube::request request) override {
    auto now = take(request, false);
    if (!now) co_return std::unexpected(kube::error{kube::errc::connect, 0, "unexpected request", {}});
    co_await boost::asio::post(co_await boost::asio::this_coro::executor, boost::asio::use_awaitable);
    co_return co_await ending(*now);
  }

  kube::task<kube::response> stream(kube::request request, kube::chunk_sink sink) override {
    auto now = take(request, true);
    if (!now) co_return std::unexpected(kube::error{kube::errc::connect, 0, "unexpected stream", {}});
    const auto executor = co_await boost::asio::this_coro::executor;
    for (const auto& bytes : now->chunks_) {
      co_await boost::asio::post(executor, boost::asio::use_awaitable);
      if (!sink(bytes))
        co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "stream ended by its reader", {}});
    }
    co_await boost::asio::post(executor, boost::asio::use_awaitable);
    co_return co_await ending(*now);
  }

 private:
  step& add(kube::method verb, std::string target, bool stream) {
    return *expected_.emplace_back(std::make_unique<step>(verb, std::move(target), stream));
  }

  std::unique_ptr<step> take(const kube::request& request, bool stream) {
    seen_.push_back(request);
    const auto line = std::string(stream ? "stream " : "") + name_of(request.verb) + " " + request.target;
    if (expected_.empty()) {
      ADD_FAILURE() << "one too many: " << line << "\n" << request.body;
      return nullptr;
    }
    auto next = std::move(expected_.front());
    expected_.pop_front();
    if (next->verb_ != request.verb || next->stream_ != stream || !glob(next->target_, request.target)) {
      ADD_FAILURE() << "sent:     " << line << "\nexpected: " << (next->stream_ ? "stream " : "")
                    << name_of(next->verb_) << " " << next->target_;
      return nullptr;
    }
    for (const auto& part : next->body_parts_)
      EXPECT_NE(request.body.find(part), std::string::npos) << line << ": body lacks " << part << ": " << request.body;
    if (!next->accept_.empty()) EXPECT_EQ(request.accept, next->accept_) << line;
    return next;
  }

  static kube::task<kube::response> ending(step& now) {
    if (now.hangs_) {
      boost::asio::steady_timer never(co_await boost::asio::this_coro::executor,
                                      boost::asio::steady_timer::time_point::max());
      co_await never.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
      co_return std::unexpected(kube::error{kube::errc::cancelled, 0, "cancelled", {}});
    }
    if (now.error_) co_return std::unexpected(*now.error_);
    co_return now.answer_;
  }

  std::deque<std::unique_ptr<step>> expected_;
  std::vector<kube::request> seen_;
};

}  // namespace kube_test
