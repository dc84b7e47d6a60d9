#include "controller/clock.hpp"

#include <gtest/gtest.h>

namespace {

TEST(clock, writes_times_as_kubernetes_reads_them) {
  const controller::wall_time time{std::chrono::seconds(1767225600) + std::chrono::microseconds(1234)};
  EXPECT_EQ(controller::rfc3339_seconds(time), "2026-01-01T00:00:00Z");
  EXPECT_EQ(controller::rfc3339_millis(time), "2026-01-01T00:00:00.001Z");
  EXPECT_EQ(controller::rfc3339_micros(time), "2026-01-01T00:00:00.001234Z");
  EXPECT_EQ(controller::rfc3339_micros(controller::wall_time(std::chrono::seconds(0))), "1970-01-01T00:00:00.000000Z");
}

}  // namespace
