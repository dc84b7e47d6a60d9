#include "cli/controller/control_plane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/static_pod/health.hpp"
#include "test/facts_in.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using reconcilers::scheduler_row;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using words::line_of;

struct control_plane_test : testing::Test {
  kube::config_map reports;
  control_plane_facts known{
      .wanted = true, .generation = 7, .config_map = &reports, .nodes = {}, .control_plane_nodes = {}};
  std::map<std::string, std::string> rows;

  void control_plane_node(const std::string& name) {
    known.nodes.insert(name);
    known.control_plane_nodes.insert(name);
  }
  void says(const std::string& name, const std::string& state, const std::string& reason = "") {
    control_plane_node(name);
    rows[name] = agent::static_pod::write({state, 1, "ab12", "v1.36.3", "2026-01-02T03:04:05Z", text::phrase(reason)});
    std::vector<kube::packed_map::entry> all(rows.begin(), rows.end());
    reports.data = kube::packed_map::of(all);
  }
};

TEST_F(control_plane_test, S54_all_that_ask_the_extender_are_ready) {
  says("m1", "Applied");
  says("m2", "Applied");
  const auto is = status_of(known);
  ASSERT_THAT(is.rows, ElementsAre(Field(&scheduler_row::name, "m1"), Field(&scheduler_row::name, "m2")));
  EXPECT_EQ(is.rows[0].mode, "StaticPod");
  EXPECT_EQ(is.rows[0].version, "v1.36.3");
  EXPECT_EQ(is.rows[0].checksum, "ab12");
  EXPECT_EQ(is.rows[0].ready, 1);
  ASSERT_TRUE(is.state);
  EXPECT_EQ(is.state->type, "SchedulerReady");
  EXPECT_EQ(is.state->status, "True");
  EXPECT_EQ(is.state->reason, "StaticPod");
  EXPECT_EQ(line_of(is.state->message), "status.control_plane.asking.many{number=2,good=2}");
  EXPECT_EQ(is.state->generation, 7);
}

TEST_F(control_plane_test, the_worst_is_the_reason_and_all_that_are_not_well_are_told) {
  says("m1", "Applied", "kube-scheduler-m1 is not ready");
  says("m2", "Changing");
  says("m3", "RolledBack", "not ready after 180 s");
  control_plane_node("m4");
  const auto is = status_of(known);
  EXPECT_EQ(is.state->status, "False");
  EXPECT_EQ(is.state->reason, "RolledBack");
  EXPECT_EQ(
      line_of(is.state->message),
      "list.semicolons{first=status.control_plane.asking.many{number=4,good=0},rest=status.control_plane.and_more{"
      "list=list.commas{first=status.control_plane.node_because{node=m1,reason=Applied,"
      "cause=kube-scheduler-m1 is not ready},rest=list.commas{first=status.control_plane.node{node=m2,"
      "reason=Changing},rest=status.control_plane.node_because{node=m3,reason=RolledBack,"
      "cause=not ready after 180 s}}},number=1}}");
  EXPECT_EQ(is.rows[3].reason, "NoAgent");
  EXPECT_EQ(is.rows[3].message.key, "status.control_plane.no_agent");
}

TEST_F(control_plane_test, one_without_an_agent_is_worse_than_one_that_waits) {
  says("m1", "Waiting", "for its turn");
  control_plane_node("m2");
  EXPECT_EQ(status_of(known).state->reason, "NoAgent");
}

TEST_F(control_plane_test, a_control_plane_node_that_is_gone_leaves_no_row) {
  says("m1", "Applied");
  says("m2", "Stopped", "why");
  known.nodes.erase("m2");
  known.control_plane_nodes.erase("m2");
  EXPECT_EQ(line_of(status_of(known).state->message), "status.control_plane.asking.one{number=1,good=1}");
}

TEST_F(control_plane_test, says_where_there_is_no_control_plane_node_at_all) {
  EXPECT_EQ(status_of(known).state->reason, "NoAgent");
  EXPECT_EQ(status_of(known).state->message.key, "status.control_plane.none");
}

TEST_F(control_plane_test, after_switching_off_only_those_that_still_ask_are_shown) {
  known.wanted = false;
  says("m1", "Off");
  says("m2", "Removing");
  const auto is = status_of(known);
  EXPECT_THAT(is.rows, ElementsAre(Field(&scheduler_row::name, "m2")));
  EXPECT_EQ(is.state->reason, "SwitchingOff");
  says("m2", "Off");
  EXPECT_THAT(status_of(known).rows, IsEmpty());
  EXPECT_FALSE(status_of(known).state);
  known.config_map = nullptr;
  EXPECT_FALSE(status_of(known).state);
}

TEST_F(control_plane_test, what_is_no_row_is_passed_over) {
  control_plane_node("m1");
  std::vector<kube::packed_map::entry> all{{"m1", "{not json"}};
  reports.data = kube::packed_map::of(all);
  EXPECT_EQ(status_of(known).rows.at(0).reason, "NoAgent");
}

TEST_F(control_plane_test, what_no_agent_says_does_not_spoil_the_policy) {
  says("m1", "Applied", std::string(5000, 'x') + "\x1b[31m");
  says("m2", std::string(2000, 'S'));
  const auto is = status_of(known);
  EXPECT_LE(is.rows.at(0).message.key.size(), 1003u);
  EXPECT_EQ(is.rows.at(1).reason, "NoAgent") << "a state that there is not";
}

TEST_F(control_plane_test, are_counted_by_state) {
  controller::registry registry;
  control_plane_metric count(registry);
  says("m1", "Applied");
  says("m2", "Stopped", "why");
  count.set(status_of(known));
  const auto text = registry.text();
  EXPECT_THAT(text, HasSubstr("quartermaster_static_pod_masters{state=\"Applied\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("quartermaster_static_pod_masters{state=\"Stopped\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("quartermaster_static_pod_masters{state=\"Waiting\"} 0\n"));
}

}  // namespace
}  // namespace cli
