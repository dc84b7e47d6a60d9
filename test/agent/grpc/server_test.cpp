#include "agent/grpc/server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>

#include "agent/grpc/client.hpp"
#include "test/facts_in.hpp"

namespace agent::grpc {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

struct echo final : call_handler {
  std::vector<std::shared_ptr<served_call>> held;  ///< of /test/Hold
  int given_up = 0;

  void serve(std::shared_ptr<served_call> call, std::string_view message) override {
    if (call->method() == "/test/Echo") {
      call->send(message);
      call->finish();
    } else if (call->method() == "/test/Hold") {
      call->on_given_up([this] { ++given_up; });
      held.push_back(std::move(call));
    } else {
      call->finish({status_code::unimplemented, "there is no " + call->method()});
    }
  }
};

struct grpc_server : testing::Test {
  std::filesystem::path folder;
  boost::asio::io_context loop;
  echo service;
  std::optional<server> listening;

  grpc_server() {
    auto pattern = (std::filesystem::temp_directory_path() / "grpc.XXXXXX").string();
    folder = mkdtemp(pattern.data());
    listen();
  }
  ~grpc_server() override { std::filesystem::remove_all(folder); }

  std::string socket() const { return folder / "plugin.sock"; }
  void listen(server_options options = {}) {
    options.socket = socket();
    listening.reset();
    listening.emplace(loop.get_executor(), service, options);
    const auto done = listening->listen();
    ASSERT_TRUE(done) << done.error().message;
  }
  /// Runs the loop until the call has ended.
  kube::result<reply> asked(std::string method, std::string message, std::chrono::milliseconds deadline = 20s) {
    std::optional<kube::result<reply>> out;
    boost::asio::co_spawn(loop, call(loop.get_executor(), {socket(), deadline, {}}, std::move(method), message),
                          [&](const std::exception_ptr& thrown, kube::result<reply> answer) {
                            EXPECT_FALSE(thrown);
                            out = std::move(answer);
                          });
    loop.restart();
    while (!out && loop.run_one_for(30s) > 0) {
    }
    return out ? *out : std::unexpected(kube::error{kube::errc::timeout, 0, "the loop has ended", {}});
  }
  void let_go(std::chrono::milliseconds time = 50ms) {
    loop.restart();
    loop.run_for(time);
  }
  /// A client that says only this, and what comes back until the server closes; empty: it does not within the time.
  std::string said(const std::string& bytes, std::chrono::milliseconds time) {
    const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket().copy(&address.sun_path[0], sizeof address.sun_path - 1);
    EXPECT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (!bytes.empty()) EXPECT_GT(send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    std::string out;
    bool is_closed = false;
    for (const auto end = std::chrono::steady_clock::now() + time;
         !is_closed && std::chrono::steady_clock::now() < end;) {
      let_go(5ms);
      char piece[4096];
      const auto size = read(client, &piece[0], sizeof piece);
      if (size > 0) out.append(&piece[0], static_cast<std::size_t>(size));
      is_closed = size == 0 || (size < 0 && errno != EAGAIN);
    }
    close(client);
    return is_closed ? "closed after " + std::to_string(out.size()) : "";
  }
};

TEST_F(grpc_server, answers_calls_of_every_size) {
  for (const std::size_t size : {0, 1, 100, 70'000, 4'000'000}) {
    const auto answer = asked("/test/Echo", std::string(size, 'x'));
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->message, std::string(size, 'x'));
  }
  let_go();
  EXPECT_EQ(listening->connections(), 0U) << "each call had its own";
}

TEST_F(grpc_server, says_what_it_does_not_know) {
  const auto answer = asked("/test/Other", "");
  ASSERT_TRUE(answer);
  EXPECT_EQ(to_string(answer->is), "status 12: there is no /test/Other");
}

TEST_F(grpc_server, knows_when_a_client_gives_up) {
  const auto answer = asked("/test/Hold", "", 50ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, kube::errc::timeout);
  let_go();
  EXPECT_EQ(service.given_up, 1);
  ASSERT_EQ(service.held.size(), 1U);
  EXPECT_FALSE(service.held[0]->is_open());
  service.held[0]->send("late");
  service.held[0]->finish();
}

TEST_F(grpc_server, a_call_may_outlive_the_server) {
  EXPECT_FALSE(asked("/test/Hold", "", 50ms));
  boost::asio::co_spawn(loop, call(loop.get_executor(), {socket(), 10s, {}}, "/test/Hold", ""), [](auto&&...) {});
  let_go();
  ASSERT_EQ(service.held.size(), 2U);
  listening.reset();
  service.held[1]->finish();
  let_go();
}

TEST_F(grpc_server, removes_its_own_socket_only) {
  listening.reset();
  EXPECT_FALSE(std::filesystem::exists(socket()));
  listen();
  std::filesystem::remove(socket());
  std::ofstream(socket()) << "another's";
  listening.reset();
  EXPECT_TRUE(std::filesystem::exists(socket()));
}

TEST_F(grpc_server, listens_again_after_its_file_was_removed) {
  std::filesystem::remove(socket());
  EXPECT_FALSE(asked("/test/Echo", ""));
  ASSERT_TRUE(listening->listen());
  EXPECT_TRUE(asked("/test/Echo", ""));
}

TEST_F(grpc_server, ends_who_is_silent_or_no_client) {
  listen({.socket = {}, .idle = 30ms});
  EXPECT_THAT(said("", 10s), HasSubstr("closed")) << "nothing at all";
  EXPECT_THAT(said("GET / HTTP/1.1\r\nHost: x\r\n\r\n0123456789", 10s), HasSubstr("closed"));
  EXPECT_THAT(said("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 10s), HasSubstr("closed")) << "half a greeting";
  EXPECT_EQ(listening->connections(), 0U);
}

TEST_F(grpc_server, takes_no_more_than_so_many_connections) {
  listen({.socket = {}, .connections = 1});
  boost::asio::co_spawn(loop, call(loop.get_executor(), {socket(), 10s, {}}, "/test/Hold", ""), [](auto&&...) {});
  let_go();
  EXPECT_FALSE(asked("/test/Echo", ""));
  service.held.at(0)->finish();
  let_go();
  EXPECT_TRUE(asked("/test/Echo", ""));
}

TEST_F(grpc_server, says_why_it_cannot_listen) {
  server nowhere(loop.get_executor(), service, {.socket = "/nonexistent/plugin.sock"});
  const auto done = nowhere.listen();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, words::has_in_order({"/nonexistent/plugin.sock: ", "No such file"}));
  server long_name(loop.get_executor(), service, {.socket = "/" + std::string(120, 'x')});
  EXPECT_THAT(long_name.listen().error().message, HasSubstr("too long"));
}

}  // namespace
}  // namespace agent::grpc
