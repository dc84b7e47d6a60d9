#include "reconcilers/nodes/mode_change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using kind = node_intent::kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// A node, its kubelet and the DaemonSet controller as far as a change of mode meets them: pods follow the label a few
/// turns later, what is advertised follows the pods.
class lab {
 public:
  node_state is;
  std::vector<mode_step::event> told;
  std::vector<std::string> history;  ///< phases, without repetitions

  lab() { is.wall = 1'767'225'600; }

  void ask(const char* mode) {
    is.wanted = {kind::mode, modules::find(mode), mode, {}, {}};
    switch_on();
  }
  void ask_nothing() { is.wanted = {}; }
  void refuse(const char* reason, const char* message) { is.wanted = {kind::refused, nullptr, "x", reason, message}; }
  void switch_on() {
    const auto on = [&](const std::string& name) { return name != off && modules::find(name); };
    is.placed_enabled = on(is.placed);
    is.from_enabled = is.taint && on(is.taint->from);
  }
  std::string off;  ///< a module that is switched off
  /// A pod of a Deployment that holds cards of `mode`.
  static holder pod(const char* name, const char* mode) { return {{"team", name}, modules::find(mode), {}, false, {}}; }

  mode_step step() {
    const auto out = next_step(is);
    if (out.status_first) EXPECT_FALSE(out.label) << "what is remembered is written before anything is undone";
    if (out.label) is.placed = *out.label;
    if (out.change == mode_step::taint_change::set) is.taint = out.taint;
    if (out.change == mode_step::taint_change::remove) is.taint.reset();
    switch_on();
    if (!is.before || !out.status || is.before->phase != out.status->phase) is.in_phase = 0ms;
    if (out.tell) told.push_back(*out.tell);
    is.before = out.status;
    if (out.status && (history.empty() || history.back() != out.status->phase)) history.push_back(out.status->phase);
    return out;
  }
  /// The DaemonSet controller deletes pods whose label is gone and makes the one that is wanted.
  void daemon_sets() {
    for (auto& pod : is.plugins) pod.deleting = pod.deleting || pod.module != is.placed;
    const auto same = [&](const plugin_pod& one) { return one.module == is.placed && !one.deleting; };
    if (!is.placed.empty() && std::ranges::none_of(is.plugins, same))
      is.plugins.push_back({is.placed, "quartermaster/" + is.placed + "-x", "ContainerCreating", false, false});
  }
  void kubelet_ends_pods() {
    std::erase_if(is.plugins, [](const plugin_pod& one) { return one.deleting; });
  }
  void kubelet_starts_pods() {
    for (auto& pod : is.plugins) pod.ready = !pod.deleting;
  }
  void kubelet_advertises() {
    std::map<std::string, std::int64_t> now;
    for (const auto& [name, amount] : is.allocatable) now[name] = 0;
    for (const auto& pod : is.plugins) {
      const auto* of = modules::find(pod.module);
      if (!pod.ready || pod.deleting || !of) continue;
      for (const auto name : of->resources) now[std::string(name)] = 8;
    }
    is.allocatable.assign(now.begin(), now.end());
  }
  void settle() {
    for (int i = 0; i < 8; ++i) {
      step();
      daemon_sets();
      kubelet_ends_pods();
      kubelet_starts_pods();
      kubelet_advertises();
    }
    step();
  }
};

TEST(mode_change, S3_enrols_a_node_that_asks) {
  lab one;
  one.ask("pgpu");
  const auto first = one.step();
  EXPECT_TRUE(first.label);
  EXPECT_EQ(first.label, "pgpu");
  ASSERT_TRUE(first.status);
  EXPECT_EQ(first.status->phase, "Verifying");
  EXPECT_EQ(first.status->requested_mode, "pgpu");
  EXPECT_EQ(first.status->actual_mode, "none");
  one.settle();
  ASSERT_TRUE(one.is.before);
  EXPECT_EQ(one.is.before->phase, "Ready");
  EXPECT_EQ(one.is.before->actual_mode, "pgpu");
  EXPECT_EQ(one.is.before->message, "nvidia.com/gpu allocatable");
  ASSERT_EQ(one.told.size(), 1u);
  EXPECT_EQ(one.told[0].reason, "Enrolled");
  EXPECT_THAT(one.history, ElementsAre("Verifying", "Ready"));
}

TEST(mode_change, a_settled_node_is_left_as_it_is) {
  lab one;
  one.ask("vgpu");
  one.settle();
  const auto status = one.is.before;
  one.is.wall += 100'000'000;
  one.is.in_phase = 1h;
  const auto again = one.step();
  EXPECT_FALSE(again.writes_node());
  EXPECT_EQ(again.status, status) << "the time of a phase stays, or every look would be a write";
  EXPECT_FALSE(again.tell);
  EXPECT_FALSE(again.again_in);
}

TEST(mode_change, C61_a_change_taints_removes_waits_and_only_then_sets) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.ask("mps");
  auto now = one.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.change, mode_step::taint_change::set);
  EXPECT_EQ(now.taint.to_string(), "pgpu.mps");
  EXPECT_EQ(now.status->phase, "Ready") << "nothing to wait for: one write";
  EXPECT_EQ(now.tell->reason, "Begun");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  now = one.step();
  EXPECT_EQ(now.label, "") << "never a flip: two plugins would run side by side";
  EXPECT_EQ(now.status->phase, "Removing");
  EXPECT_EQ(now.status->actual_mode, "none");
  one.daemon_sets();  // the old pod is on its way out
  now = one.step();
  EXPECT_FALSE(now.writes_node());
  EXPECT_THAT(now.status->message, HasSubstr("quartermaster/pgpu-x"));
  one.kubelet_ends_pods();
  now = one.step();  // gone, but the kubelet still shows its cards
  EXPECT_FALSE(now.writes_node());
  EXPECT_EQ(now.status->phase, "Enrolling");
  EXPECT_EQ(now.status->reason, "StillAdvertised");
  one.kubelet_advertises();
  now = one.step();
  EXPECT_EQ(now.label, "mps");
  EXPECT_TRUE(one.is.taint) << "until it is verified";
  one.settle();
  EXPECT_EQ(one.is.before->actual_mode, "mps");
  EXPECT_FALSE(one.is.taint);
  EXPECT_THAT(one.history, ElementsAre("Verifying", "Ready", "Removing", "Enrolling", "Verifying", "Ready"));
}

