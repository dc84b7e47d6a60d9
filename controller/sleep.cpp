#include "controller/sleep.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <random>

namespace controller {

namespace asio = boost::asio;

asio::awaitable<bool> sleep_for(milliseconds how_long) {
  asio::steady_timer timer(co_await asio::this_coro::executor, how_long);
  const auto [failed] = co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return !failed;
}

asio::awaitable<void> yield_to_others() {
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
}

double random_jitter() {
  static thread_local std::minstd_rand engine{std::random_device{}()};
  return std::uniform_real_distribution<double>(0, 1)(engine);
}

}  // namespace controller
