#include "agent/facts/status.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>

#include "agent/facts/reporter.hpp"
#include "controller/coded_message.hpp"
#include "test/words.hpp"

namespace agent::facts {
namespace {

const std::vector<row> rows{{"driver", check_state::ok, "550.90.07", ""},
                            {"cdi", check_state::failed, "old", "renew it"},
                            {"persistence", check_state::warning, "off", "switch it on"},
                            {"cgroup", check_state::unknown, "not mounted", ""},
                            api::row_of(check::rdma_affinity, check_state::warning, "0000:3d:00.0 SYS mlx5_0",
                                        {check_cause::adapters_far, {{"cards", "0000:3d:00.0"}}})};

api::reported_node written(const nlohmann::json& status) {
  const nlohmann::json object = {{"apiVersion", "quartermaster.io/v1alpha1"},
                                 {"kind", "AcceleratorNode"},
                                 {"metadata", {{"name", "gpu-1"}, {"uid", "u"}, {"resourceVersion", "7"}}},
                                 {"status", status}};
  auto out = api::reported_node::decode(object.dump());
  EXPECT_TRUE(out);
  return *out;
}

TEST(preflight_status, sums_up_in_a_condition_and_is_read_back_as_it_was_written) {
  const auto status = status_of(rows, {}, {}, "2026-07-01T00:00:00Z");
  const auto& condition = status["conditions"][0];
  EXPECT_EQ(condition["type"], "PreflightPassed");
  EXPECT_EQ(condition["status"], "False");
  EXPECT_EQ(condition["reason"], "CheckFailed");
  EXPECT_EQ(words::line_of(controller::message_of(condition)),
            "list.semicolons{first=status.checks.failed{list=cdi (old)},rest=list.semicolons{first="
            "status.checks.warnings{list=persistence (off), rdma_affinity (0000:3d:00.0 SYS mlx5_0)},rest="
            "list.semicolons{first=status.checks.unknown{list=cgroup},rest=status.checks.remedy}}}");
  EXPECT_EQ(status["preflight"][4]["cause"], "adapters_far");
  EXPECT_EQ(status["preflight"][4]["parameters"], (nlohmann::json{{"cards", "0000:3d:00.0"}}));
  EXPECT_FALSE(status["preflight"][0].contains("cause")) << "a version needs no words";
  const auto node = written(status);
  EXPECT_EQ(node.report.checks, rows);
  EXPECT_TRUE(says(node, rows, {}));
  auto others = rows;
  others[3].found = "another reason";
  EXPECT_FALSE(says(node, others, {}));
  others = {rows[0]};
  EXPECT_FALSE(says(node, others, {}));
  others = rows;
  others[4].cause.clear();
  EXPECT_FALSE(says(node, others, {})) << "what an agent without causes wrote is written again";
}

TEST(preflight_status, a_condition_keeps_its_time_while_it_stays_the_same) {
  const auto node = written(status_of(rows, {}, {}, "2026-07-01T00:00:00Z"));
  EXPECT_EQ(status_of(rows, {}, node, "2026-07-02T00:00:00Z")["conditions"][0]["lastTransitionTime"],
            "2026-07-01T00:00:00Z");
  const auto passed = status_of({rows[0]}, {}, node, "2026-07-02T00:00:00Z")["conditions"][0];
  EXPECT_EQ(passed["lastTransitionTime"], "2026-07-02T00:00:00Z");
  EXPECT_EQ(passed["status"], "True");
  EXPECT_EQ(passed["cause"], "status.checks.passed.one");
}

TEST(preflight_status, has_the_cards_of_other_vendors_next_to_it) {
  const std::vector<api::other_card> cards{{"0000:c1:00.0", "AMD", "1002:740c", "AMD Instinct MI250X", "amdgpu", 1},
                                           {"0000:c5:00.0", "Huawei", "19e5:d802", "", "", -1}};
  const auto node = written(status_of(rows, cards, {}, "2026-07-01T00:00:00Z"));
  EXPECT_EQ(node.report.other_cards, cards);
  EXPECT_TRUE(says(node, rows, cards));
  EXPECT_FALSE(says(node, rows, {cards[0]}));
  EXPECT_FALSE(status_of(rows, {}, {}, "2026-07-01T00:00:00Z").contains("otherCards")) << "the list goes with them";
}

TEST(preflight_status, of_another_shape_is_no_crash) {
  for (const auto* status : {R"({"preflight": [1, null, {}], "conditions": []})", R"({"preflight": {}})", "{}",
                             R"({"preflight": [{"check": "cdi", "cause": 1, "parameters": {"path": {}}}]})",
                             R"({"preflight": [{"check": "cdi", "parameters": ["path"]}]})",
                             R"({"otherCards": [1, null, {"busID": 7}]})", R"({"otherCards": {}})"})
    EXPECT_FALSE(says(written(nlohmann::json::parse(status)), rows, {})) << status;
}

TEST(reader, reads_at_once_and_again_when_it_is_asked) {
  std::mutex lock;
  std::condition_variable came;
  int times = 0;
  facts_reader reader({"/nowhere", "/nowhere"}, std::chrono::hours(1), [&](const machine_facts&) {
    const std::lock_guard hold(lock);
    ++times;
    came.notify_all();
  });
  std::unique_lock hold(lock);
  ASSERT_TRUE(came.wait_for(hold, std::chrono::seconds(10), [&] { return times == 1; }));
  hold.unlock();
  reader.read_again();
  hold.lock();
  EXPECT_TRUE(came.wait_for(hold, std::chrono::seconds(10), [&] { return times == 2; }));
}

// The program must end although a file system of the node does not answer.
TEST(reader, does_not_have_to_be_waited_for) {
  std::promise<void> came, answer;
  facts_reader reader({"/nowhere", "/nowhere"}, std::chrono::hours(1), [&](const machine_facts&) {
    came.set_value();
    answer.get_future().wait();
  });
  came.get_future().wait();
  EXPECT_FALSE(reader.end_within(std::chrono::milliseconds(20)));
  answer.set_value();
  EXPECT_TRUE(reader.end_within(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace agent::facts