TEST(mode_change, C62_a_change_waits_for_pods_that_hold_cards_and_names_them) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.holders = {lab::pod("train-1", "pgpu"), lab::pod("train-0", "pgpu")};
  one.ask("vgpu");
  one.step();
  auto now = one.step();
  EXPECT_FALSE(now.writes_node());
  EXPECT_EQ(now.status->phase, "Draining");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  EXPECT_THAT(now.status->blockers, ElementsAre("team/train-0", "team/train-1"));
  EXPECT_EQ(now.blockers.size(), 2u);
  EXPECT_THAT(now.evict, IsEmpty()) << "nobody asked for that";
  EXPECT_FALSE(one.step().tell) << "said once";
  one.is.holders.clear();
  now = one.step();
  EXPECT_EQ(now.label, "");
  EXPECT_THAT(now.status->blockers, IsEmpty());
  one.settle();
  EXPECT_EQ(one.is.before->actual_mode, "vgpu");
}

TEST(mode_change, evicts_what_may_be_evicted_and_names_the_rest) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.evict = true;
  auto daemon = lab::pod("daemon", "pgpu"), guarded = lab::pod("guarded", "pgpu"), ending = lab::pod("ending", "pgpu");
  daemon.stays = "is of a DaemonSet";
  guarded.refused = "its PodDisruptionBudget allows no eviction now";
  ending.deleting = true;
  one.is.holders = {daemon, guarded, ending, lab::pod("train", "pgpu")};
  one.ask("vgpu");
  EXPECT_THAT(one.step().evict, IsEmpty()) << "the taint is first, or they would come back";
  const auto now = one.step();
  ASSERT_EQ(now.evict.size(), 2u);
  EXPECT_EQ(now.evict[0].pod.name, "guarded");
  EXPECT_EQ(now.evict[1].pod.name, "train");
  EXPECT_THAT(now.status->blockers,
              ElementsAre("team/daemon (is of a DaemonSet)", "team/ending",
                          "team/guarded (its PodDisruptionBudget allows no eviction now)", "team/train"));
  EXPECT_THAT(now.status->message, HasSubstr("1 of them cannot be evicted"));
}

