// The code of the recipe "How to add a preflight row" in docs/architecture.md, as it stands there. CMake takes it out
// of the page.
#include <gtest/gtest.h>

#include "agent/facts/judge.hpp"

namespace agent::facts {
namespace {

#include "row.inc"

TEST(add_row, says_what_is_in_order_what_is_not_and_what_is_not_known) {
  machine_facts node;
  node.kernel = "5.15.0-105-generic";
  EXPECT_EQ(longterm_kernel_judgement(node), (judgement{check_state::ok, "5.15.0-105-generic"}));
  node.kernel = "3.10.0-1160";
  EXPECT_EQ(longterm_kernel_judgement(node),
            (judgement{check_state::warning, "3.10.0-1160", {check_cause::driver_too_old, {{"needed", "4.18"}}}}));
  const explained_cause reason{check_cause::file_absent, {{"path", "/proc"}}};
  node.kernel = std::unexpected(reason);
  EXPECT_EQ(longterm_kernel_judgement(node), (judgement{check_state::unknown, {}, reason}));
}

}  // namespace
}  // namespace agent::facts
