#include "cli/verify/test_pod.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "test/facts_in.hpp"
#include "test/reconcilers/recording_transport.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using reconcilers::recording_transport;
using testing::HasSubstr;
using testing::Not;

kube::error lost(kube::errc code, const char* message) { return {code, 0, message, std::nullopt}; }

/// An API server for one pod.
struct test_pod_server {
  using answer = kube::result<kube::response>;
  recording_transport transport;
  std::string name;    ///< that it was to have; empty: none was asked for
  bool there = false;  ///< it is
  int looked = 0;
  int hidden = 0;            ///< reads that do not see it yet
  bool reachable = true;     ///< for reads after the creation was asked for
  std::string removed_only;  ///< the body of the DELETE
  std::function<answer()> at_post = [this] {
    there = true;
    return recording_transport::answered(201, seen());
  };
  std::function<void()> at_look = [] {};

  test_pod_server() {
    transport.answer = [this](const kube::request& request) -> answer {
      if (request.verb == kube::method::post) {
        name = json::parse(request.body).at("/metadata/name"_json_pointer);
        return at_post();
      }
      if (request.verb == kube::method::del) {
        EXPECT_TRUE(request.target.ends_with("/" + name)) << request.target;
        removed_only = request.body;
        there = false;
        return recording_transport::answered(200, json::object());
      }
      if (!name.empty() && !reachable) return std::unexpected(lost(kube::errc::connect, "connection refused"));
      if (!there || hidden-- > 0) return recording_transport::refused(404, "NotFound");
      at_look();
      return recording_transport::answered(200, seen());
    };
  }
  json seen() const { return {{"metadata", {{"name", name}, {"uid", "u-1"}}}}; }
  std::string by_hand() const { return "kubectl delete pod -n team " + name; }

  kube::result<trial> tried() { return tried(transport); }
  kube::result<trial> tried(kube::transport& way) {
    const pod_look look = [this](const json&) { return look_at(); };
    return reconcilers::run(try_pod(way, "team", test_pod("image", "", 1s), 10s, 1ms, look));
  }
  kube::task<bool> look_at() { co_return ++looked == 3; }
};

/// A way to the server that takes its time, so that a signal is seen before the answer.
class slow_transport final : public kube::transport {
 public:
  slow_transport(kube::transport& transport, std::function<void(const kube::request&)> at_send)
      : transport_(transport), at_send_(std::move(at_send)) {}
  kube::task<kube::response> send(kube::request request) override {
    at_send_(request);
    boost::asio::steady_timer pause(co_await boost::asio::this_coro::executor, 20ms);
    co_await pause.async_wait(boost::asio::use_awaitable);
    co_return co_await transport_.send(std::move(request));
  }
  kube::task<kube::response> stream(kube::request request, kube::chunk_sink sink) override {
    return transport_.stream(std::move(request), std::move(sink));
  }

 private:
  kube::transport& transport_;
  std::function<void(const kube::request&)> at_send_;
};

TEST(test_pod, has_a_name_of_its_own_before_it_is_made) {
  std::set<std::string> names;
  for (int i = 0; i < 3; ++i) {
    test_pod_server server;
    EXPECT_TRUE(server.tried());
    EXPECT_THAT(server.name, testing::MatchesRegex("quartermaster-verify-[a-z0-9]+"));
    EXPECT_THAT(server.removed_only, HasSubstr("u-1"));
    for (const auto& request : server.transport.sent) EXPECT_THAT(request.body, Not(HasSubstr("generateName")));
    names.insert(server.name);
  }
  EXPECT_EQ(names.size(), 3U);
}

TEST(test_pod, one_whose_creation_was_not_answered_is_looked_up_and_removed) {
  const test_pod_server::answer table[] = {
      std::unexpected(lost(kube::errc::connect, "closed the connection in the middle")),
      std::unexpected(lost(kube::errc::timeout, "no answer within 30000 ms")),
      recording_transport::refused(504, "Timeout"),
      recording_transport::refused(409, "AlreadyExists"),
      kube::response{200, "<html>", "text/html", {}, {}},
  };
  for (const auto& entry : table) {
    test_pod_server server;
    server.at_post = [&] {
      server.there = true;
      return entry;
    };
    const auto out = server.tried();
    ASSERT_FALSE(out);
    EXPECT_THAT(out.error().message, HasSubstr(words::english("verify.test_pod.made_and_removed")));
    EXPECT_THAT(server.removed_only, HasSubstr("u-1"));
    EXPECT_FALSE(server.there);
  }
}

TEST(test_pod, one_that_comes_after_its_creation_was_given_up_is_removed_too) {
  test_pod_server server;
  server.at_post = [&] {
    server.there = true;
    server.hidden = 2;
    return std::unexpected(lost(kube::errc::timeout, "no answer within 30000 ms"));
  };
  EXPECT_FALSE(server.tried());
  EXPECT_FALSE(server.there);
}