TEST(mode_change, a_drain_that_takes_too_long_leaves_the_node_what_it_was_and_is_tried_again) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.holders = {lab::pod("train", "pgpu")};
  one.ask("vgpu");
  one.step(), one.step();
  one.is.in_phase = 1800s;
  auto now = one.step();
  ASSERT_TRUE(now.status->given_up);
  EXPECT_EQ(now.status->given_up->reason, "DrainTimeout");
  EXPECT_THAT(now.status->given_up->blockers, ElementsAre("team/train"));
  EXPECT_EQ(now.tell->type, controller::event_type::warning);
  EXPECT_THAT(now.tell->note,
              HasSubstr("mode vgpu was given up: team/train still holds resources of the old mode after "
                        "1800 s (spec.enrolment.drain.timeout). The node goes back to mode pgpu"));
  EXPECT_THAT(now.tell->note, Not(HasSubstr("waits"))) << "what is given up waits for nothing";
  EXPECT_THAT(now.tell->note, HasSubstr("when that pod is gone"));
  now = one.step();
  EXPECT_EQ(now.change, mode_step::taint_change::remove);
  EXPECT_EQ(now.status->phase, "RolledBack");
  EXPECT_EQ(now.status->requested_mode, "vgpu");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  now = one.step();
  EXPECT_FALSE(now.writes_node());
  EXPECT_EQ(now.again_in, 600s);

  lab later = one;
  later.is.wall += 600;
  EXPECT_EQ(later.step().change, mode_step::taint_change::set) << "after a back-off";
  later.step();
  later.is.in_phase = 1800s;
  later.step();
  EXPECT_EQ(later.is.before->given_up->attempts, 2);
  later.step();
  EXPECT_EQ(later.step().again_in, 1200s) << "twice as long";

  lab edited = one;
  ++edited.is.policy_generation;
  EXPECT_EQ(edited.step().change, mode_step::taint_change::set) << "the policy was edited";

  lab other = one;
  other.ask("mps");
  EXPECT_EQ(other.step().change, mode_step::taint_change::set) << "another mode is asked for";

  one.is.holders.clear();
  now = one.step();
  EXPECT_EQ(now.change, mode_step::taint_change::set) << "what hindered it is gone";
  one.settle();
  EXPECT_EQ(one.is.before->actual_mode, "vgpu");
  EXPECT_FALSE(one.is.before->given_up);
}

TEST(mode_change, a_plugin_that_does_not_come_up_is_taken_back_for_the_old_one) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.ask("vgpu");
  const auto turn = [&] { one.daemon_sets(), one.kubelet_ends_pods(), one.kubelet_advertises(); };
  for (int i = 0; i < 4; ++i) one.step(), turn();
  ASSERT_EQ(one.is.placed, "vgpu");
  one.is.in_phase = 300s;
  one.step();
  EXPECT_EQ(one.is.before->given_up->reason, "VerifyTimeout");
  EXPECT_EQ(one.is.taint->to_string(), "pgpu.vgpu");
  one.told.clear();
  one.settle();
  EXPECT_EQ(one.is.placed, "pgpu");
  EXPECT_FALSE(one.is.taint);
  EXPECT_EQ(one.is.before->phase, "RolledBack");
  EXPECT_EQ(one.is.before->actual_mode, "pgpu");
  EXPECT_EQ(one.is.before->reason, "VerifyTimeout");
}

TEST(mode_change, where_the_old_plugin_does_not_come_back_the_node_is_stuck_and_stays_tainted) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.ask("vgpu");
  const auto turn = [&] { one.daemon_sets(), one.kubelet_ends_pods(), one.kubelet_advertises(); };
  for (int i = 0; i < 4; ++i) one.step(), turn();
  one.is.in_phase = 300s;
  for (int i = 0; i < 5; ++i) one.step(), turn();
  ASSERT_EQ(one.is.placed, "pgpu");
  one.is.in_phase = 300s;
  const auto now = one.step();
  EXPECT_EQ(now.status->phase, "Stuck");
  EXPECT_TRUE(one.is.taint);
  EXPECT_EQ(now.tell->type, controller::event_type::warning);
  one.settle();
  EXPECT_EQ(one.is.before->phase, "RolledBack") << "it is watched on";
}

TEST(mode_change, a_label_put_back_in_mid_flight_cancels_the_change) {
  for (int steps = 1; steps < 6; ++steps) {
    lab one;
    one.ask("pgpu");
    one.settle();
    one.ask("vgpu");
    for (int i = 0; i < steps; ++i) one.step(), one.daemon_sets(), one.kubelet_ends_pods(), one.kubelet_advertises();
    one.ask("pgpu");
    one.settle();
    EXPECT_EQ(one.is.placed, "pgpu") << steps;
    EXPECT_EQ(one.is.before->phase, "Ready") << steps;
    EXPECT_FALSE(one.is.taint) << steps;
  }
}

TEST(mode_change, pods_that_arrive_late_are_waited_for_although_the_old_plugin_is_gone) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.ask("vgpu");
  one.step(), one.step();
  one.daemon_sets(), one.kubelet_ends_pods(), one.kubelet_advertises();
  one.is.holders = {lab::pod("late", "pgpu")};
  const auto now = one.step();
  EXPECT_EQ(now.status->phase, "Draining");
  EXPECT_THAT(now.status->blockers, ElementsAre("team/late"));
  EXPECT_FALSE(now.label);
  one.is.in_phase = 1800s;
  one.settle();
  EXPECT_EQ(one.is.placed, "pgpu") << "back to the mode its pods are in";
  EXPECT_EQ(one.is.before->phase, "RolledBack");
}

