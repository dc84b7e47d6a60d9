// `inspect nodes --watch` into an output that takes nothing: it ends, as every command does.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "test/cli/cluster/served_program.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

TEST(watch_output, that_is_full_ends_it_with_one_line) {
  cli_test::served_program program(&cli_test::empty_cluster);
  testing::internal::CaptureStderr();
  const int kept = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  dup2(full, STDOUT_FILENO);
  const auto begin = std::chrono::steady_clock::now();
  const int rc =
      run_program("quartermaster", {"inspect", "nodes", "--watch", "--kubeconfig", program.path("kubeconfig")});
  const auto took = std::chrono::steady_clock::now() - begin;
  dup2(kept, STDOUT_FILENO);
  close(kept), close(full);
  std::cout.clear();
  clearerr(stdout);
  const auto err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(rc, 1);
  EXPECT_TRUE(err.ends_with("quartermaster: " + words::english("usage.output_lost") + "\n")) << err;
  EXPECT_LT(took, std::chrono::seconds(20));
}

}  // namespace
}  // namespace cli
