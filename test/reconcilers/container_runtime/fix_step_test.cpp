#include "reconcilers/container_runtime/fix_step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/facts_in.hpp"
#include "test/words.hpp"

namespace reconcilers::container_runtime {
namespace {

using kind = fix_step::kind;
using testing::HasSubstr;
using words::line_of;

constexpr std::int64_t noon = 1'790'000'000;

fix_candidate unfit(const std::string& name) {
  return {name, "containerd://2.1.4", true, api::check_state::warning, api::check_state::ok};
}

fix_state wanted(std::vector<fix_candidate> nodes) {
  fix_state out;
  out.is_wanted = true;
  out.wish = "w1";
  out.wall = noon;
  out.nodes = std::move(nodes);
  return out;
}

fix_pod pod_on(const std::string& node) {
  fix_pod out;
  out.key = {"quartermaster", "quartermaster-fix-runtime"};
  out.node = node;
  out.wish = "w1";
  out.created = noon;
  out.is_ours = out.has_report = true;
  return out;
}

/// A pod whose answer is recorded.
fix_pod ended(const std::string& node, bool is_well, const std::string& answer) {
  auto out = pod_on(node);
  (is_well ? out.has_succeeded : out.has_failed) = true;
  out.recorded = noon;
  out.answer = answer;
  return out;
}

TEST(fix_step, does_nothing_unless_the_policy_asks) {
  const auto step = next_fix_step(fix_state());
  EXPECT_EQ(step.type, kind::none);
  EXPECT_TRUE(step.message.empty());
}

TEST(fix_step, takes_the_first_node_by_name) {
  const auto step = next_fix_step(wanted({unfit("gpu-2"), unfit("gpu-1")}));
  EXPECT_EQ(step.type, kind::make);
  EXPECT_EQ(step.node, "gpu-1");
  EXPECT_EQ(step.runtime, "containerd");
  EXPECT_EQ(line_of(step.message),
            "status.runtimes.under_way{summary=status.runtimes.summary.many{number=2,left=2},node=gpu-1}");
}

TEST(fix_step, knows_the_runtimes_that_the_verb_sets_up) {
  EXPECT_EQ(runtime_to_fix("containerd://1.7.24"), "containerd");
  EXPECT_EQ(runtime_to_fix("cri-o://1.30.4"), "crio");
  EXPECT_EQ(runtime_to_fix("docker://24.0.7"), "docker");
  EXPECT_EQ(runtime_to_fix("containerd://1.7.23-k3s2"), "");
  EXPECT_EQ(runtime_to_fix("containerd://1.7.20 of k0s"), "");
  EXPECT_EQ(runtime_to_fix("rkt://1"), "");
  EXPECT_EQ(runtime_to_fix(""), "");
}

TEST(fix_step, leaves_a_node_that_is_in_order_alone) {
  auto node = unfit("gpu-1");
  node.default_runtime = api::check_state::ok;
  const auto step = next_fix_step(wanted({node}));
  EXPECT_EQ(step.type, kind::none);
  EXPECT_EQ(line_of(step.message), "status.runtimes.summary.one{number=1,left=0}");
}

TEST(fix_step, takes_no_node_without_an_agent_and_says_so) {
  auto silent = unfit("gpu-1"), blind = unfit("gpu-2");
  silent.default_runtime.reset();
  blind.default_runtime = api::check_state::unknown;
  const auto step = next_fix_step(wanted({silent, blind}));
  EXPECT_EQ(step.type, kind::none);
  EXPECT_THAT(line_of(step.message), HasSubstr("status.runtimes.silent.many{number=2}"));
}

TEST(fix_step, names_the_nodes_that_it_cannot_fix) {
  auto bare = unfit("gpu-1"), rancher = unfit("gpu-2"), away = unfit("gpu-3");
  bare.toolkit = api::check_state::failed;
  rancher.reported = "containerd://1.7.23-k3s2";
  away.is_ready = false;
  const auto step = next_fix_step(wanted({bare, rancher, away}));
  EXPECT_EQ(step.type, kind::none);
  EXPECT_EQ(line_of(step.message),
            "list.semicolons{first=status.runtimes.summary.many{number=3,left=0},rest=status.runtimes.alone{list="
            "list.commas{first=status.runtimes.node{node=gpu-1,cause=status.runtimes.no_toolkit},rest="
            "list.commas{first=status.runtimes.node{node=gpu-2,cause=status.runtimes.other_runtime{"
            "runtime=containerd://1.7.23-k3s2}},rest=status.runtimes.node{node=gpu-3,"
            "cause=status.runtimes.not_ready}}}}}");
}

TEST(fix_step, no_second_node_while_one_is_under_way) {
  auto state = wanted({unfit("gpu-1"), unfit("gpu-2")});
  state.pod = pod_on("gpu-2");
  state.wall = noon + 60;
  const auto step = next_fix_step(state);
  EXPECT_EQ(step.type, kind::wait);
  EXPECT_EQ(step.again_in, std::chrono::seconds(540));
  state.pod->is_deleting = true;
  EXPECT_EQ(next_fix_step(state).type, kind::wait);
}

TEST(fix_step, halts_on_a_pod_that_does_not_end) {
  auto state = wanted({unfit("gpu-1"), unfit("gpu-2")});
  state.pod = pod_on("gpu-1");
  state.pod->reason = "ImagePullBackOff";
  state.wall = noon + 600;
  const auto step = next_fix_step(state);
  EXPECT_EQ(step.type, kind::halted);
  EXPECT_EQ(line_of(step.message),
            "status.runtimes.retry{message=status.runtimes.too_long_because{node=gpu-1,"
            "pod=quartermaster/quartermaster-fix-runtime,minutes=10,cause=ImagePullBackOff},"
            "namespace=quartermaster,pod=quartermaster-fix-runtime}");
  state.wish = "w2";
  EXPECT_EQ(next_fix_step(state).type, kind::remove) << "with another image or selector it is tried again";
  state.wish = "w1";
  state.is_wanted = false;
  EXPECT_EQ(next_fix_step(state).type, kind::remove);
}

TEST(fix_step, names_a_node_that_does_not_confirm_that_its_pod_is_deleted) {
  auto state = wanted({unfit("gpu-1"), unfit("gpu-2")});
  state.pod = pod_on("gpu-1");
  state.pod->is_deleting = true;
  state.wall = noon + 599;
  EXPECT_EQ(next_fix_step(state).type, kind::wait);
  state.wall = noon + 600;
  const auto step = next_fix_step(state);
  EXPECT_EQ(step.type, kind::halted);
  EXPECT_EQ(line_of(step.message),
            "status.runtimes.pod_stays{node=gpu-1,namespace=quartermaster,pod=quartermaster-fix-runtime}");
}

TEST(fix_step, a_clock_that_was_set_back_does_not_wait_for_years) {
  auto state = wanted({unfit("gpu-1"), unfit("gpu-2")});
  state.pod = pod_on("gpu-1");
  state.wall = noon - 30;
  EXPECT_EQ(next_fix_step(state).again_in, std::chrono::seconds(630)) << "the clocks of two machines";
  state.wall = noon - 31'536'000;
  EXPECT_EQ(next_fix_step(state).type, kind::halted);
  state.pod = ended("gpu-1", true, "wrote it");
  EXPECT_EQ(next_fix_step(state).type, kind::halted);
  state.nodes[0].default_runtime = api::check_state::ok;
  EXPECT_EQ(next_fix_step(state).type, kind::remove) << "the agent has seen it";
}

TEST(fix_step, records_an_answer_before_anything_else) {
  auto state = wanted({unfit("gpu-1")});
  state.pod = pod_on("gpu-1");
  state.pod->has_failed = true;
  EXPECT_EQ(next_fix_step(state).type, kind::record);
  state.is_wanted = false;
  EXPECT_EQ(next_fix_step(state).type, kind::record);
  state.pod->has_report = false;
  EXPECT_EQ(next_fix_step(state).type, kind::remove) << "its node has gone, and there is no place for the answer";
}

TEST(fix_step, a_failure_halts_all_other_nodes) {
  auto state = wanted({unfit("gpu-1"), unfit("gpu-2")});
  state.pod = ended("gpu-1", false, "quartermaster: /etc/containerd/config.toml is a symbolic link");
  state.wall = noon + 100'000;
  const auto step = next_fix_step(state);
  EXPECT_EQ(step.type, kind::halted);
  EXPECT_THAT(line_of(step.message),
              HasSubstr("status.runtimes.of_node{node=gpu-1,text=quartermaster: /etc/containerd/config.toml is a "
                        "symbolic link}"));
}

TEST(fix_step, a_failure_is_over_when_its_cause_is) {
  auto state = wanted({unfit("gpu-1"), unfit("gpu-2")});
  state.pod = ended("gpu-1", false, "no");
  auto changed = state;
  changed.wish = "w2";
  EXPECT_EQ(next_fix_step(changed).type, kind::remove);
  changed = state;
  changed.nodes[0].default_runtime = api::check_state::ok;
  EXPECT_EQ(next_fix_step(changed).type, kind::remove);
  changed = state;
  changed.nodes.erase(changed.nodes.begin());
  EXPECT_EQ(next_fix_step(changed).type, kind::remove) << "no longer selected";
  changed = state;
  changed.pod.reset();
  EXPECT_EQ(next_fix_step(changed).type, kind::make) << "someone deleted the pod";
}

TEST(fix_step, waits_until_the_agent_has_seen_it) {
  auto state = wanted({unfit("gpu-1"), unfit("gpu-2")});
  state.pod = ended("gpu-1", true, "wrote /etc/containerd/conf.d/99-quartermaster.toml");
  state.wall = noon + 590;
  EXPECT_EQ(next_fix_step(state).type, kind::wait);
  state.nodes[0].default_runtime = api::check_state::ok;
  EXPECT_EQ(next_fix_step(state).type, kind::remove);
  state.nodes[0].default_runtime = api::check_state::warning;
  state.wall = noon + 600;
  const auto step = next_fix_step(state);
  EXPECT_EQ(step.type, kind::halted);
  EXPECT_THAT(line_of(step.message), HasSubstr("status.runtimes.no_effect{node=gpu-1,"));
  EXPECT_THAT(line_of(step.message), HasSubstr("state=warning"));
}

TEST(fix_step, never_touches_a_pod_of_someone_else) {
  auto state = wanted({unfit("gpu-1")});
  state.pod = pod_on("gpu-1");
  state.pod->is_ours = false;
  state.pod->has_succeeded = true;
  EXPECT_EQ(next_fix_step(state).type, kind::halted);
  EXPECT_EQ(next_fix_step(state).message.key, "status.runtimes.foreign_pod");
  state.is_wanted = false;
  EXPECT_EQ(next_fix_step(state).type, kind::none);
}

}  // namespace
}  // namespace reconcilers::container_runtime