TEST(mode_change, only_so_many_at_once_and_not_while_the_kubelet_is_silent) {
  lab one;
  one.is.may_begin = false;
  one.ask("pgpu");
  auto now = one.step();
  EXPECT_FALSE(now.writes_node());
  EXPECT_EQ(now.status->phase, "Waiting");
  EXPECT_EQ(now.status->reason, "MaxUnavailable");
  EXPECT_THAT(now.status->message, HasSubstr("quartermaster inspect nodes"));
  one.is.may_begin = true;
  one.is.answers = false;
  EXPECT_EQ(one.step().status->reason, "NodeNotReady");
  one.is.answers = true;
  one.settle();
  EXPECT_EQ(one.is.before->phase, "Ready");
  one.is.may_begin = false;
  one.ask("vgpu");
  EXPECT_EQ(one.step().status->phase, "Waiting");
  EXPECT_EQ(one.is.before->actual_mode, "pgpu");
  one.ask("pgpu");
  EXPECT_EQ(one.step().status->phase, "Ready");
}

TEST(mode_change, a_kubelet_that_falls_silent_in_mid_flight_leaves_the_node_tainted_and_says_why) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.ask("vgpu");
  one.step(), one.step();
  one.daemon_sets();
  one.is.answers = false;  // the old pod never ends
  one.step();
  one.is.in_phase = 300s;
  const auto now = one.step();
  EXPECT_EQ(now.status->phase, "Stuck");
  EXPECT_EQ(now.status->reason, "PluginLeaving");
  EXPECT_THAT(now.status->message, HasSubstr("delete the Node"));
  EXPECT_TRUE(one.is.taint);
  EXPECT_EQ(one.is.placed, "") << "never a second plugin";
  one.is.answers = true;
  one.settle();
  EXPECT_EQ(one.is.before->phase, "Ready");
}

TEST(mode_change, a_node_that_never_came_up_in_its_first_mode_goes_back_to_none) {
  lab one;
  one.ask("pgpu");
  one.step(), one.daemon_sets();
  one.is.in_phase = 300s;
  auto now = one.step();
  EXPECT_EQ(now.status->given_up->reason, "VerifyTimeout");
  now = one.step();
  EXPECT_EQ(now.label, "");
  EXPECT_EQ(now.change, mode_step::taint_change::keep);
  one.daemon_sets(), one.kubelet_ends_pods();
  now = one.step();
  EXPECT_EQ(now.status->phase, "RolledBack");
  EXPECT_EQ(now.status->actual_mode, "none");
  EXPECT_FALSE(is_changing(false, one.is.placed, now.status->actual_mode)) << "it holds nobody up";
}

TEST(mode_change, pods_that_hold_cards_of_the_mode_it_is_in_hinder_nothing) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.holders = {lab::pod("train", "pgpu")};
  EXPECT_EQ(one.step().status->phase, "Ready");
}

TEST(mode_change, asking_for_nothing_removes_the_label_and_then_the_object) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.ask_nothing();
  EXPECT_EQ(one.step().taint.to_string(), "pgpu.none");
  const auto first = one.step();
  EXPECT_EQ(first.label, "");
  EXPECT_EQ(first.status->phase, "Removing");
  EXPECT_EQ(first.status->requested_mode, "none");
  one.settle();
  EXPECT_FALSE(one.is.before);
  EXPECT_EQ(one.is.placed, "");
  EXPECT_EQ(one.told.back().reason, "Released");
  one.told.clear();
  one.step();
  EXPECT_THAT(one.told, IsEmpty());
}

TEST(mode_change, a_node_that_never_asked_gets_no_object) {
  lab one;
  const auto now = one.step();
  EXPECT_FALSE(now.label);
  EXPECT_FALSE(now.status);
  EXPECT_FALSE(now.tell);
}

TEST(mode_change, S3_a_refusal_keeps_the_mode_the_node_is_in) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.refuse("UnknownMode", "label says vgpus");
  const auto now = one.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Refused");
  EXPECT_EQ(now.status->reason, "UnknownMode");
  EXPECT_EQ(now.status->requested_mode, "x");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  ASSERT_TRUE(now.tell);
  EXPECT_EQ(now.tell->type, controller::event_type::warning);
  EXPECT_EQ(now.tell->note, "label says vgpus");
  EXPECT_FALSE(one.step().tell) << "said once";
  one.refuse("UnknownMode", "label says mpss");
  EXPECT_TRUE(one.step().tell) << "another mistake is said again";
}

TEST(mode_change, S3_a_refused_node_without_a_mode_has_an_object_that_says_why) {
  lab one;
  one.refuse("ConflictingLabels", "two");
  const auto now = one.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Refused");
  EXPECT_EQ(now.status->actual_mode, "none");
  one.ask_nothing();
  const auto after = one.step();
  EXPECT_FALSE(after.status);
  EXPECT_FALSE(after.tell) << "it never had a mode to be released from";
}

