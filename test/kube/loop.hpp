#pragma once
// Runs one coroutine of the client to its end on a loop of the test, with a limit so that a hang is a failure and not a
// stuck test.

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <optional>
#include <stdexcept>

#include "kube/task.hpp"

namespace kube_test {

template <class T>
T run(boost::asio::io_context& loop, boost::asio::awaitable<T> coroutine,
      std::chrono::seconds limit = std::chrono::seconds(30)) {
  std::optional<T> got;
  std::exception_ptr thrown;
  boost::asio::co_spawn(loop, std::move(coroutine), [&](std::exception_ptr failed, T value) {
    thrown = failed;
    got.emplace(std::move(value));
  });
  const auto end = std::chrono::steady_clock::now() + limit;
  loop.restart();
  while (!got && !thrown && std::chrono::steady_clock::now() < end) loop.run_one_until(end);
  if (thrown) std::rethrow_exception(thrown);
  if (!got) throw std::runtime_error("the coroutine did not end in time");
  return std::move(*got);
}

/// Lets the loop turn until `until()` holds; false when it never does.
template <class Condition>
bool turn(boost::asio::io_context& loop, Condition until, std::chrono::seconds limit = std::chrono::seconds(20)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  loop.restart();
  while (!until() && std::chrono::steady_clock::now() < end) loop.run_one_for(std::chrono::milliseconds(20));
  return until();
}

}  // namespace kube_test
