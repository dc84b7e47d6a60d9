#include "agent/grpc/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace agent::grpc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::string_view_literals;

/// What a side hears, in order, as text.
struct transcript final : session_listener {
  std::vector<std::string> events;
  std::vector<call_id> open;

  void called(call_id id, std::string_view method, std::string_view message) override {
    events.push_back("called " + std::string(method) + " " + std::string(message));
    open.push_back(id);
  }
  void given_up(call_id) override { events.emplace_back("given up"); }
  void answered(call_id, std::string_view message) override { events.push_back("answered " + std::string(message)); }
  void ended(call_id, const status& status) override { events.push_back("ended " + to_string(status)); }
};

/// A client and a server that hand each other their bytes, in pieces of random size.
struct pair {
  transcript at_server, at_client;
  session server, client{role::client, at_client};
  std::mt19937 random{7};

  explicit pair(session_limits limits = {}) : server(role::server, at_server, limits) {}

  bool hand(session& sender, session& target) {
    const auto bytes = sender.output();
    for (std::size_t i = 0; i < bytes.size();) {
      const auto size = std::min<std::size_t>(bytes.size() - i, 1 + random() % 50'000);
      EXPECT_TRUE(target.receive(std::string_view(bytes).substr(i, size)));
      i += size;
    }
    return !bytes.empty();
  }
  void talk() {
    for (bool goes_on = true; goes_on;) {
      const bool has_asked = hand(client, server), has_answered = hand(server, client);
      goes_on = has_asked || has_answered;
    }
  }
};

TEST(grpc_session, a_call_has_one_answer_and_its_status) {
  pair both;
  both.client.call("/a.B/C", "question");
  both.talk();
  ASSERT_THAT(both.at_server.events, ElementsAre("called /a.B/C question"));
  both.server.send(both.at_server.open[0], "answer");
  both.server.finish(both.at_server.open[0], {});
  both.talk();
  EXPECT_THAT(both.at_client.events, ElementsAre("answered answer", "ended status 0"));
  EXPECT_EQ(both.client.open_calls() + both.server.open_calls(), 0U);
}

TEST(grpc_session, a_refusal_says_any_text_to_the_byte) {
  pair both;
  both.client.call("/a.B/C", "");
  both.talk();
  const std::string text = "no card: 100 % given out,\n见 verify";
  both.server.finish(both.at_server.open[0], {status_code::failed_precondition, text});
  both.talk();
  EXPECT_THAT(both.at_client.events, ElementsAre(HasSubstr("ended status 9: no card: 100 %")));
  EXPECT_THAT(both.at_client.events[0], HasSubstr("见 verify"));
}

TEST(grpc_session, an_answer_is_a_stream_that_goes_on_through_small_windows) {
  pair both;
  both.client.call("/a.B/Watch", "");
  both.talk();
  const std::string large(3 << 20, 'x');
  for (int i = 0; i < 3; ++i) {
    both.server.send(both.at_server.open[0], large + std::to_string(i));
    both.talk();
    ASSERT_EQ(both.at_client.events.size(), static_cast<std::size_t>(i + 1));
    EXPECT_TRUE(both.at_client.events.back().ends_with("x" + std::to_string(i)));
  }
  both.client.cancel(1);
  both.talk();
  EXPECT_EQ(both.at_server.events.back(), "given up");
  both.server.send(both.at_server.open[0], "late");
  both.talk();
  EXPECT_EQ(both.at_client.events.size(), 4U) << "the end of what it cancelled";
}

TEST(grpc_session, many_calls_at_once_have_each_their_own_answer) {
  pair both;
  for (int i = 0; i < 64; ++i) both.client.call("/a.B/C", std::to_string(i));
  both.talk();
  ASSERT_EQ(both.at_server.open.size(), 64U);
  std::ranges::shuffle(both.at_server.open, both.random);
  for (const auto id : both.at_server.open) {
    both.server.send(id, std::to_string(id));
    both.server.finish(id, {});
  }
  both.talk();
  EXPECT_EQ(std::ranges::count(both.at_client.events, "ended status 0"), 64);
  EXPECT_EQ(both.server.open_calls(), 0U);
}

TEST(grpc_session, what_is_too_large_is_refused_and_nothing_of_it_kept) {
  pair both(session_limits{.message = 1'000, .unsent = 2'000});
  both.client.call("/a.B/C", std::string(1'001, 'x'));
  both.talk();
  EXPECT_THAT(both.at_server.events, IsEmpty());
  EXPECT_THAT(both.at_client.events, ElementsAre(HasSubstr("ENHANCE_YOUR_CALM")));
  both.client.call("/a.B/C", std::string(1'000, 'x'));
  both.talk();
  ASSERT_EQ(both.at_server.open.size(), 1U);
  for (int i = 0; i < 3; ++i) both.server.send(both.at_server.open[0], std::string(900, 'y'));
  both.talk();
  EXPECT_EQ(both.at_server.events.back(), "given up") << "a client that takes nothing costs no more than that";
  both.client.call("/" + std::string(20'000, 'm'), "");
  both.talk();
  EXPECT_EQ(both.at_server.open.size(), 1U) << "headers without end";
}

TEST(grpc_session, an_end_lets_open_calls_end) {
  pair both;
  both.client.call("/a.B/C", "");
  both.talk();
  both.server.end();
  both.talk();
  both.client.call("/a.B/C", "");
  both.talk();
  EXPECT_THAT(both.at_client.events, ElementsAre(HasSubstr("REFUSED_STREAM"))) << "no new one";
  EXPECT_EQ(both.at_server.open.size(), 1U);
  EXPECT_FALSE(both.server.over());
  both.server.send(both.at_server.open[0], "late");
  both.server.finish(both.at_server.open[0], {});
  both.talk();
  EXPECT_THAT(both.at_client.events, ElementsAre(testing::_, "answered late", "ended status 0"));
  EXPECT_TRUE(both.server.over());
}

TEST(grpc_session, a_connection_that_is_lost_ends_every_call) {
  pair both;
  both.client.call("/a.B/C", "");
  both.talk();
  both.client.lost("the server has gone");
  both.server.lost("");
  EXPECT_THAT(both.at_client.events, ElementsAre(testing::StartsWith("ended status 14: ")));
  EXPECT_EQ(both.at_server.events.back(), "given up");
}

constexpr auto preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0"sv;

std::string frame(char type, char flags, char stream, std::string_view content) {
  std::string out{0, 0, static_cast<char>(content.size()), type, flags, 0, 0, 0, stream};
  return out.append(content);
}
std::string header(std::string_view name, std::string_view value) {
  std::string out(1, '\0');
  for (const auto text : {name, value}) (out += static_cast<char>(text.size())).append(text);
  return out;
}
std::string call_headers(std::string_view method, std::string_view content_type) {
  return header(":method", method) + header(":scheme", "http") + header(":path", "/a.B/C") + header(":authority", "x") +
         header("content-type", content_type);
}

TEST(grpc_session, what_is_no_call_is_refused) {
  struct row {
    std::string headers;
    std::string_view body;
    std::string answer;
  };
  const row rows[] = {
      {call_headers("POST", "application/grpc+proto"), "\0\0\0\0\3abc"sv, "called"},
      {call_headers("POST", "application/grpc"), "\0\0\0\0\0"sv, "called"},
      {call_headers("POST", "application/grpc"), "\0\0\0\0\3ab"sv, ""},
      {call_headers("POST", "application/grpc"), ""sv, ""},
      {call_headers("POST", "application/grpc"), "\0\0\0\0\3abcd"sv, ""},
      {call_headers("POST", "application/grpc"), "\1\0\0\0\3abc"sv, ""},
      {call_headers("POST", "application/grpc"), "\0\xff\xff\xff\xff"sv, ""},
      {call_headers("POST", "application/json"), "\0\0\0\0\3abc"sv, ""},
      {call_headers("GET", "application/grpc"), "\0\0\0\0\3abc"sv, ""},
  };
  for (const auto& row : rows) {
    transcript heard;
    session server(role::server, heard);
    EXPECT_TRUE(server.receive(preface));
    EXPECT_TRUE(server.receive(frame(1, 4, 1, row.headers) + frame(0, 1, 1, row.body)));
    const std::string answer = heard.events.empty() ? "" : heard.events[0].substr(0, 6);
    EXPECT_EQ(answer, row.answer) << row.body.size();
    EXPECT_FALSE(server.output().empty());
  }
}

TEST(grpc_session, what_is_no_http_2_is_an_error) {
  for (const auto bytes : {"GET / HTTP/1.1\r\n\r\n0123456789"sv, "\x16\x03\x01\x02\0\1\0\1\xfc\3\3xxxxxxxxxxxxxx"sv}) {
    transcript heard;
    session server(role::server, heard);
    EXPECT_FALSE(server.receive(bytes));
  }
}

TEST(grpc_session, floods_end_the_connection) {
  const auto is_over = [](const std::string& piece, int most) {
    transcript heard;
    session server(role::server, heard);
    if (!server.receive(preface)) return true;
    for (int i = 0; i < most; ++i) {
      if (!server.receive(piece)) return true;
      if (server.over()) return true;
    }
    server.output();  // what it says last
    return server.over();
  };
  EXPECT_TRUE(is_over(frame(6, 0, 0, "12345678"), 3'000)) << "pings whose answers no one reads";
  EXPECT_TRUE(is_over(frame(4, 0, 0, ""), 3'000)) << "settings whose answers no one reads";
  EXPECT_TRUE(is_over(frame(9, 0, 1, std::string(100, 'x')), 1)) << "a continuation of nothing";
}

}  // namespace
}  // namespace agent::grpc
