#include "kube/object.hpp"

#include <gtest/gtest.h>

namespace {

using kube::uid;

TEST(uid, comes_back_as_the_text_it_was_read_from) {
  const std::string text = "0a1b2c3d-4e5f-4678-9abc-def012345678";
  EXPECT_EQ(uid::parse(text).to_string(), text);
  EXPECT_FALSE(uid::parse(text).empty());
}

TEST(uid, without_text_is_empty) {
  EXPECT_TRUE(uid::parse("").empty());
  EXPECT_EQ(uid::parse(""), uid());
}

TEST(uid, that_is_no_uuid_is_hashed_and_can_be_compared) {
  const auto first = uid::parse("d41d8cd98f00b204e9800998ecf8427e"),
             other = uid::parse("d41d8cd98f00b204e9800998ecf8427f");
  EXPECT_NE(first, other);
  EXPECT_EQ(first, uid::parse("d41d8cd98f00b204e9800998ecf8427e"));
  EXPECT_FALSE(first.empty());
}

TEST(uid, almost_a_uuid_is_not_taken_for_one) {
  for (const auto* text : {"0A1B2C3D-4E5F-4678-9ABC-DEF012345678", "0a1b2c3d_4e5f-4678-9abc-def012345678",
                           "0a1b2c3d-4e5f-4678-9abc-def01234567", "0a1b2c3d-4e5f-4678-9abc-def0123456789"}) {
    EXPECT_NE(uid::parse(text).to_string(), text);
  }
  EXPECT_NE(uid::parse("0a1b2c3d-4e5f-4678-9abc-def01234567g"), uid::parse("0a1b2c3d-4e5f-4678-9abc-def01234567h"));
  EXPECT_NE(uid::parse("0A1B2C3D-4E5F-4678-9ABC-DEF012345678"), uid::parse("0a1b2c3d-4e5f-4678-9abc-def012345678"));
}

}  // namespace