TEST(mode_change, S2_a_module_switched_off_lets_its_nodes_go_when_their_pods_have_ended) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.holders = {lab::pod("train", "pgpu")};
  one.refuse("ModuleDisabled", "off");
  one.off = "pgpu";
  one.switch_on();
  one.step();
  auto now = one.step();
  EXPECT_EQ(now.status->phase, "Draining");
  one.is.in_phase = 1800s;
  now = one.step();
  EXPECT_EQ(now.status->phase, "Stuck") << "there is no way back to a module that is off";
  EXPECT_FALSE(now.label);
  one.is.holders.clear();
  one.settle();
  EXPECT_EQ(one.is.placed, "");
  EXPECT_EQ(one.is.before->phase, "Disabled");
  EXPECT_FALSE(one.is.taint);
}

TEST(mode_change, S2_asking_for_a_module_that_is_off_keeps_the_mode_that_is_on) {
  lab one;
  one.refuse("ModuleDisabled", "off");
  auto now = one.step();
  EXPECT_EQ(now.status->phase, "Disabled");
  EXPECT_EQ(now.tell->type, controller::event_type::warning);
  EXPECT_FALSE(one.step().tell);
  one.ask("pgpu");
  one.settle();
  one.refuse("ModuleDisabled", "off");
  now = one.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Refused");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
}

TEST(mode_change, a_node_left_to_others_gives_up_our_mode) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.wanted = {kind::left_alone, nullptr, "pgpu-dra", "LeftAlone", "the DRA driver"};
  EXPECT_TRUE(one.step().writes_node());
  one.settle();
  EXPECT_EQ(one.is.placed, "");
  ASSERT_TRUE(one.is.before);
  EXPECT_EQ(one.is.before->phase, "LeftAlone");
  EXPECT_EQ(one.is.before->actual_mode, "none");
}

TEST(mode_change, F25_our_label_removed_or_changed_by_hand_comes_back) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.placed = "";
  const auto removed = one.step();
  EXPECT_TRUE(removed.label);
  EXPECT_EQ(removed.label, "pgpu");
  one.is.placed = "mps";
  const auto changed = one.step();
  EXPECT_EQ(changed.taint.to_string(), "mps.pgpu");
  one.settle();
  EXPECT_EQ(one.is.placed, "pgpu");
  EXPECT_EQ(one.is.before->phase, "Ready");
  one.is.placed = "no-such-module";
  one.switch_on();
  one.settle();
  EXPECT_EQ(one.is.placed, "pgpu");
}

TEST(mode_change, S74_waits_while_another_plugin_advertises_and_says_which_resource) {
  lab one;
  one.is.allocatable = {{"nvidia.com/gpu", 8}};
  one.ask("vgpu");
  const auto now = one.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Enrolling");
  EXPECT_THAT(now.status->message, HasSubstr("nvidia.com/gpu"));
  EXPECT_THAT(now.status->message, HasSubstr("another device plugin"));
}

TEST(mode_change, S74_what_the_new_mode_is_called_must_not_be_there_before_its_plugin) {
  lab one;
  one.is.allocatable = {{"nvidia.com/gpu", 8}};
  one.ask("pgpu");
  EXPECT_EQ(one.step().status->reason, "StillAdvertised") << "a plugin we do not know by name";
  EXPECT_EQ(one.is.placed, "");
  one.is.allocatable.clear();
  one.settle();
  EXPECT_EQ(one.is.before->phase, "Ready");
  one.is.placed = "";
  EXPECT_EQ(one.step().label, "pgpu") << "a label taken off by hand is put back while the plugin is still there";
}

/// A node with somebody else's plugin that advertises whole cards, one of them held.
lab with_theirs() {
  lab one;
  one.is.allocatable = {{"nvidia.com/gpu", 8}};
  one.is.holders = {lab::pod("train", "pgpu")};
  one.ask("pgpu");
  one.is.wanted.foreign = {{"DaemonSet kube-system/theirs runs here", "give it an affinity"}};
  return one;
}

TEST(mode_change, S74_taking_over_drains_asks_for_the_other_plugin_to_go_and_waits_until_nothing_is_left_of_it) {
  auto one = with_theirs();
  auto now = one.step();
  EXPECT_EQ(now.taint.to_string(), "Foreign.pgpu");
  EXPECT_FALSE(now.label);
  EXPECT_FALSE(now.take_over) << "pods first: they may need the plugin they have";
  now = one.step();
  EXPECT_EQ(now.status->phase, "Draining");
  EXPECT_THAT(now.status->blockers, ElementsAre("team/train")) << "though it holds what the new mode is called";
  one.is.holders.clear();
  now = one.step();
  EXPECT_EQ(now.take_over, true);
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Removing");
  EXPECT_EQ(now.status->reason, "ForeignPlugin");
  EXPECT_EQ(now.status->message, "waits until it is gone: DaemonSet kube-system/theirs runs here; give it an affinity");
  one.is.taken_over = true;
  EXPECT_FALSE(one.step().writes_node());
  one.is.wanted.foreign.clear();
  now = one.step();
  EXPECT_FALSE(now.label) << "what it advertised is still there";
  EXPECT_EQ(now.status->reason, "StillAdvertised");
  one.is.allocatable = {{"nvidia.com/gpu", 0}};
  now = one.step();
  EXPECT_EQ(now.label, "pgpu");
  one.settle();
  EXPECT_EQ(one.is.before->phase, "Ready");
  EXPECT_FALSE(one.is.taint);
  one.ask_nothing();
  one.settle();
  EXPECT_EQ(one.is.placed, "");
  EXPECT_EQ(one.step().take_over, false) << "the other plugin may be back";
}

