// One request at a time against a real TLS server: what is sent, what comes back, and what each failure is called.

#include "kube/curl_transport.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

#include "test/facts_in.hpp"
#include "test/kube/transport_fixture.hpp"

using namespace kube;
using namespace kube_test;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

using curl_transport_on_tls = transport_fixture;

namespace {

std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

request write(method verb, std::string target, std::string body) {
  request made;
  made.verb = verb;
  made.target = std::move(target);
  made.content_type = "application/json";
  made.body = std::move(body);
  return made;
}

}  // namespace

TEST_F(curl_transport_on_tls, sends_each_verb_with_its_body_and_headers) {
  connect();
  EXPECT_EQ(send(get("/api/v1/pods?limit=1"))->body, "hello");
  EXPECT_EQ(send(write(method::post, "/a", "one"))->body, "one");
  EXPECT_EQ(send(write(method::put, "/a", "two"))->body, "two");
  EXPECT_EQ(send(write(method::patch, "/a", "three"))->body, "three");
  EXPECT_EQ(send(write(method::del, "/a", "four"))->body, "four");
  EXPECT_EQ(send(write(method::del, "/a", ""))->body, "hello");
  std::vector<std::string> verbs;
  for (const auto& each : server->seen()) verbs.push_back(each.verb);
  EXPECT_THAT(verbs, testing::ElementsAre("GET", "POST", "PUT", "PATCH", "DELETE", "DELETE"));
  auto first = server->seen()[0].headers, second = server->seen()[1].headers;
  EXPECT_EQ(server->seen()[0].target, "/api/v1/pods?limit=1");
  EXPECT_EQ(first["authorization"], "Bearer s3cret");
  EXPECT_EQ(first["accept"], "application/json");
  EXPECT_EQ(first["accept-encoding"], "identity");
  EXPECT_THAT(first["user-agent"], HasSubstr("quartermaster/"));
  EXPECT_EQ(second["content-type"], "application/json");
  EXPECT_FALSE(second.contains("expect"));
  EXPECT_EQ(server->connections(), 1) << "the connection is used again";
}

TEST_F(curl_transport_on_tls, reads_status_retry_after_and_warnings_as_values) {
  connect();
  server->answers([](const seen_request&) {
    auto response = reply::of(429, "busy");
    response.headers = {"Retry-After: 7", "Warning: 299 - \"unknown field \\\"spec.x\\\"\"",
                        "warning: 299 - \"second\"", "Content-Type: application/json"};
    return response;
  });
  const auto got = send(get("/x"));
  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 429);
  EXPECT_EQ(got->body, "busy");
  EXPECT_EQ(got->content_type, "application/json");
  EXPECT_EQ(got->retry_after, 7s);
  EXPECT_THAT(got->warnings, testing::ElementsAre("unknown field \"spec.x\"", "second"));
}

TEST_F(curl_transport_on_tls, reads_the_date_of_an_answer_and_of_a_stream) {
  connect();
  const std::pair<std::string, std::int64_t> cases[] = {{"Date: Wed, 01 Jul 2026 10:20:30 GMT", 1782901230},
                                                        {"date:Thu, 31 Dec 2026 23:59:59 GMT", 1798761599},
                                                        {"Date: yesterday", 0},
                                                        {"Date:", 0},
                                                        {"Date: Wed, 31 Dec 1969 23:59:50 GMT", 0},
                                                        {"X-Date: Wed, 01 Jul 2026 10:20:30 GMT", 0}};
  for (const auto& [line, date] : cases) {
    for (const bool streams : {false, true}) {
      server->answers([&](const seen_request&) {
        auto response = streams ? reply::stream({"one"}, reply::ending::keep) : reply::of(200, "one");
        response.headers = {line};
        return response;
      });
      const auto got =
          streams ? stream(get("/w", lane::watch), [](std::string_view) { return true; }) : send(get("/x"));
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ(got->date, date) << line;
    }
  }
}

TEST_F(curl_transport_on_tls, carries_a_mebibyte_both_ways) {
  connect();
  std::string big(1 << 20, 'x');
  for (std::size_t i = 0; i < big.size(); i += 100) big[i] = static_cast<char>(i);
  const auto got = send(write(method::put, "/big", big));
  ASSERT_TRUE(got);
  EXPECT_TRUE(got->body == big);
  EXPECT_EQ(api->count(lane::unary).bytes_in, big.size());
  EXPECT_EQ(api->count(lane::unary).bytes_out, big.size());
}

TEST_F(curl_transport_on_tls, an_answer_over_the_limit_is_refused) {
  transport_options options;
  options.body_limit = 1000;
  connect(config(), options);
  server->answers([](const seen_request&) { return reply::of(200, std::string(5000, 'x')); });
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::decode);
  EXPECT_THAT(got.error().message, HasSubstr("larger than"));
}

