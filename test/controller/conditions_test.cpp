#include "controller/conditions.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/coded_message.hpp"
#include "text/message.hpp"

namespace {

using controller::condition;
using controller::set_condition;
using nlohmann::json;

condition ready(std::string status, std::string message = "all well") {
  return {"Ready", std::move(status), "Settled", std::move(message), 4};
}

TEST(conditions, adds_one_with_its_time) {
  json list;
  EXPECT_TRUE(set_condition(list, ready("True"), "2026-01-01T00:00:00Z"));
  EXPECT_EQ(
      list,
      json::parse(R"([{"type":"Ready","status":"True","reason":"Settled","message":"all well","observedGeneration":4,
                                  "lastTransitionTime":"2026-01-01T00:00:00Z"}])"));
}

TEST(conditions, the_same_again_changes_nothing) {
  json list;
  set_condition(list, ready("True"), "2026-01-01T00:00:00Z");
  const json before = list;
  EXPECT_FALSE(set_condition(list, ready("True"), "2026-01-01T00:05:00Z"));
  EXPECT_EQ(list, before);
}

TEST(conditions, the_time_moves_only_with_the_status) {
  json list;
  set_condition(list, ready("True"), "2026-01-01T00:00:00Z");
  EXPECT_TRUE(set_condition(list, ready("True", "another message"), "2026-01-01T00:05:00Z"));
  EXPECT_EQ(list[0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
  EXPECT_TRUE(set_condition(list, ready("False"), "2026-01-01T00:06:00Z"));
  EXPECT_EQ(list[0]["lastTransitionTime"], "2026-01-01T00:06:00Z");
}

TEST(conditions, leaves_the_others_and_their_order_alone) {
  json list =
      json::parse(R"([{"type":"Other","status":"True","theirs":1},{"type":"Ready","status":"False"},"garbage"])");
  set_condition(list, ready("True"), "2026-01-01T00:00:00Z");
  EXPECT_EQ(list[0], json::parse(R"({"type":"Other","status":"True","theirs":1})"));
  EXPECT_EQ(list[1]["status"], "True");
  EXPECT_EQ(list[2], "garbage");
  EXPECT_TRUE(controller::condition_true(list, "Ready"));
  EXPECT_FALSE(controller::condition_true(list, "Degraded"));
  EXPECT_TRUE(controller::remove_condition(list, "Ready"));
  EXPECT_FALSE(controller::remove_condition(list, "Ready"));
  EXPECT_EQ(list.size(), 2U);
}

TEST(conditions, a_reason_is_never_empty_and_a_message_never_too_long) {
  json list;
  set_condition(list, {"Ready", "Unknown", "", std::string(40'000, 'x'), 0}, "2026-01-01T00:00:00Z");
  EXPECT_EQ(list[0]["reason"], "Unknown");
  EXPECT_EQ(list[0]["message"].get<std::string>().size(), 32'768U);
}

TEST(conditions, carry_the_code_of_their_message_for_other_languages) {
  json list;
  auto halted = ready("False");
  halted.message = {"status.rollout.rest.many", {{"number", "3"}}};
  set_condition(list, halted, "2026-01-01T00:00:00Z");
  EXPECT_EQ(list[0]["message"], words_of(halted.message, text::language::en));
  EXPECT_EQ(list[0]["cause"], "status.rollout.rest.many");
  EXPECT_EQ(list[0]["parameters"], (json{{"number", "3"}}));
  EXPECT_EQ(controller::message_of(list[0]), halted.message);
  EXPECT_FALSE(set_condition(list, halted, "2026-01-01T00:05:00Z"));
  set_condition(list, ready("False"), "2026-01-01T00:05:00Z");
  EXPECT_FALSE(list[0].contains("cause") || list[0].contains("parameters")) << "as of an operator without codes";
}

TEST(conditions, are_read_whatever_a_stranger_wrote_into_them) {
  const auto chinese = [](const char* condition) {
    return words_of(controller::message_of(json::parse(condition)), text::language::zh);
  };
  EXPECT_EQ(chinese(R"({"message":"m","cause":7,"parameters":[1]})"), "m");
  EXPECT_EQ(chinese(R"({"message":"m","cause":"status.rollout.rest.many","parameters":{"number":3}})"), "m");
  EXPECT_EQ(chinese(R"({"message":"m","cause":"status.rollout.rest.many"})"), "m");
  EXPECT_EQ(chinese(R"({"cause":"no.such.code"})"), "");
  EXPECT_EQ(chinese("{}"), "");
}

TEST(same_status, ignores_what_the_server_adds_or_drops) {
  EXPECT_TRUE(controller::same_status(json::parse(R"({"a":1,"empty":[],"none":null})"),
                                      json::parse(R"({"a":1,"other":{},"nothing":null})")));
  EXPECT_TRUE(
      controller::same_status(json::parse(R"({"rows":[{"a":1,"b":{}}]})"), json::parse(R"({"rows":[{"a":1}]})")));
  EXPECT_TRUE(controller::same_status(json(), json::object()));
}

TEST(same_status, sees_every_change_of_what_we_want) {
  const auto differ = [](const char* want, const char* is) {
    return !controller::same_status(json::parse(want), json::parse(is));
  };
  EXPECT_TRUE(differ(R"({"a":1})", R"({"a":2})"));
  EXPECT_TRUE(differ(R"({"a":1})", R"({})"));
  EXPECT_TRUE(differ(R"({"a":[]})", R"({"a":[1]})")) << "wanted empty, is not";
  EXPECT_TRUE(differ(R"({"a":[1,2]})", R"({"a":[2,1]})"));
  EXPECT_TRUE(differ(R"({"a":[1]})", R"({"a":[1,2]})"));
  EXPECT_TRUE(differ(R"({"a":{"b":1}})", R"({"a":"text"})"));
  EXPECT_TRUE(differ(R"({"a":1})", R"({"a":1,"b":2})")) << "it is to be taken away";
  EXPECT_TRUE(differ(R"({"rows":[{"a":1}]})", R"({"rows":[{"a":1,"message":"stale"}]})"));
  EXPECT_TRUE(differ(R"({"a":{}})", R"({"a":{"b":1}})"));
  EXPECT_TRUE(differ(R"({"a":{"b":1}})", R"({"a":{}})"));
  EXPECT_TRUE(differ("null", R"({"b":1})"));
}

}  // namespace