TEST(mode_change, S74_a_plugin_that_does_not_go_is_left_in_peace_and_not_tried_again_by_itself) {
  auto one = with_theirs();
  one.is.holders.clear();
  one.step(), one.step();
  one.is.taken_over = true;
  one.is.in_phase = 1800s;
  auto now = one.step();
  ASSERT_TRUE(now.status->given_up);
  EXPECT_EQ(now.status->given_up->reason, "ForeignPlugin");
  EXPECT_THAT(now.status->message,
              HasSubstr("The node goes back to the plugin it has; it is tried again when the label "
                        "or the policy changes, or when that plugin is gone"));
  now = one.step();
  EXPECT_EQ(now.change, mode_step::taint_change::remove);
  EXPECT_EQ(now.take_over, false);
  EXPECT_EQ(now.status->phase, "RolledBack");
  EXPECT_EQ(now.status->actual_mode, "none");
  one.is.taken_over = false;
  one.is.wall += 100'000;
  now = one.step();
  EXPECT_FALSE(now.writes_node()) << "pods are not sent away again and again";
  EXPECT_FALSE(now.again_in);
  one.is.wanted.foreign.clear(), one.is.allocatable.clear();
  one.settle();
  EXPECT_EQ(one.is.before->phase, "Ready");
  EXPECT_EQ(one.is.placed, "pgpu");
}

TEST(mode_change, S74_taking_over_can_be_called_off_at_any_moment) {
  for (int steps = 1; steps < 5; ++steps) {
    auto one = with_theirs();
    for (int i = 0; i < steps; ++i) {
      if (one.step().take_over) one.is.taken_over = true;
      if (i == 1) one.is.holders.clear();
    }
    one.ask_nothing();
    const auto now = one.step();
    EXPECT_EQ(now.change, mode_step::taint_change::remove) << steps;
    EXPECT_EQ(now.take_over.has_value(), one.is.taken_over) << steps;
    EXPECT_FALSE(now.status) << steps;
  }
}

TEST(mode_change, S74_a_plugin_that_comes_back_in_mid_flight_is_no_second_one_for_long) {
  auto one = with_theirs();
  one.is.holders.clear(), one.step(), one.step();
  const auto foreign = one.is.wanted.foreign;
  one.is.taken_over = true, one.is.wanted.foreign.clear(), one.is.allocatable.clear();
  one.step(), one.daemon_sets(), one.kubelet_starts_pods(), one.kubelet_advertises();
  ASSERT_EQ(one.is.placed, "pgpu");
  one.is.wanted.foreign = foreign;
  auto now = one.step();
  EXPECT_EQ(now.status->reason, "ForeignPlugin");
  EXPECT_TRUE(one.is.taint) << "no pod comes while there are two";
  one.is.in_phase = 300s;
  one.step();
  one.settle();
  EXPECT_EQ(one.is.placed, "");
  EXPECT_EQ(one.is.before->phase, "RolledBack");
}

TEST(mode_change, S4_a_plugin_that_fails_is_explained_and_then_called_stuck) {
  lab one;
  one.ask("vgpu");
  one.settle();
  one.is.plugins.clear(), one.is.allocatable.clear();
  one.told.clear();
  one.step();
  auto now = one.step();
  EXPECT_EQ(now.status->reason, "PluginStarting");
  EXPECT_EQ(now.again_in, 10s) << "the time the plugin is given before its stages are told";
  one.is.in_phase = 10s;
  now = one.step();
  EXPECT_EQ(now.status->reason, "NoPlugin");
  EXPECT_EQ(now.again_in, 290s);
  one.daemon_sets();
  now = one.step();
  EXPECT_EQ(now.status->reason, "PluginNotReady");
  EXPECT_EQ(now.status->message,
            "plugin pod quartermaster/vgpu-x is not ready: ContainerCreating; look at its events and its log");
  one.kubelet_starts_pods();
  one.is.allocatable = {{"tencent.com/vcuda-core", 100}};
  now = one.step();
  EXPECT_EQ(now.status->reason, "NothingAdvertised") << "every resource of the module counts";
  EXPECT_FALSE(now.tell);
  one.is.in_phase = 300s;
  now = one.step();
  EXPECT_EQ(now.status->phase, "Stuck");
  EXPECT_EQ(now.status->reason, "NothingAdvertised");
  EXPECT_EQ(now.tell->reason, "VerifyTimeout");
  EXPECT_FALSE(now.again_in);
  one.is.in_phase = 0s;
  now = one.step();
  EXPECT_EQ(now.status->phase, "Stuck") << "and stays so";
  EXPECT_FALSE(now.tell);
  one.kubelet_advertises();
  now = one.step();
  EXPECT_EQ(now.status->phase, "Ready") << "it is watched on";
  EXPECT_EQ(now.tell->reason, "Enrolled");
}

