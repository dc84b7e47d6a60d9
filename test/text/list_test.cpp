#include "text/list.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace text {
namespace {

using list = std::vector<std::string>;

TEST(list, one_is_singular) {
  EXPECT_EQ(counted(0, "pod"), "0 pods");
  EXPECT_EQ(counted(1, "pod"), "1 pod");
  EXPECT_EQ(counted(12, "pod"), "12 pods");
}

TEST(list, is_joined) {
  EXPECT_EQ(joined(list{}), "");
  EXPECT_EQ(joined(list{"a"}), "a");
  EXPECT_EQ(joined(list{"a", "", "c"}, "; "), "a; ; c");
}

TEST(list, ends_with_how_many_are_left_out) {
  EXPECT_EQ(some_of(list{}), "");
  EXPECT_EQ(some_of(list{"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(some_of(list{"a", "b", "c", "d"}), "a, b, c and 1 more");
  EXPECT_EQ(some_of(list{"a", "b"}, 1), "a and 1 more");
}

}  // namespace
}  // namespace text
