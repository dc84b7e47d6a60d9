// Times in text.
#include "kube/rfc3339.hpp"

#include <gtest/gtest.h>

namespace {

using kube::parse_rfc3339;

TEST(rfc3339, is_read_as_seconds_with_or_without_fraction_and_offset) {
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(parse_rfc3339("2024-02-29T00:00:00Z"), 1709164800);
  for (const auto* text : {"2026-07-01T10:20:30Z", "2026-07-01t10:20:30z", "2026-07-01 10:20:30.123456Z",
                           "2026-07-01T12:20:30+02:00", "2026-07-01T04:50:30.5-05:30"})
    EXPECT_EQ(parse_rfc3339(text), 1782901230) << text;
}

TEST(rfc3339, is_read_to_the_microsecond) {
  EXPECT_EQ(kube::parse_rfc3339_micros("1970-01-01T00:00:01Z"), 1'000'000);
  EXPECT_EQ(kube::parse_rfc3339_micros("1970-01-01T00:00:01.5Z"), 1'500'000);
  EXPECT_EQ(kube::parse_rfc3339_micros("1970-01-01T00:00:01.000007999Z"), 1'000'007);
  EXPECT_EQ(kube::parse_rfc3339_micros("1969-12-31T23:59:59.25+00:00"), -750'000);
  EXPECT_FALSE(kube::parse_rfc3339_micros("1970-01-01T00:00:01.5"));
}

TEST(rfc3339, what_is_no_time_is_none) {
  for (const auto* text :
       {"", "x", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-07-01", "20a6-07-01T10:20:30Z",
        "2026-07-01T12:00:00", "2026-07-01T12:00:0", "2026/07/01T12:00:00Z", "2026-07-01T12:61:00Z",
        "2026-07-01T12:00:00.", "2026-07-01T12:00:00+2:00", "2026-07-01T12:00:00+02:0x", "2026-07-01T12:00:00Z "})
    EXPECT_FALSE(parse_rfc3339(text)) << text;
}

}  // namespace
