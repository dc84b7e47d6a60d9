#include "kube/json_text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace kube {
namespace {

const auto object =
    nlohmann::json::parse(R"({"name": "a", "count": 3, "metadata": {"labels": {"a/b": "c"}, "list": ["x"]}})");

TEST(json_text, reads_what_is_there) {
  EXPECT_EQ(text_in(object, "name"), "a");
  EXPECT_EQ(number_in(object, "count"), 3);
  EXPECT_EQ(text_at(object, "/metadata/labels/a~1b"), "c");
  EXPECT_EQ(text_at(object, "/metadata/list/0"), "x");
  EXPECT_EQ(text_at(object, nlohmann::json::json_pointer("/metadata/labels") / std::string("a/b")), "c");
}

TEST(json_text, what_is_missing_or_of_another_type_says_nothing) {
  EXPECT_EQ(text_in(object, "count"), "");
  EXPECT_EQ(number_in(object, "name", 7), 7);
  for (const auto* pointer : {"/count", "/metadata", "/metadata/name", "/metadata/list/1", "/name/x"})
    EXPECT_EQ(text_at(object, pointer), "") << pointer;
  for (const auto& other :
       {nlohmann::json(), nlohmann::json(3), nlohmann::json("text"), nlohmann::json::array({"a"})}) {
    EXPECT_EQ(text_in(other, "name"), "") << other;
    EXPECT_EQ(number_in(other, "count"), 0) << other;
    EXPECT_EQ(text_at(other, "/metadata/name"), "") << other;
  }
}

}  // namespace
}  // namespace kube