/// Lists without end, and a small answer between them.
struct lists_without_end : curl_transport_on_tls {
  static constexpr std::size_t most = 4u << 20;
  std::size_t peak = 0;
  std::vector<kube::result<kube::response>> lists;

  lists_without_end() {
    transport_options options;
    options.bodies_limit = most;
    connect(config(), options);
    server->answers([](const seen_request& got) {
      if (got.target == "/small") return reply::of(200, "small");
      const std::vector<std::string> parts(2 * most / 10'000, std::string(10'000, 'x'));
      return reply::stream(parts, got.target == "/hangs" ? reply::ending::hang : reply::ending::keep);
    });
  }
  void begin(const std::string& target) {
    boost::asio::co_spawn(loop, api->send(get(target, lane::watch)),
                          [this](std::exception_ptr, kube::result<kube::response> got) { lists.push_back(got); });
  }
  bool turn_until(std::function<bool()> condition) {
    return turn(loop, [&] {
      peak = std::max(peak, api->receiving());
      return condition();
    });
  }
};

TEST_F(lists_without_end, take_no_more_than_a_known_amount_together) {
  for (int i = 0; i < 22; ++i) begin("/list");
  ASSERT_TRUE(turn_until([&] { return lists.size() == 22; }));
  EXPECT_LE(peak, most);
  EXPECT_GE(peak, most / 2) << "otherwise this shows nothing";
  int large = 0;
  for (const auto& got : lists) {
    ASSERT_FALSE(got);
    EXPECT_THAT(got.error().message, words::has_in_order({"/list: ", "4 MiB", ";"}));
    const bool is_large = got.error().code == errc::decode;
    large += is_large ? 1 : 0;
    EXPECT_THAT(got.error().message, HasSubstr(is_large ? "smaller pages" : "asked for again"));
    if (!is_large) EXPECT_EQ(got.error().code, errc::too_many_requests);
  }
  EXPECT_GE(large, 1) << "the last one had the room of all";
  EXPECT_EQ(api->receiving(), 0u);
}

TEST_F(lists_without_end, leave_memory_for_a_small_answer_and_give_it_back) {
  begin("/list");
  ASSERT_TRUE(turn_until([&] { return lists.size() == 1; }));
  EXPECT_EQ(lists[0].error().code, errc::decode) << "the page has to become smaller";
  EXPECT_EQ(api->receiving(), 0u);
  const auto small = send(get("/small"));
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(small->body, "small");
  EXPECT_EQ(api->receiving(), 0u);
}

TEST_F(curl_transport_on_tls, a_length_that_is_only_said_takes_no_memory_beyond_the_bound) {
  transport_options options;
  options.bodies_limit = 1u << 20;
  connect(config(), options);
  server->answers([](const seen_request&) { return reply::of(200, std::string(3u << 20, 'x')); });
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("all answers together may take 1 MiB"));
  EXPECT_EQ(api->receiving(), 0u);
}