TEST(mode_change, a_plugin_that_restarts_keeps_the_mode_and_is_no_news) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.told.clear();
  one.is.plugins[0].ready = false;
  one.kubelet_advertises();
  auto now = one.step();
  EXPECT_EQ(now.status->phase, "Verifying");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  one.kubelet_starts_pods();
  one.kubelet_advertises();
  now = one.step();
  EXPECT_EQ(now.status->phase, "Ready");
  EXPECT_THAT(one.told, IsEmpty());
}

/// C61: every pair of modes, killed after any step (which is the same as looking again with nothing remembered but the
/// API): ends in the mode asked for last, and never sets a label while a plugin of another mode is there.
/// C61: every pair of modes, killed after any step (which is the same as looking again with nothing remembered but the
/// API): ends in the mode asked for last, and never sets a label while a plugin of another mode is there.
TEST(mode_change, C61_F1_every_change_ends_where_it_was_asked_to_whatever_happens_in_between) {
  const char* modes[] = {"pgpu", "vgpu", "mps", ""};
  std::mt19937 random(7);
  for (int seed = 0; seed < 2000; ++seed) {
    lab one;
    const char* last = "";
    for (int turn = 0; turn < 80; ++turn) {
      switch (random() % 12) {
        case 0:
          last = modes[random() % 4];
          if (*last)
            one.ask(last);
          else
            one.ask_nothing();
          break;
        case 1:
          one.daemon_sets();
          break;
        case 2:
          one.kubelet_ends_pods();
          break;
        case 3:
          one.kubelet_starts_pods();
          break;
        case 4:
          one.kubelet_advertises();
          break;
        case 5:
          one.is.before.reset();  // AcceleratorNode lost
          break;
        case 6:
          one.is.in_phase = 1h;  // whatever it waits for takes too long
          break;
        case 7:
          one.is.wall += 400;
          break;
        case 8:
          one.is.answers = random() % 2 == 0;
          break;
        case 9:
          one.is.holders.clear();
          if (random() % 3 == 0 && !one.is.placed.empty() && !one.is.taint)
            one.is.holders = {lab::pod("train", one.is.placed.c_str())};
          break;
        default: {
          const auto was = one.is.placed;
          const auto out = one.step();
          if (out.label && !out.label->empty()) {
            for (const auto& pod : one.is.plugins)
              ASSERT_EQ(pod.module, *out.label) << "seed " << seed << " turn " << turn;
            for (const auto& pod : one.is.holders)
              ASSERT_EQ(pod.of->name, *out.label) << "seed " << seed << " turn " << turn;
          }
          if (out.label && out.label->empty() && !was.empty()) {
            for (const auto& pod : one.is.holders) ASSERT_NE(pod.of->name, was) << "seed " << seed << " turn " << turn;
          }
        }
      }
    }
    one.is.holders.clear();
    one.is.answers = true;
    one.is.in_phase = 0ms;
    one.is.wall += 100'000;
    for (int i = 0; i < 3; ++i) one.settle();
    EXPECT_EQ(one.is.placed, last) << "seed " << seed;
    EXPECT_FALSE(one.is.taint) << "seed " << seed;
    if (*last) {
      ASSERT_TRUE(one.is.before) << "seed " << seed;
      EXPECT_EQ(one.is.before->phase, "Ready") << "seed " << seed << ": " << one.is.before->message;
      EXPECT_EQ(one.is.before->actual_mode, last) << "seed " << seed;
    } else {
      EXPECT_FALSE(one.is.before) << "seed " << seed << ": " << one.is.before->message;
    }
  }
}

/// The catalogue with a pgpu that has these settings.
std::shared_ptr<const modules::offer> pgpu_with(settings_map settings) {
  std::map<std::string, module_spec, std::less<>> all;
  all["pgpu"].settings = std::move(settings);
  return std::make_shared<const modules::offer>(all);
}

