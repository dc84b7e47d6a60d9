#include "reconcilers/plugins/covers.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace reconcilers {
namespace {

bool covered(const char* is, const char* want) {
  return covers(nlohmann::json::parse(is), nlohmann::json::parse(want));
}

TEST(covers, what_others_added_does_not_matter) {
  EXPECT_TRUE(covered(R"({"a":1,"b":{"c":2,"d":3}})", R"({"b":{"c":2}})"));
  EXPECT_TRUE(covered(R"([{"name":"x","v":1},{"name":"sidecar"}])", R"([{"name":"x"}])"));
  EXPECT_TRUE(covered(R"([{"name":"v","mountPath":"/b"},{"name":"v","mountPath":"/a"}])",
                      R"([{"name":"v","mountPath":"/a"}])"));
}

TEST(covers, what_is_missing_or_different_does) {
  EXPECT_FALSE(covered(R"({"a":1})", R"({"a":2})"));
  EXPECT_FALSE(covered(R"({"a":1})", R"({"b":1})"));
  EXPECT_FALSE(covered(R"({"a":null})", R"({"a":{"b":1}})"));
  EXPECT_FALSE(covered("null", R"({"a":1})"));
  EXPECT_FALSE(covered(R"([{"name":"y"}])", R"([{"name":"x"}])"));
  EXPECT_FALSE(covered(R"({"a":"x"})", R"({"a":["x"]})"));
}

TEST(covers, lists_without_a_key_are_compared_whole_and_in_order) {
  EXPECT_TRUE(covered(R"(["a","b"])", R"(["a","b"])"));
  EXPECT_FALSE(covered(R"(["b","a"])", R"(["a","b"])"));
  EXPECT_FALSE(covered(R"(["a","b","c"])", R"(["a","b"])"));
  EXPECT_FALSE(covered(R"([{"key":"a"},{"key":"b"}])", R"([{"key":"a"}])"))
      << "tolerations: a foreign one is ours to remove";
}

TEST(covers, what_the_server_drops_because_it_is_empty_is_not_missed) {
  EXPECT_TRUE(covered(R"({})", R"({"hostPID":false,"args":[],"x":{},"value":""})"));
  EXPECT_FALSE(covered(R"({})", R"({"hostPID":true})"));
}

}  // namespace
}  // namespace reconcilers