TEST_F(curl_transport_on_tls, hands_a_stream_over_as_it_arrives_and_ends_with_the_server) {
  connect();
  server->answers([](const seen_request&) {
    return reply::stream({"one", std::string(100'000, 'x'), "three"}, reply::ending::keep);
  });
  std::string all;
  const auto got = stream(get("/w?watch=true", lane::watch), [&](std::string_view bytes) {
    all += bytes;
    return true;
  });
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->status, 200);
  EXPECT_TRUE(got->body.empty());
  EXPECT_TRUE(all == "one" + std::string(100'000, 'x') + "three");
}

TEST_F(curl_transport_on_tls, says_when_a_stream_is_open_although_it_has_sent_nothing) {
  connect();
  server->answers([](const seen_request& got) {
    if (got.target == "/refused") return reply::of(410, "gone");
    auto response = reply::stream({"one"}, reply::ending::keep);
    response.gap = 200ms;
    return response;
  });
  using clock = std::chrono::steady_clock;
  std::optional<clock::time_point> opened, first;
  auto request = get("/w", lane::watch);
  request.opened = [&] { opened = clock::now(); };
  ASSERT_TRUE(stream(request, [&](std::string_view) {
    first = clock::now();
    return true;
  }));
  ASSERT_TRUE(opened && first);
  EXPECT_GT(*first - *opened, 100ms);
  opened.reset();
  request.target = "/refused";
  EXPECT_EQ(stream(request, [](std::string_view) { return true; })->status, 410);
  EXPECT_FALSE(opened);
}

TEST_F(curl_transport_on_tls, a_stream_that_is_refused_has_a_body_and_never_calls_the_sink) {
  connect();
  server->answers([](const seen_request&) { return reply::of(410, std::string(2 << 20, 'g')); });
  bool called = false;
  const auto got = stream(get("/w", lane::watch), [&](std::string_view) { return called = true; });
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->status, 410);
  EXPECT_EQ(got->body.size(), 1u << 20);
  EXPECT_FALSE(called);
}

TEST_F(curl_transport_on_tls, F4_a_stream_cut_in_the_middle_is_a_connect_error) {
  connect();
  server->answers([](const seen_request&) { return reply::stream({"one"}, reply::ending::cut); });
  std::string all;
  const auto got = stream(get("/w", lane::watch), [&](std::string_view bytes) {
    all += bytes;
    return true;
  });
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::connect);
  EXPECT_EQ(all, "one");
  EXPECT_EQ(api->count(lane::watch).failures, 1u);
}

TEST_F(curl_transport_on_tls, F4_a_killed_server_is_told_from_one_that_is_down) {
  connect();
  server->answers([](const seen_request&) { return reply::stream({"one"}, reply::ending::hang); });
  const auto got = stream(get("/w", lane::watch), [&](std::string_view) {
    asio::post(loop, [this] { server->stop(); });
    return true;
  });
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::connect);
  const auto refused = send(get("/api"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::connect);
  EXPECT_THAT(refused.error().message, HasSubstr("GET /api: connect 127.0.0.1:"));
  EXPECT_THAT(refused.error().message, HasSubstr("connection refused"));
  EXPECT_THAT(refused.error().message, HasSubstr("/etc/kubeconfig"));
}

TEST_F(curl_transport_on_tls, a_host_nobody_knows_is_named_with_the_file_it_comes_from) {
  auto settings = config();
  settings.server = "https://no-such-host.invalid:6443";
  connect(settings);
  const auto got = send(get("/api"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::connect);
  EXPECT_THAT(got.error().message,
              words::has_in_order({"GET /api: ", "no-such-host.invalid:6443", "DNS", "/etc/kubeconfig"}));
}

TEST_F(curl_transport_on_tls, a_sink_may_end_its_stream) {
  connect();
  server->answers([](const seen_request&) { return reply::stream({"one", "two"}, reply::ending::hang); });
  const auto got = stream(get("/w", lane::watch), [](std::string_view) { return false; });
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::cancelled);
  EXPECT_TRUE(turn(loop, [&] { return server->hanging() == 0; })) << "the connection must be closed";
}

TEST_F(curl_transport_on_tls, what_a_sink_throws_reaches_the_caller) {
  connect();
  server->answers([](const seen_request&) { return reply::stream({"one"}, reply::ending::hang); });
  EXPECT_THROW((void)stream(get("/w", lane::watch), [](std::string_view) -> bool { throw std::logic_error("bug"); }),
               std::logic_error);
}

TEST_F(curl_transport_on_tls, F13_silence_ends_a_stream_and_the_next_one_has_a_new_connection) {
  connect();
  server->answers([](const seen_request&) { return reply::stream({"one"}, reply::ending::hang); });
  auto request = get("/w", lane::watch);
  request.silence = 150ms;
  std::string all;
  const auto sink = [&](std::string_view bytes) {
    all += bytes;
    return true;
  };
  const auto started = std::chrono::steady_clock::now();
  const auto got = stream(request, sink);
  EXPECT_GE(std::chrono::steady_clock::now() - started, 150ms);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::timeout);
  EXPECT_THAT(got.error().message, HasSubstr("no byte for 150 ms"));
  server->answers([](const seen_request&) { return reply::stream({"two"}, reply::ending::keep); });
  ASSERT_TRUE(stream(request, sink));
  EXPECT_EQ(all, "onetwo");
  ASSERT_EQ(server->seen().size(), 2u);
  EXPECT_EQ(server->seen()[0].connection, 1);
  EXPECT_EQ(server->seen()[1].connection, 2);
}

TEST_F(curl_transport_on_tls,
       F5_a_server_that_never_answers_costs_the_deadline_and_the_next_request_has_a_new_connection) {
  connect();
  ASSERT_TRUE(send(get("/warm")));
  server->answers([](const seen_request&) { return reply::silence(); });
  auto request = get("/frozen");
  request.deadline = 150ms;
  const auto got = send(request);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::timeout);
  EXPECT_THAT(got.error().message, HasSubstr("no whole answer within 150 ms"));
  server->answers(&echo);
  ASSERT_TRUE(send(get("/again")));
  EXPECT_EQ(server->seen()[1].connection, 1);
  EXPECT_EQ(server->seen()[2].connection, 2);
}