TEST(mode_change, C61_a_node_whose_cards_are_all_cut_is_up_with_its_slices) {
  for (const auto& [setting, value, resource] : {std::tuple{"MIG_STRATEGY", "mixed", "nvidia.com/mig-1g.10gb"},
                                                 {"configMap", "sizes", "nvidia.com/half-a100"}}) {
    lab one;
    one.is.offered = pgpu_with({{setting, value}});
    one.ask("pgpu");
    one.is.wanted.mode = one.is.offered->find("pgpu");
    one.step(), one.daemon_sets(), one.kubelet_starts_pods();
    one.is.allocatable = {{resource, 56}};
    EXPECT_EQ(one.step().status->phase, "Ready") << resource;
    EXPECT_EQ(one.is.before->message, std::string(resource) + " allocatable");

    lab strict;
    strict.ask("pgpu");
    strict.step(), strict.daemon_sets(), strict.kubelet_starts_pods();
    strict.is.allocatable = {{resource, 56}};
    EXPECT_EQ(strict.step().status->phase, "Verifying") << "a plugin that was not told so does not advertise it";
  }
}

TEST(mode_change, C61_the_slices_of_the_old_plugin_are_waited_for) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.ask("vgpu");
  one.step();
  one.is.allocatable = {{"nvidia.com/mig-1g.10gb", 56}};
  one.step(), one.daemon_sets(), one.kubelet_ends_pods();
  EXPECT_FALSE(one.step().label);
  EXPECT_EQ(one.is.before->reason, "StillAdvertised");
  one.is.allocatable = {{"nvidia.com/mig-1g.10gb", 0}};
  EXPECT_EQ(one.step().label, "vgpu");
}

TEST(mode_change, S69_what_gpushare_leaves_in_the_status_holds_no_change_up) {
  lab one;
  one.ask("gpushare");
  one.settle();
  ASSERT_EQ(one.is.before->phase, "Ready");
  one.ask("pgpu");
  one.step(), one.step();
  one.daemon_sets(), one.kubelet_ends_pods(), one.kubelet_advertises();
  const auto leave = [&] {
    for (auto& [name, amount] : one.is.allocatable) amount = name == "aliyun.com/gpu-count" ? 8 : amount;
  };
  leave();
  EXPECT_EQ(one.step().label, "pgpu") << one.is.before->message;
  one.daemon_sets(), one.kubelet_starts_pods(), one.kubelet_advertises(), leave();
  one.step();
  EXPECT_EQ(one.is.before->phase, "Ready");
  EXPECT_FALSE(one.is.taint);

  lab fresh;  // a node that had the original once
  fresh.is.allocatable = {{"aliyun.com/gpu-count", 8}, {"aliyun.com/gpu-mem", 0}};
  fresh.ask("gpushare");
  EXPECT_EQ(fresh.step().label, "gpushare");
}

TEST(mode_change, S3_a_taint_that_keeps_the_plugin_away_is_named_with_the_setting_that_helps) {
  lab one;
  one.ask("pgpu");
  one.step();
  one.is.untolerated = "dedicated=gpu:NoSchedule";
  const auto now = one.step();
  EXPECT_EQ(now.status->reason, "UntoleratedTaint");
  EXPECT_THAT(now.status->message, HasSubstr("dedicated=gpu:NoSchedule"));
  EXPECT_THAT(now.status->message, HasSubstr("spec.modules.pgpu.tolerations"));
  one.is.in_phase = 300s;
  EXPECT_THAT(one.step().status->given_up->message, HasSubstr("spec.modules.pgpu.tolerations"));
}

TEST(mode_change, S2_without_a_policy_the_status_says_so) {
  for (const bool its_turn : {false, true}) {
    lab one;
    one.ask("pgpu");
    one.settle();
    one.is.holders = {lab::pod("train", "pgpu")};
    one.is.governed = false;
    one.off = "pgpu";
    one.refuse("NoPolicy", "there is none");
    one.switch_on();
    one.is.may_begin = its_turn;
    one.is.plugins.clear();
    one.step();
    const auto now = one.step();
    EXPECT_EQ(now.status->phase, its_turn ? "Draining" : "Waiting");
    EXPECT_EQ(now.status->reason, "NoPolicy");
    EXPECT_THAT(now.status->message, HasSubstr("no AcceleratorPolicy named default, and its plugins went with it"));
    EXPECT_THAT(now.status->message, HasSubstr("it has mode pgpu again"));
  }
}

TEST(mode_change, S3_the_condition_Ready_is_that_of_the_mode_the_node_asks_for) {
  lab one;
  one.ask("pgpu");
  one.step();
  EXPECT_EQ(one.is.before->ready, "False");
  const auto began = one.is.before->ready_since;
  EXPECT_EQ(began, one.is.before->since);
  one.is.wall += 60;
  one.settle();
  EXPECT_EQ(one.is.before->ready, "True");
  const auto since = one.is.before->ready_since;
  EXPECT_GT(since, began);
  one.is.wall += 3600;
  one.step();
  EXPECT_EQ(one.is.before->ready_since, since) << "the time of the last change, and no write for it";
  one.refuse("UnknownMode", "what is that");
  one.step();
  EXPECT_EQ(one.is.before->ready, "False") << "it works, in another mode than was asked for";
  EXPECT_GT(one.is.before->ready_since, since);
}

}  // namespace
}  // namespace reconcilers