TEST(test_pod, one_that_cannot_be_looked_up_is_named_with_the_command_that_removes_it) {
  test_pod_server server;
  server.at_post = [&] {
    server.reachable = false;
    return std::unexpected(lost(kube::errc::timeout, "no answer within 30000 ms"));
  };
  auto out = server.tried();
  ASSERT_FALSE(out);
  EXPECT_THAT(out.error().message, words::has_in_order({"no answer within 30000 ms", "get pods team/"}));
  EXPECT_THAT(out.error().message, HasSubstr(server.by_hand()));

  const test_pod_server::answer table[] = {std::unexpected(lost(kube::errc::timeout, "no answer within 30000 ms")),
                                           recording_transport::refused(502, "", "bad gateway")};
  for (const auto& entry : table) {
    test_pod_server absent;
    absent.at_post = [&] { return entry; };
    out = absent.tried();
    ASSERT_FALSE(out);
    EXPECT_THAT(out.error().message,
                HasSubstr(words::english("verify.test_pod.not_there_yet", {{"command", absent.by_hand()}})));
  }
}

TEST(test_pod, only_what_is_refused_for_its_content_is_refused) {
  struct row {
    int status;
    const char *reason, *message;
    bool content;
  };
  const row table[] = {
      {403, "Forbidden", R"(pods "{name}" is forbidden: exceeded quota: q, requested: pods=1)", true},
      {403, "Forbidden", R"(pods "{name}" is forbidden: violates PodSecurity "restricted:latest")", true},
      {403, "Forbidden", R"(admission webhook "w.example.com" denied the request: no)", true},
      {400, "BadRequest", "no", true},
      {422, "Invalid", R"(Pod "{name}" is invalid: spec.containers[0].image: Required value)", true},
      {403, "Forbidden", R"(pods is forbidden: User "u" cannot create resource "pods" in API group "")", false},
      {403, "Forbidden",
       R"(pods "{name}" is forbidden: unable to create new content in namespace team because it is being terminated)",
       false},
      {403, "", "<html>proxy says no</html>", false},
      {401, "Unauthorized", "Unauthorized", false},
      {404, "NotFound", R"(namespaces "team" not found)", false},
      {429, "TooManyRequests", "too many", false},
      {500, "InternalError", R"(failed calling webhook "w": connection refused)", false},
  };
  for (const auto& [status, reason, message, content] : table) {
    test_pod_server server;
    std::string text = message;
    server.at_post = [&] {
      if (const auto position = text.find("{name}"); position != std::string::npos)
        text.replace(position, 6, server.name);
      return recording_transport::refused(status, reason, text);
    };
    const auto out = server.tried();
    const auto& error = out ? out->refused : std::optional(out.error());
    EXPECT_EQ(out.has_value(), content) << message;
    ASSERT_TRUE(error) << message;
    EXPECT_THAT(error->message, HasSubstr(text));
    EXPECT_THAT(error->message, Not(HasSubstr("kubectl"))) << "it is not there";
  }
}

TEST(test_pod, is_not_asked_for_where_the_server_cannot_be_reached_or_read) {
  for (const bool answers : {false, true}) {
    test_pod_server server;
    server.transport.answer = [&](const kube::request&) -> test_pod_server::answer {
      if (answers) return recording_transport::refused(403, "Forbidden", R"(User "u" cannot get resource "pods")");
      return std::unexpected(lost(kube::errc::connect, "connection refused: is the API server up?"));
    };
    const auto out = server.tried();
    ASSERT_FALSE(out);
    EXPECT_THAT(out.error().message, Not(HasSubstr("kubectl")));
    EXPECT_EQ(server.transport.sent.size(), 1U);
  }
}

TEST(test_pod, is_removed_on_every_signal_that_asks_for_an_end_and_outlives_a_broken_pipe) {
  std::signal(SIGHUP, SIG_DFL);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    test_pod_server server;
    server.at_look = [signal] { std::raise(signal); };
    const auto out = server.tried();
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_TRUE(out->stopped) << signal;
    EXPECT_FALSE(server.there) << signal;
  }
  std::signal(SIGHUP, SIG_IGN);  // nohup
  for (const int signal : {SIGPIPE, SIGHUP}) {
    test_pod_server server;
    server.at_look = [signal] { std::raise(signal); };
    const auto out = server.tried();
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_TRUE(out->finished);
    EXPECT_FALSE(out->stopped) << signal;
    EXPECT_FALSE(server.there) << signal;
  }
  std::signal(SIGHUP, SIG_DFL);
}

TEST(test_pod, a_stop_while_it_is_made_is_no_finding) {
  test_pod_server made;
  made.at_post = [&] {
    std::raise(SIGINT);
    made.there = true;
    return recording_transport::answered(201, made.seen());
  };
  auto out = made.tried();
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->stopped);
  EXPECT_FALSE(made.there);

  test_pod_server refused;
  refused.at_post = [] { return recording_transport::refused(422, "Invalid", "no"); };
  slow_transport slow(refused.transport, [](const kube::request& request) {
    if (request.verb == kube::method::post) std::raise(SIGINT);
  });
  out = refused.tried(slow);
  ASSERT_FALSE(out) << "who stops it learns nothing of the pod";
  EXPECT_EQ(out.error().message, words::english("verify.test_pod.stopped_before"));

  test_pod_server unasked;
  slow_transport early(unasked.transport, [](const kube::request&) { std::raise(SIGINT); });
  out = unasked.tried(early);
  ASSERT_FALSE(out);
  EXPECT_EQ(unasked.name, "") << "it is not even made";
}

}  // namespace
}  // namespace cli