TEST_F(curl_transport_on_tls, F5_a_server_that_does_not_even_shake_hands_is_a_timeout) {
  transport_options options;
  options.connect_limit = 150ms;
  connect(config(), options);
  server->freeze();
  const auto got = send(get("/x"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::timeout);
  EXPECT_THAT(got.error().message, HasSubstr("no answer within 150 ms"));
}

TEST_F(curl_transport_on_tls, F28_what_is_no_longer_allowed_when_the_connection_is_there_is_not_sent) {
  connect();
  int checks = 0;
  auto request = get("/x");
  request.allowed = [&] { return ++checks == 1; };
  EXPECT_TRUE(send(request));
  for (int i = 0; i < 2; ++i) {  // on a kept connection, and on a new one
    const auto refused = send(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::cancelled);
    api->reset(lane::unary);
  }
  EXPECT_EQ(checks, 3);
  EXPECT_EQ(server->seen().size(), 1u);
}

TEST_F(curl_transport_on_tls, a_connection_the_server_closed_while_idle_is_not_an_error) {
  connect();
  ASSERT_TRUE(send(get("/x")));
  const auto port = server->port();
  server.reset();
  server = std::make_unique<test_server>(loop, ca.issue(), &echo, port);
  const auto got = send(get("/y"));
  EXPECT_TRUE(got) << got.error().message;
}

TEST_F(curl_transport_on_tls, cancelling_takes_the_request_out_and_closes_its_connection) {
  connect();
  server->answers([](const seen_request&) { return reply::stream({"one"}, reply::ending::hang); });
  asio::cancellation_signal stop;
  std::optional<result<response>> got;
  asio::co_spawn(loop,
                 api->stream(get("/w", lane::watch),
                             [&](std::string_view) {
                               asio::post(loop, [&] { stop.emit(asio::cancellation_type::terminal); });
                               return true;
                             }),
                 asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr thrown, result<response> value) {
                   EXPECT_FALSE(thrown);
                   got = std::move(value);
                 }));
  ASSERT_TRUE(turn(loop, [&] { return got.has_value(); }));
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().code, errc::cancelled);
  EXPECT_TRUE(turn(loop, [&] { return server->hanging() == 0; }));
  EXPECT_EQ(api->count(lane::watch).in_flight, 0);
}

TEST_F(curl_transport_on_tls, coroutines_inside_may_outlive_the_transport_and_be_destroyed_with_the_loop) {
  server->answers([](const seen_request&) { return reply::stream({"one"}, reply::ending::hang); });
  connect();
  bool ended = false;
  asio::co_spawn(loop, api->stream(get("/w", lane::watch), [](std::string_view) { return true; }),
                 [&](std::exception_ptr, const result<response>&) { ended = true; });
  ASSERT_TRUE(turn(loop, [&] { return server->hanging() == 1; }));
  api.reset();
  EXPECT_FALSE(ended);
}

TEST_F(curl_transport_on_tls, a_sink_may_start_requests) {
  connect();
  server->answers([](const seen_request& got) {
    return got.target == "/w" ? reply::stream({"one"}, reply::ending::keep) : echo(got);
  });
  std::optional<result<response>> inner;
  const auto got = stream(get("/w", lane::watch), [&](std::string_view) {
    asio::co_spawn(loop, api->send(get("/inner", lane::watch)),
                   [&](std::exception_ptr, result<response> value) { inner = std::move(value); });
    return true;
  });
  EXPECT_TRUE(got);
  ASSERT_TRUE(turn(loop, [&] { return inner.has_value(); }));
  EXPECT_TRUE(*inner) << inner->error().message;
}

TEST_F(curl_transport_on_tls, leaks_no_descriptor_in_a_thousand_requests) {
  connect();
  ASSERT_TRUE(send(get("/warm")));
  const auto before = open_files();
  for (int i = 0; i < 1000; ++i) {
    if (i % 100 == 99) api->reset(lane::unary);
    ASSERT_TRUE(send(get("/x")));
  }
  EXPECT_TRUE(turn(loop, [&] { return open_files() <= before; })) << open_files() << " open, before " << before;
  EXPECT_EQ(api->count(lane::unary).requests, 1001u);
  EXPECT_EQ(server->connections(), 11);
}

TEST_F(curl_transport_on_tls, a_path_in_the_server_comes_before_every_target) {
  auto settings = config();
  settings.server += "/k8s/clusters/c-1";
  connect(settings);
  ASSERT_TRUE(send(get("/api")));
  EXPECT_EQ(server->seen()[0].target, "/k8s/clusters/c-1/api");
}

TEST_F(curl_transport_on_tls, impersonates) {
  auto settings = config();
  settings.user.as_user = "jane";
  settings.user.as_groups = {"dev"};
  settings.user.as_extra = {{"scopes", {"view"}}};
  connect(settings);
  ASSERT_TRUE(send(get("/api")));
  auto headers = server->seen()[0].headers;
  EXPECT_EQ(headers["impersonate-user"], "jane");
  EXPECT_EQ(headers["impersonate-group"], "dev");
  EXPECT_EQ(headers["impersonate-extra-scopes"], "view");
}
