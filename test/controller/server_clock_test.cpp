// Dates that are cut, late and from clocks that step; time is an argument.

#include "controller/server_clock.hpp"

#include <gtest/gtest.h>

#include "controller/health.hpp"
#include "test/controller/rig.hpp"

namespace {

using namespace std::chrono_literals;
using ms = controller::milliseconds;

constexpr ms start = 1'782'901'230'000ms;  // of the server's clock, when this machine is at 0

/// A server whose clock is `start + step` ahead of the machine, and answers that are `way` old when they come.
struct world {
  controller::server_clock clock;
  ms now = 0ms, step = 0ms;

  void hears(ms way = 0ms) {
    clock.saw(std::chrono::floor<std::chrono::seconds>(start + step + now - way).count(), now);
  }
  /// An answer every `period` for so long.
  void runs(ms time, ms period, ms way = 0ms) {
    for (const ms end = now + time; now < end; now += period) hears(way);
  }
  /// How far the clock is from the server's as it was at the start.
  std::int64_t seconds() const { return clock.now(now).value() - start / 1s; }
};

TEST(server_clock, knows_nothing_before_the_first_date) {
  controller::server_clock clock;
  EXPECT_EQ(clock.now(5s), std::nullopt);
  for (const std::int64_t date : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{253'402'300'800}, INT64_MAX})
    clock.saw(date, 5s);
  EXPECT_EQ(clock.now(5s), std::nullopt) << "no date, or none that an API server writes";
  clock.saw(1, 5s);
  EXPECT_EQ(clock.now(5s), 1);
  EXPECT_EQ(clock.now(6s), 2);
}

TEST(server_clock, finds_the_second_behind_dates_that_are_cut) {
  world world;
  world.now = 900ms;
  world.hears();
  EXPECT_EQ(world.clock.now(1899ms).value() - start / 1s, 0) << "one date may be a second late";
  world.now = 2030ms;  // the server's second has just begun
  world.hears();
  for (world.now = 2100ms; world.now < 40s; world.now += 1s) {
    EXPECT_EQ(world.seconds(), (world.now - 30ms) / 1s) << world.now.count();
    world.hears();
  }
}

TEST(server_clock, takes_the_date_that_was_least_late) {
  world world;
  world.runs(50s, 1s, 3s);
  EXPECT_EQ(world.seconds(), 47);
  world.hears(10ms);
  world.runs(50s, 1s, 7s);
  EXPECT_EQ(world.seconds(), 99) << "of 50 s less 10 ms, cut, and 50 s";
}

TEST(server_clock, runs_on_without_answers) {
  world world;
  world.hears();
  for (const auto pause : {59s, 61s, 601s, 86'400s}) {
    world.now += pause;
    const auto before = world.seconds();
    EXPECT_EQ(before, world.now / 1s);
  }
  world.hears(2s);
  EXPECT_EQ(world.seconds(), world.now / 1s) << "a late answer after a long pause does not take it back";
}

TEST(server_clock, follows_a_step_forward_at_once) {
  world world;
  world.runs(30s, 1s);
  world.step = 90s;
  world.hears();
  EXPECT_EQ(world.seconds(), 120);
  world.now += 10s;
  EXPECT_EQ(world.seconds(), 130);
}

TEST(server_clock, stands_still_after_a_step_back_until_it_is_made_up) {
  world world;
  world.runs(30s, 1s);
  world.step = -100s;
  auto before = world.seconds();
  for (const ms end = 200s; world.now < end; world.now += 500ms) {
    world.hears();
    ASSERT_GE(world.seconds(), before) << world.now.count();
    before = world.seconds();
    if (world.now >= 90s && world.now < 189s) ASSERT_EQ(before, 89) << world.now.count();
  }
  EXPECT_EQ(world.seconds(), 100) << "and then it goes as the server's does";
}

TEST(server_clock, goes_by_the_fastest_of_several_servers_as_long_as_it_is_heard) {
  world world;
  const ms apart[] = {0ms, 2s, 1s};
  auto before = std::int64_t{0};
  for (int i = 0; world.now < 300s; ++i, world.now += 700ms) {
    world.step = apart[i % 3];
    world.hears();
    ASSERT_GE(world.seconds(), before) << world.now.count();
    before = world.seconds();
    if (i > 10) ASSERT_NEAR(static_cast<double>(before), std::chrono::duration<double>(world.now).count() + 1.5, 0.51);
  }
  world.step = 0ms;  // the fast one is gone: two seconds are made up, once
  for (const ms end = world.now + 120s; world.now < end; world.now += 700ms) {
    world.hears();
    ASSERT_GE(world.seconds(), before);
    before = world.seconds();
  }
  EXPECT_EQ(before, (world.now - 700ms) / 1s);
}

using fed = controller_test::rig;

TEST_F(fed, server_clock_hears_the_answers_of_the_api_server_and_no_others) {
  kube_test::scripted_transport api;
  controller::health health(metrics, [] { return ms(0); });
  controller::observed_transport seen(api, health, metrics);
  std::vector<std::int64_t> dates;
  seen.on_date([&](std::int64_t date) { dates.push_back(date); });
  const std::tuple<int, std::int64_t> answers[] = {{200, 1}, {404, 2}, {429, 3}, {503, 4},
                                                   {302, 5}, {200, 0}, {201, 6}};
  for (const auto& [status, date] : answers) {
    kube::response answer;
    answer.status = status;
    answer.date = date;
    api.on(kube::method::get, "/x").answers(answer);
    kube::request request;
    request.target = "/x";
    (void)kube_test::run(loop.context(), seen.send(std::move(request)));
  }
  kube::response head;
  head.status = 200;
  head.date = 7;
  api.on_stream("/w").answers(head);
  kube::request watch;
  watch.target = "/w";
  (void)kube_test::run(loop.context(), seen.stream(std::move(watch), [](std::string_view) { return true; }));
  EXPECT_EQ(dates, (std::vector<std::int64_t>{1, 2, 3, 6})) << "a proxy's 502 or redirect, and a stream's old head";
}

}  // namespace
