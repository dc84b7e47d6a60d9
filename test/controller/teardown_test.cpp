#include "controller/teardown.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <set>

#include "controller/sleep.hpp"
#include "reconcilers/extender/membership.hpp"
#include "test/controller/rig.hpp"

namespace {

namespace asio = boost::asio;

/// As a program is: the loop is declared first, so it is destroyed last.
struct program {
  controller::registry metrics;
  controller::loop loop{metrics};
  std::unique_ptr<std::set<int>> in_flight = std::make_unique<std::set<int>>();
  int ended = 0;

  asio::awaitable<void> call(int number) {
    const reconcilers::extender::membership here(*in_flight, number);
    co_await controller::sleep_for(std::chrono::hours(1));
    ++ended;
  }
  /// Waits for another one, which is destroyed too.
  asio::awaitable<void> caller(int number) { co_await call(number); }
};

TEST(teardown, what_waits_is_destroyed_while_the_rest_is_there) {
  program program;
  for (int i = 0; i < 10; ++i) program.loop.spawn("call", i % 2 == 0 ? program.call(i) : program.caller(i));
  program.loop.context().poll();
  ASSERT_EQ(program.in_flight->size(), 10u);
  controller::destroy_waiting(program.loop.context());
  EXPECT_EQ(program.in_flight->size(), 0u);
  EXPECT_EQ(program.ended, 0) << "they do not go on";
}

/// Timers, sockets and callbacks may outlive it, and what comes then is never called.
TEST(teardown, what_is_left_can_be_used_and_does_nothing) {
  program program;
  asio::steady_timer timer(program.loop.context(), std::chrono::hours(1));
  asio::ip::tcp::acceptor acceptor(program.loop.context(), {asio::ip::make_address("127.0.0.1"), 0});
  int called = 0;
  timer.async_wait([&](auto) { ++called; });
  acceptor.async_accept([&](auto, auto) { ++called; });
  program.loop.context().poll();
  controller::destroy_waiting(program.loop.context());
  timer.cancel();
  acceptor.close();
  program.loop.post([&] { ++called; });
  program.loop.spawn("late", program.call(1));
  EXPECT_EQ(called, 0);
  EXPECT_EQ(program.in_flight->size(), 0u);
}

}  // namespace
