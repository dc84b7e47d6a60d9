// Many requests at once: the lanes do not wait for each other, and what waits is served in order.

#include <gmock/gmock.h>

#include "test/kube/transport_fixture.hpp"

using namespace kube;
using namespace kube_test;
using namespace std::chrono_literals;
using testing::HasSubstr;

using curl_lanes = transport_fixture;

namespace {

reply slow_or_watch(const seen_request& got) {
  if (got.target.starts_with("/watch")) return reply::stream({"one"}, reply::ending::hang);
  auto response = echo(got);
  response.delay = 10ms;
  return response;
}

}  // namespace

TEST_F(curl_lanes, a_hundred_requests_beside_twenty_streams_keep_the_cap_and_the_lease_answers) {
  connect();
  server->answers(&slow_or_watch);
  int chunks = 0, done = 0;
  asio::cancellation_signal stops[20];
  for (auto& stop : stops)
    asio::co_spawn(loop,
                   api->stream(get("/watch", lane::watch),
                               [&](std::string_view) {
                                 ++chunks;
                                 return true;
                               }),
                   asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr, const result<response>&) {}));
  ASSERT_TRUE(turn(loop, [&] { return chunks == 20; }));
  const int streams_at_once = server->most_at_once();
  for (int i = 0; i < 100; ++i)
    asio::co_spawn(loop, api->send(get("/unary/" + std::to_string(i))),
                   [&](std::exception_ptr, const result<response>& got) {
                     EXPECT_TRUE(got) << got.error().message;
                     ++done;
                   });
  ASSERT_TRUE(turn(loop, [&] { return api->count(lane::unary).waiting == 92; }));
  EXPECT_EQ(api->count(lane::unary).in_flight, 8);
  EXPECT_TRUE(send(get("/lease", lane::lease)));
  EXPECT_LT(done, 100) << "the lease did not wait for the others";
  ASSERT_TRUE(turn(loop, [&] { return done == 100; }));
  EXPECT_LE(server->most_at_once(), streams_at_once + 8 + 1);
  EXPECT_LE(api->count(lane::unary).connections, 8u);
  EXPECT_EQ(api->count(lane::unary).waiting, 0);
  std::vector<std::string> order;
  for (const auto& each : server->seen())
    if (each.target.starts_with("/unary/")) order.push_back(each.target);
  EXPECT_EQ(order.back().substr(0, 8), "/unary/9") << "served in order, as far as eight at a time allow";
  for (auto& stop : stops) stop.emit(asio::cancellation_type::terminal);
  EXPECT_TRUE(turn(loop, [&] { return server->hanging() == 0; }));
}

TEST_F(curl_lanes, a_request_that_waits_too_long_for_its_turn_says_so_and_gives_its_place_up) {
  transport_options options;
  options.unary_in_flight = 1;
  connect(config(), options);
  server->answers([](const seen_request& got) { return got.target == "/first" ? reply::silence() : echo(got); });
  bool first_ended = false;
  auto first = get("/first");
  first.deadline = 400ms;
  asio::co_spawn(loop, api->send(first), [&](std::exception_ptr, const result<response>&) { first_ended = true; });
  auto second = get("/second");
  second.deadline = 100ms;
  const auto got = send(second);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::timeout);
  EXPECT_THAT(got.error().message, HasSubstr("waited 100 ms"));
  EXPECT_FALSE(first_ended);
  EXPECT_TRUE(send(get("/third"))) << "the slot of the first is handed on";
  EXPECT_TRUE(first_ended);
}

TEST_F(curl_lanes, a_cancelled_waiter_does_not_take_a_slot_with_it) {
  transport_options options;
  options.unary_in_flight = 1;
  connect(config(), options);
  server->answers([](const seen_request& got) { return got.target == "/first" ? reply::silence() : echo(got); });
  asio::cancellation_signal stop_first, stop_second;
  int ended = 0;
  const auto count = [&](std::exception_ptr, const result<response>& got) {
    EXPECT_EQ(got.error().code, errc::cancelled);
    ++ended;
  };
  asio::co_spawn(loop, api->send(get("/first")), asio::bind_cancellation_slot(stop_first.slot(), count));
  ASSERT_TRUE(turn(loop, [&] { return server->hanging() == 1; }));
  asio::co_spawn(loop, api->send(get("/second")), asio::bind_cancellation_slot(stop_second.slot(), count));
  ASSERT_TRUE(turn(loop, [&] { return api->count(lane::unary).waiting == 1; }));
  stop_second.emit(asio::cancellation_type::terminal);
  stop_first.emit(asio::cancellation_type::terminal);
  ASSERT_TRUE(turn(loop, [&] { return ended == 2; }));
  EXPECT_TRUE(send(get("/third")));
  EXPECT_EQ(server->seen().back().target, "/third");
}

TEST_F(curl_lanes, F5_the_lease_has_its_own_short_deadline_and_starts_afresh) {
  transport_options options;
  options.lease_deadline = 150ms;
  connect(config(), options);
  ASSERT_TRUE(send(get("/lease", lane::lease)));
  server->answers([](const seen_request&) { return reply::silence(); });
  const auto got = send(get("/lease", lane::lease));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, errc::timeout);
  server->answers(&echo);
  ASSERT_TRUE(send(get("/lease", lane::lease)));
  EXPECT_EQ(server->seen().back().connection, 2);
  EXPECT_EQ(api->count(lane::lease).resets, 1u);
}

TEST_F(curl_lanes, F5_after_a_deadline_the_idle_siblings_of_the_dead_connection_are_not_trusted_either) {
  connect();
  server->answers(&slow_or_watch);
  int done = 0;
  for (int i = 0; i < 2; ++i)
    asio::co_spawn(loop, api->send(get("/pair")), [&](std::exception_ptr, const result<response>&) { ++done; });
  ASSERT_TRUE(turn(loop, [&] { return done == 2; }));
  ASSERT_EQ(server->connections(), 2);
  server->answers([](const seen_request&) { return reply::silence(); });
  auto request = get("/frozen");
  request.deadline = 100ms;
  ASSERT_FALSE(send(request));
  server->answers(&echo);
  ASSERT_TRUE(send(get("/again")));
  EXPECT_EQ(server->seen().back().connection, 3) << "one connection is idle, and as suspect as the one that timed out";
}

TEST_F(curl_lanes, a_reset_lets_what_is_running_go_on) {
  connect();
  server->answers(&slow_or_watch);
  std::optional<result<response>> got;
  asio::co_spawn(loop, api->send(get("/slow")),
                 [&](std::exception_ptr, result<response> value) { got = std::move(value); });
  ASSERT_TRUE(turn(loop, [&] { return server->seen().size() == 1; }));
  api->reset(lane::unary);
  ASSERT_TRUE(turn(loop, [&] { return got.has_value(); }));
  EXPECT_TRUE(*got) << got->error().message;
}

TEST_F(curl_lanes, F12_a_stream_that_drips_is_alive) {
  connect();
  server->answers([&](const seen_request&) {
    auto response = reply::stream({"a", "b", "c", "d", "e", "f"}, reply::ending::keep);
    response.gap = 60ms;  // longer in all than the silence that is allowed, never silent for so long
    return response;
  });
  auto request = get("/w", lane::watch);
  request.silence = 250ms;
  std::string all;
  const auto got = stream(request, [&](std::string_view bytes) {
    all += bytes;
    return true;
  });
  EXPECT_TRUE(got) << got.error().message;
  EXPECT_EQ(all, "abcdef");
}
