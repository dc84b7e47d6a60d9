#include "kube/program.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>

namespace kube {
namespace {

using namespace std::chrono_literals;

struct program_run : testing::Test {
  std::optional<result<program_end>> end;
  std::size_t steps = 0;  ///< how often the loop had something to do

  void run_shell(std::string script, std::chrono::milliseconds limit) {
    boost::asio::io_context loop;
    boost::asio::co_spawn(loop, run({.command = {"sh", "-c", std::move(script)}}, limit),
                          [this](const std::exception_ptr&, result<program_end> answer) { end = std::move(answer); });
    steps = loop.run();
  }
};

/// Looking again and again would see the end late, by up to 50 ms.
TEST_F(program_run, sees_the_end_of_a_program_without_looking_for_it) {
  run_shell("sleep 0.6; echo done; exit 3", 30s);
  ASSERT_TRUE(end && *end);
  EXPECT_EQ((*end)->output, "done\n");
  EXPECT_EQ(end_in_words((*end)->status), "failed with exit code 3");
  EXPECT_LT(steps, 8U);
}

TEST_F(program_run, kills_it_once_its_time_is_over) {
  const auto begin = std::chrono::steady_clock::now();
  run_shell("sleep 60", 50ms);
  ASSERT_TRUE(end && !*end);
  EXPECT_EQ(end->error().code, errc::timeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
}

}  // namespace
}  // namespace kube
