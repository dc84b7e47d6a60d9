#include "reconcilers/nodes/mode_change.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "test/facts_in.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using kind = node_intent::kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The facts of a message.
template <class Status>
std::string line_of(const Status& status) {
  return words::line_of(phrase_of(status.code, status.message));
}

/// A node, its kubelet and the DaemonSet controller as far as a change of mode meets them: pods follow the label a few
/// turns later, what is advertised follows the pods.
class mode_lab {
 public:
  node_state is;
  std::vector<mode_step::event> events;
  std::vector<std::string> history;  ///< phases, without repetitions

  mode_lab() { is.wall = 1'767'225'600; }

  void ask(const char* mode) {
    is.wanted = {kind::mode, modules::find(mode), mode, {}, {}};
    switch_on();
  }
  void ask_nothing() { is.wanted = {}; }
  void refuse(const char* reason, const char* message) { is.wanted = {kind::refused, nullptr, "x", reason, {message}}; }
  void switch_on() {
    const auto match = [&](const std::string& name) { return name != switched_off && modules::find(name); };
    is.placed_enabled = match(is.placed);
    is.from_enabled = is.taint && match(is.taint->source);
  }
  std::string switched_off;  ///< a module that is switched off
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
    if (out.tell) events.push_back(*out.tell);
    is.before = out.status;
    if (out.status && (history.empty() || history.back() != out.status->phase)) history.push_back(out.status->phase);
    return out;
  }
  /// The DaemonSet controller deletes pods whose label is gone and makes the one that is wanted.
  void daemon_sets() {
    for (auto& pod : is.plugins) pod.deleting = pod.deleting || pod.module != is.placed;
    const auto same = [&](const plugin_pod& plugin_pod) {
      return plugin_pod.module == is.placed && !plugin_pod.deleting;
    };
    if (!is.placed.empty() && std::ranges::none_of(is.plugins, same))
      is.plugins.push_back({is.placed, "quartermaster/" + is.placed + "-x", "ContainerCreating", false, false});
  }
  void kubelet_ends_pods() {
    std::erase_if(is.plugins, [](const plugin_pod& plugin_pod) { return plugin_pod.deleting; });
  }
  void kubelet_starts_pods() {
    for (auto& pod : is.plugins) pod.ready = !pod.deleting;
  }
  void kubelet_advertises() {
    std::map<std::string, std::int64_t> now;
    for (const auto& [name, amount] : is.allocatable) now[name] = 0;
    for (const auto& pod : is.plugins) {
      const auto* match = modules::find(pod.module);
      if (!pod.ready || pod.deleting || !match) continue;
      for (const auto name : match->resources) now[std::string(name)] = 8;
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
  mode_lab lab;
  lab.ask("pgpu");
  const auto first = lab.step();
  EXPECT_TRUE(first.label);
  EXPECT_EQ(first.label, "pgpu");
  ASSERT_TRUE(first.status);
  EXPECT_EQ(first.status->phase, "Verifying");
  EXPECT_EQ(first.status->requested_mode, "pgpu");
  EXPECT_EQ(first.status->actual_mode, "none");
  lab.settle();
  ASSERT_TRUE(lab.is.before);
  EXPECT_EQ(lab.is.before->phase, "Ready");
  EXPECT_EQ(lab.is.before->actual_mode, "pgpu");
  EXPECT_EQ(line_of(*lab.is.before), "status.node.ready{resources=nvidia.com/gpu}");
  EXPECT_THAT(lab.is.before->message, HasSubstr("nvidia.com/gpu")) << "for people with kubectl";
  ASSERT_EQ(lab.events.size(), 1u);
  EXPECT_EQ(lab.events[0].reason, "Enrolled");
  EXPECT_THAT(lab.history, ElementsAre("Verifying", "Ready"));
}

TEST(mode_change, a_settled_node_is_left_as_it_is) {
  mode_lab lab;
  lab.ask("vgpu");
  lab.settle();
  const auto status = lab.is.before;
  lab.is.wall += 100'000'000;
  lab.is.in_phase = 1h;
  const auto again = lab.step();
  EXPECT_FALSE(again.writes_node());
  EXPECT_EQ(again.status, status) << "the time of a phase stays, or every look would be a write";
  EXPECT_FALSE(again.tell);
  EXPECT_FALSE(again.again_in);
}

TEST(mode_change, S58_a_change_taints_removes_waits_and_only_then_sets) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.ask("mps");
  auto now = lab.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.change, mode_step::taint_change::set);
  EXPECT_EQ(now.taint.to_string(), "pgpu.mps");
  EXPECT_EQ(now.status->phase, "Ready") << "nothing to wait for: one write";
  EXPECT_EQ(now.tell->reason, "Begun");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  now = lab.step();
  EXPECT_EQ(now.label, "") << "never a flip: two plugins would run side by side";
  EXPECT_EQ(now.status->phase, "Removing");
  EXPECT_EQ(now.status->actual_mode, "none");
  lab.daemon_sets();  // the old pod is on its way out
  now = lab.step();
  EXPECT_FALSE(now.writes_node());
  EXPECT_EQ(line_of(*now.status), "status.node.plugin_leaves{pod=quartermaster/pgpu-x,mode=pgpu}");
  lab.kubelet_ends_pods();
  now = lab.step();  // gone, but the kubelet still shows its cards
  EXPECT_FALSE(now.writes_node());
  EXPECT_EQ(now.status->phase, "Enrolling");
  EXPECT_EQ(now.status->reason, "StillAdvertised");
  lab.kubelet_advertises();
  now = lab.step();
  EXPECT_EQ(now.label, "mps");
  EXPECT_TRUE(lab.is.taint) << "until it is verified";
  lab.settle();
  EXPECT_EQ(lab.is.before->actual_mode, "mps");
  EXPECT_FALSE(lab.is.taint);
  EXPECT_THAT(lab.history, ElementsAre("Verifying", "Ready", "Removing", "Enrolling", "Verifying", "Ready"));
}

TEST(mode_change, S58_a_change_waits_for_pods_that_hold_cards_and_names_them) {
  mode_lab node;
  node.ask("pgpu");
  node.settle();
  node.is.holders = {mode_lab::pod("train-1", "pgpu"), mode_lab::pod("train-0", "pgpu")};
  node.ask("vgpu");
  node.step();
  auto now = node.step();
  EXPECT_FALSE(now.writes_node());
  EXPECT_EQ(now.status->phase, "Draining");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  EXPECT_THAT(now.status->blockers, ElementsAre("team/train-0", "team/train-1"));
  EXPECT_EQ(now.blockers.size(), 2u);
  EXPECT_THAT(now.evict, IsEmpty()) << "no one asked for that";
  EXPECT_FALSE(node.step().tell) << "said once";
  node.is.holders.clear();
  now = node.step();
  EXPECT_EQ(now.label, "");
  EXPECT_THAT(now.status->blockers, IsEmpty());
  node.settle();
  EXPECT_EQ(node.is.before->actual_mode, "vgpu");
}

/// An entry of `blockers` with why the pod stays.
std::string blocker(const std::string& pod, const std::string& cause) {
  return words::english("status.node.blocker", {{"pod", pod}, {"cause", words::english("status.node." + cause)}});
}

TEST(mode_change, evicts_what_may_be_evicted_and_names_the_rest) {
  mode_lab node;
  node.ask("pgpu");
  node.settle();
  node.is.evict = true;
  auto daemon = mode_lab::pod("daemon", "pgpu"), guarded = mode_lab::pod("guarded", "pgpu"),
       ending = mode_lab::pod("ending", "pgpu");
  daemon.stays = {"status.node.stays.daemon_set"};
  guarded.refused = {"status.node.refusal.budget"};
  ending.deleting = true;
  node.is.holders = {daemon, guarded, ending, mode_lab::pod("train", "pgpu")};
  node.ask("vgpu");
  EXPECT_THAT(node.step().evict, IsEmpty()) << "the taint is first, or they would come back";
  const auto now = node.step();
  ASSERT_EQ(now.evict.size(), 2u);
  EXPECT_EQ(now.evict[0].pod.name, "guarded");
  EXPECT_EQ(now.evict[1].pod.name, "train");
  EXPECT_THAT(now.status->blockers, ElementsAre(blocker("team/daemon", "stays.daemon_set"), "team/ending",
                                                blocker("team/guarded", "refusal.budget"), "team/train"));
  EXPECT_EQ(now.status->blocker_causes.at("team/daemon").cause, "status.node.stays.daemon_set");
  EXPECT_EQ(words_of(api::blockers_of(*now.status)[2], text::language::zh),
            words::chinese("status.node.blocker",
                           {{"pod", "team/guarded"}, {"cause", words::chinese("status.node.refusal.budget")}}));
  EXPECT_EQ(line_of(*now.status),
            "status.node.drain.many{number=4,detail=list.commas{first=status.node.drain.fixed{number=1},"
            "rest=status.node.drain.refused{number=1}}}");
}

TEST(mode_change, a_drain_that_takes_too_long_leaves_the_node_what_it_was_and_is_tried_again) {
  mode_lab node;
  node.ask("pgpu");
  node.settle();
  node.is.holders = {mode_lab::pod("train", "pgpu")};
  node.ask("vgpu");
  node.step(), node.step();
  node.is.in_phase = 1800s;
  auto now = node.step();
  ASSERT_TRUE(now.status->given_up);
  EXPECT_EQ(now.status->given_up->reason, "DrainTimeout");
  EXPECT_THAT(now.status->given_up->blockers, ElementsAre("team/train"));
  EXPECT_EQ(now.tell->type, controller::event_type::warning);
  EXPECT_EQ(
      line_of(*now.status->given_up),
      "status.node.given_up{mode=vgpu,cause=status.node.drain_timeout.one{list=team/train,seconds=1800},"
      "back=status.node.back_to.mode{mode=pgpu},pods=status.node.again.pod,last=status.node.again.time{minutes=10}}");
  EXPECT_EQ(line_of(*now.status), line_of(*now.status->given_up));
  EXPECT_EQ(now.tell->note, now.status->given_up->message);
  now = node.step();
  EXPECT_EQ(now.status->code, node.is.before->given_up->code) << "what is remembered has its code";
  EXPECT_EQ(now.change, mode_step::taint_change::remove);
  EXPECT_EQ(now.status->phase, "RolledBack");
  EXPECT_EQ(now.status->requested_mode, "vgpu");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  now = node.step();
  EXPECT_FALSE(now.writes_node());
  EXPECT_EQ(now.again_in, 600s);

  mode_lab later = node;
  later.is.wall += 600;
  EXPECT_EQ(later.step().change, mode_step::taint_change::set) << "after a back-off";
  later.step();
  later.is.in_phase = 1800s;
  later.step();
  EXPECT_EQ(later.is.before->given_up->attempts, 2);
  later.step();
  EXPECT_EQ(later.step().again_in, 1200s) << "twice as long";

  mode_lab edited = node;
  ++edited.is.policy_generation;
  EXPECT_EQ(edited.step().change, mode_step::taint_change::set) << "the policy was edited";

  mode_lab other = node;
  other.ask("mps");
  EXPECT_EQ(other.step().change, mode_step::taint_change::set) << "another mode is asked for";

  node.is.holders.clear();
  now = node.step();
  EXPECT_EQ(now.change, mode_step::taint_change::set) << "what prevented it is gone";
  node.settle();
  EXPECT_EQ(node.is.before->actual_mode, "vgpu");
  EXPECT_FALSE(node.is.before->given_up);
}

TEST(mode_change, a_plugin_that_does_not_come_up_is_taken_back_for_the_old_one) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.ask("vgpu");
  const auto turn = [&] { lab.daemon_sets(), lab.kubelet_ends_pods(), lab.kubelet_advertises(); };
  for (int i = 0; i < 4; ++i) lab.step(), turn();
  ASSERT_EQ(lab.is.placed, "vgpu");
  lab.is.in_phase = 300s;
  lab.step();
  EXPECT_EQ(lab.is.before->given_up->reason, "VerifyTimeout");
  EXPECT_EQ(lab.is.taint->to_string(), "pgpu.vgpu");
  lab.events.clear();
  lab.settle();
  EXPECT_EQ(lab.is.placed, "pgpu");
  EXPECT_FALSE(lab.is.taint);
  EXPECT_EQ(lab.is.before->phase, "RolledBack");
  EXPECT_EQ(lab.is.before->actual_mode, "pgpu");
  EXPECT_EQ(lab.is.before->reason, "VerifyTimeout");
}

TEST(mode_change, where_the_old_plugin_does_not_come_back_the_node_is_stuck_and_stays_tainted) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.ask("vgpu");
  const auto turn = [&] { lab.daemon_sets(), lab.kubelet_ends_pods(), lab.kubelet_advertises(); };
  for (int i = 0; i < 4; ++i) lab.step(), turn();
  lab.is.in_phase = 300s;
  for (int i = 0; i < 5; ++i) lab.step(), turn();
  ASSERT_EQ(lab.is.placed, "pgpu");
  lab.is.in_phase = 300s;
  const auto now = lab.step();
  EXPECT_EQ(now.status->phase, "Stuck");
  EXPECT_TRUE(lab.is.taint);
  EXPECT_EQ(now.tell->type, controller::event_type::warning);
  lab.settle();
  EXPECT_EQ(lab.is.before->phase, "RolledBack") << "it is watched on";
}

TEST(mode_change, a_label_put_back_in_mid_flight_cancels_the_change) {
  for (int steps = 1; steps < 6; ++steps) {
    mode_lab lab;
    lab.ask("pgpu");
    lab.settle();
    lab.ask("vgpu");
    for (int i = 0; i < steps; ++i) lab.step(), lab.daemon_sets(), lab.kubelet_ends_pods(), lab.kubelet_advertises();
    lab.ask("pgpu");
    lab.settle();
    EXPECT_EQ(lab.is.placed, "pgpu") << steps;
    EXPECT_EQ(lab.is.before->phase, "Ready") << steps;
    EXPECT_FALSE(lab.is.taint) << steps;
  }
}

TEST(mode_change, pods_that_arrive_late_are_waited_for_although_the_old_plugin_is_gone) {
  mode_lab node;
  node.ask("pgpu");
  node.settle();
  node.ask("vgpu");
  node.step(), node.step();
  node.daemon_sets(), node.kubelet_ends_pods(), node.kubelet_advertises();
  node.is.holders = {mode_lab::pod("late", "pgpu")};
  const auto now = node.step();
  EXPECT_EQ(now.status->phase, "Draining");
  EXPECT_THAT(now.status->blockers, ElementsAre("team/late"));
  EXPECT_FALSE(now.label);
  node.is.in_phase = 1800s;
  node.settle();
  EXPECT_EQ(node.is.placed, "pgpu") << "back to the mode its pods are in";
  EXPECT_EQ(node.is.before->phase, "RolledBack");
}

TEST(mode_change, only_so_many_at_once_and_not_while_the_kubelet_is_silent) {
  mode_lab lab;
  lab.is.may_begin = false;
  lab.ask("pgpu");
  auto now = lab.step();
  EXPECT_FALSE(now.writes_node());
  EXPECT_EQ(now.status->phase, "Waiting");
  EXPECT_EQ(now.status->reason, "MaxUnavailable");
  EXPECT_EQ(line_of(*now.status), "status.node.no_turn");
  lab.is.may_begin = true;
  lab.is.answers = false;
  EXPECT_EQ(lab.step().status->reason, "NodeNotReady");
  lab.is.answers = true;
  lab.settle();
  EXPECT_EQ(lab.is.before->phase, "Ready");
  lab.is.may_begin = false;
  lab.ask("vgpu");
  EXPECT_EQ(lab.step().status->phase, "Waiting");
  EXPECT_EQ(lab.is.before->actual_mode, "pgpu");
  lab.ask("pgpu");
  EXPECT_EQ(lab.step().status->phase, "Ready");
}

TEST(mode_change, a_kubelet_that_falls_silent_in_mid_flight_leaves_the_node_tainted_and_says_why) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.ask("vgpu");
  lab.step(), lab.step();
  lab.daemon_sets();
  lab.is.answers = false;  // the old pod never ends
  lab.step();
  lab.is.in_phase = 300s;
  const auto now = lab.step();
  EXPECT_EQ(now.status->phase, "Stuck");
  EXPECT_EQ(now.status->reason, "PluginLeaving");
  EXPECT_THAT(line_of(*now.status), HasSubstr("rest=status.node.silent_start_kubelet"));
  EXPECT_TRUE(lab.is.taint);
  EXPECT_EQ(lab.is.placed, "") << "never a second plugin";
  lab.is.answers = true;
  lab.settle();
  EXPECT_EQ(lab.is.before->phase, "Ready");
}

TEST(mode_change, a_node_that_never_came_up_in_its_first_mode_goes_back_to_none) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.step(), lab.daemon_sets();
  lab.is.in_phase = 300s;
  auto now = lab.step();
  EXPECT_EQ(now.status->given_up->reason, "VerifyTimeout");
  now = lab.step();
  EXPECT_EQ(now.label, "");
  EXPECT_EQ(now.change, mode_step::taint_change::keep);
  lab.daemon_sets(), lab.kubelet_ends_pods();
  now = lab.step();
  EXPECT_EQ(now.status->phase, "RolledBack");
  EXPECT_EQ(now.status->actual_mode, "none");
  EXPECT_FALSE(is_changing(false, lab.is.placed, now.status->actual_mode)) << "it holds no one up";
}

TEST(mode_change, pods_that_hold_cards_of_the_mode_it_is_in_hinder_nothing) {
  mode_lab node;
  node.ask("pgpu");
  node.settle();
  node.is.holders = {mode_lab::pod("train", "pgpu")};
  EXPECT_EQ(node.step().status->phase, "Ready");
}

TEST(mode_change, asking_for_nothing_removes_the_label_and_then_the_object) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.ask_nothing();
  EXPECT_EQ(lab.step().taint.to_string(), "pgpu.none");
  const auto first = lab.step();
  EXPECT_EQ(first.label, "");
  EXPECT_EQ(first.status->phase, "Removing");
  EXPECT_EQ(first.status->requested_mode, "none");
  lab.settle();
  EXPECT_FALSE(lab.is.before);
  EXPECT_EQ(lab.is.placed, "");
  EXPECT_EQ(lab.events.back().reason, "Released");
  lab.events.clear();
  lab.step();
  EXPECT_THAT(lab.events, IsEmpty());
}

TEST(mode_change, a_node_that_never_asked_gets_no_object) {
  mode_lab lab;
  const auto now = lab.step();
  EXPECT_FALSE(now.label);
  EXPECT_FALSE(now.status);
  EXPECT_FALSE(now.tell);
}

TEST(mode_change, S3_a_refusal_keeps_the_mode_the_node_is_in) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.refuse("UnknownMode", "label says vgpus");
  const auto now = lab.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Refused");
  EXPECT_EQ(now.status->reason, "UnknownMode");
  EXPECT_EQ(now.status->requested_mode, "x");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  ASSERT_TRUE(now.tell);
  EXPECT_EQ(now.tell->type, controller::event_type::warning);
  EXPECT_EQ(now.tell->note, "label says vgpus");
  EXPECT_FALSE(lab.step().tell) << "said once";
  lab.refuse("UnknownMode", "label says mpss");
  EXPECT_TRUE(lab.step().tell) << "another mistake is reported again";
}

TEST(mode_change, S3_a_refused_node_without_a_mode_has_an_object_that_says_why) {
  mode_lab lab;
  lab.refuse("ConflictingLabels", "two");
  const auto now = lab.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Refused");
  EXPECT_EQ(now.status->actual_mode, "none");
  lab.ask_nothing();
  const auto after = lab.step();
  EXPECT_FALSE(after.status);
  EXPECT_FALSE(after.tell) << "it never had a mode to be released from";
}

TEST(mode_change, S2_a_module_switched_off_lets_its_nodes_go_when_their_pods_have_ended) {
  mode_lab node;
  node.ask("pgpu");
  node.settle();
  node.is.holders = {mode_lab::pod("train", "pgpu")};
  node.refuse("ModuleDisabled", "off");
  node.switched_off = "pgpu";
  node.switch_on();
  node.step();
  auto now = node.step();
  EXPECT_EQ(now.status->phase, "Draining");
  node.is.in_phase = 1800s;
  now = node.step();
  EXPECT_EQ(now.status->phase, "Stuck") << "there is no way back to a module that is off";
  EXPECT_FALSE(now.label);
  node.is.holders.clear();
  node.settle();
  EXPECT_EQ(node.is.placed, "");
  EXPECT_EQ(node.is.before->phase, "Disabled");
  EXPECT_FALSE(node.is.taint);
}

TEST(mode_change, S2_asking_for_a_module_that_is_off_keeps_the_mode_that_is_on) {
  mode_lab lab;
  lab.refuse("ModuleDisabled", "off");
  auto now = lab.step();
  EXPECT_EQ(now.status->phase, "Disabled");
  EXPECT_EQ(now.tell->type, controller::event_type::warning);
  EXPECT_FALSE(lab.step().tell);
  lab.ask("pgpu");
  lab.settle();
  lab.refuse("ModuleDisabled", "off");
  now = lab.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Refused");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
}

TEST(mode_change, a_node_left_to_others_gives_up_our_mode) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.is.wanted = {kind::left_alone, nullptr, "pgpu-dra", "LeftAlone", {"the DRA driver"}};
  EXPECT_TRUE(lab.step().writes_node());
  lab.settle();
  EXPECT_EQ(lab.is.placed, "");
  ASSERT_TRUE(lab.is.before);
  EXPECT_EQ(lab.is.before->phase, "LeftAlone");
  EXPECT_EQ(lab.is.before->actual_mode, "none");
}

TEST(mode_change, F25_our_label_removed_or_changed_by_hand_comes_back) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.is.placed = "";
  const auto removed = lab.step();
  EXPECT_TRUE(removed.label);
  EXPECT_EQ(removed.label, "pgpu");
  lab.is.placed = "mps";
  const auto changed = lab.step();
  EXPECT_EQ(changed.taint.to_string(), "mps.pgpu");
  lab.settle();
  EXPECT_EQ(lab.is.placed, "pgpu");
  EXPECT_EQ(lab.is.before->phase, "Ready");
  lab.is.placed = "no-such-module";
  lab.switch_on();
  lab.settle();
  EXPECT_EQ(lab.is.placed, "pgpu");
}

TEST(mode_change, S74_waits_while_another_plugin_advertises_and_says_which_resource) {
  mode_lab lab;
  lab.is.allocatable = {{"nvidia.com/gpu", 8}};
  lab.ask("vgpu");
  const auto now = lab.step();
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Enrolling");
  EXPECT_EQ(line_of(*now.status), "status.node.still_advertised{resource=nvidia.com/gpu}");
}

TEST(mode_change, S74_what_the_new_mode_is_called_must_not_be_there_before_its_plugin) {
  mode_lab lab;
  lab.is.allocatable = {{"nvidia.com/gpu", 8}};
  lab.ask("pgpu");
  EXPECT_EQ(lab.step().status->reason, "StillAdvertised") << "a plugin we do not know by name";
  EXPECT_EQ(lab.is.placed, "");
  lab.is.allocatable.clear();
  lab.settle();
  EXPECT_EQ(lab.is.before->phase, "Ready");
  lab.is.placed = "";
  EXPECT_EQ(lab.step().label, "pgpu") << "a label taken off by hand is put back while the plugin is still there";
}

TEST(mode_change, waits_while_a_plugin_that_no_module_has_gives_out_the_cards) {
  for (const auto* name : {"nvidia.com/gpu-10gb", "volcano.sh/vgpu-number", "k8s.amazonaws.com/vgpu"}) {
    mode_lab lab;
    lab.is.allocatable = {{"example.com/fpga", 2}, {name, 40}};
    lab.ask("pgpu");
    const auto now = lab.step();
    EXPECT_FALSE(now.label) << name;
    EXPECT_EQ(now.status->reason, "StillAdvertised") << name;
    EXPECT_THAT(now.status->message, HasSubstr(name));
    lab.is.allocatable.pop_back();
    lab.settle();
    EXPECT_EQ(lab.is.before->phase, "Ready") << name;
  }
}

/// A node with someone else's plugin that advertises whole cards, one of them held.
mode_lab with_theirs() {
  mode_lab node;
  node.is.allocatable = {{"nvidia.com/gpu", 8}};
  node.is.holders = {mode_lab::pod("train", "pgpu")};
  node.ask("pgpu");
  node.is.wanted.foreign = {{{"DaemonSet kube-system/theirs runs here"}, {"give it an affinity"}}};
  return node;
}

TEST(mode_change, S74_taking_over_drains_asks_for_the_other_plugin_to_go_and_waits_until_nothing_is_left_of_it) {
  auto with_their = with_theirs();
  auto now = with_their.step();
  EXPECT_EQ(now.taint.to_string(), "Foreign.pgpu");
  EXPECT_FALSE(now.label);
  EXPECT_FALSE(now.take_over) << "pods first: they may need the plugin they have";
  now = with_their.step();
  EXPECT_EQ(now.status->phase, "Draining");
  EXPECT_THAT(now.status->blockers, ElementsAre("team/train")) << "though it holds what the new mode is called";
  with_their.is.holders.clear();
  now = with_their.step();
  EXPECT_EQ(now.take_over, true);
  EXPECT_FALSE(now.label);
  EXPECT_EQ(now.status->phase, "Removing");
  EXPECT_EQ(now.status->reason, "ForeignPlugin");
  EXPECT_THAT(now.status->message,
              words::has_in_order({"DaemonSet kube-system/theirs runs here", "give it an affinity"}));
  with_their.is.taken_over = true;
  EXPECT_FALSE(with_their.step().writes_node());
  with_their.is.wanted.foreign.clear();
  now = with_their.step();
  EXPECT_FALSE(now.label) << "what it advertised is still there";
  EXPECT_EQ(now.status->reason, "StillAdvertised");
  with_their.is.allocatable = {{"nvidia.com/gpu", 0}};
  now = with_their.step();
  EXPECT_EQ(now.label, "pgpu");
  with_their.settle();
  EXPECT_EQ(with_their.is.before->phase, "Ready");
  EXPECT_FALSE(with_their.is.taint);
  with_their.ask_nothing();
  with_their.settle();
  EXPECT_EQ(with_their.is.placed, "");
  EXPECT_EQ(with_their.step().take_over, false) << "the other plugin may be back";
}

TEST(mode_change, S74_a_plugin_that_does_not_go_is_left_in_peace_and_not_tried_again_by_itself) {
  auto with_their = with_theirs();
  with_their.is.holders.clear();
  with_their.step(), with_their.step();
  with_their.is.taken_over = true;
  with_their.is.in_phase = 1800s;
  auto now = with_their.step();
  ASSERT_TRUE(now.status->given_up);
  EXPECT_EQ(now.status->given_up->reason, "ForeignPlugin");
  EXPECT_THAT(
      line_of(*now.status),
      words::has_in_order({"status.node.given_up{", "back=status.node.back_to.theirs,last=status.node.again.plugin"}));
  now = with_their.step();
  EXPECT_EQ(now.change, mode_step::taint_change::remove);
  EXPECT_EQ(now.take_over, false);
  EXPECT_EQ(now.status->phase, "RolledBack");
  EXPECT_EQ(now.status->actual_mode, "none");
  with_their.is.taken_over = false;
  with_their.is.wall += 100'000;
  now = with_their.step();
  EXPECT_FALSE(now.writes_node()) << "pods are not sent away again and again";
  EXPECT_FALSE(now.again_in);
  with_their.is.wanted.foreign.clear(), with_their.is.allocatable.clear();
  with_their.settle();
  EXPECT_EQ(with_their.is.before->phase, "Ready");
  EXPECT_EQ(with_their.is.placed, "pgpu");
}

TEST(mode_change, S74_taking_over_can_be_called_off_at_any_moment) {
  for (int steps = 1; steps < 5; ++steps) {
    auto with_their = with_theirs();
    for (int i = 0; i < steps; ++i) {
      if (with_their.step().take_over) with_their.is.taken_over = true;
      if (i == 1) with_their.is.holders.clear();
    }
    with_their.ask_nothing();
    const auto now = with_their.step();
    EXPECT_EQ(now.change, mode_step::taint_change::remove) << steps;
    EXPECT_EQ(now.take_over.has_value(), with_their.is.taken_over) << steps;
    EXPECT_FALSE(now.status) << steps;
  }
}

TEST(mode_change, S74_a_plugin_that_comes_back_in_mid_flight_is_no_second_one_for_long) {
  auto with_their = with_theirs();
  with_their.is.holders.clear(), with_their.step(), with_their.step();
  const auto foreign = with_their.is.wanted.foreign;
  with_their.is.taken_over = true, with_their.is.wanted.foreign.clear(), with_their.is.allocatable.clear();
  with_their.step(), with_their.daemon_sets(), with_their.kubelet_starts_pods(), with_their.kubelet_advertises();
  ASSERT_EQ(with_their.is.placed, "pgpu");
  with_their.is.wanted.foreign = foreign;
  auto now = with_their.step();
  EXPECT_EQ(now.status->reason, "ForeignPlugin");
  EXPECT_TRUE(with_their.is.taint) << "no pod comes while there are two";
  with_their.is.in_phase = 300s;
  with_their.step();
  with_their.settle();
  EXPECT_EQ(with_their.is.placed, "");
  EXPECT_EQ(with_their.is.before->phase, "RolledBack");
}

// A plugin pod that was deleted by force leaves its successor without a socket.
TEST(mode_change, S4_a_plugin_that_its_kubelet_has_lost_is_restarted_once) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.is.may_restart = true;
  EXPECT_FALSE(lab.step().restart);
  lab.is.allocatable = {{"nvidia.com/gpu", 0}};
  lab.step();
  lab.is.in_phase = 9s;
  EXPECT_FALSE(lab.step().restart) << "a kubelet that has just started needs a moment";
  lab.is.in_phase = 10s;
  const auto now = lab.step();
  ASSERT_TRUE(now.restart);
  EXPECT_TRUE(now.restart->name.contains("pgpu")) << now.restart->name;
  EXPECT_EQ(now.status->reason, "NothingAdvertised");
  EXPECT_EQ(line_of(*now.status), "status.node.nothing_advertised{pod=quartermaster/pgpu-x,resources=nvidia.com/gpu}");
  lab.is.may_restart = false;
  EXPECT_FALSE(lab.step().restart);
  lab.is.may_restart = true;
  lab.is.answers = false;
  EXPECT_FALSE(lab.step().restart) << "its kubelet is not there";
  lab.is.answers = true;
  lab.is.allocatable.clear();
  EXPECT_FALSE(lab.step().restart) << "this plugin has never offered anything";
  lab.is.allocatable = {{"nvidia.com/gpu", 2}};
  EXPECT_FALSE(lab.step().restart) << "it works";
}

TEST(mode_change, S4_a_plugin_whose_pods_need_it_is_restarted_without_pods_only) {
  mode_lab lab;
  lab.ask("vgpu");
  lab.settle();
  lab.is.may_restart = true;
  lab.is.allocatable = {{"tencent.com/vcuda-core", 0}, {"tencent.com/vcuda-memory", 0}};
  lab.step();
  lab.is.in_phase = 60s;
  ASSERT_TRUE(lab.step().restart);
  lab.is.holders.emplace_back();
  EXPECT_FALSE(lab.step().restart);
}

TEST(mode_change, S4_a_plugin_that_fails_is_explained_and_then_called_stuck) {
  mode_lab lab;
  lab.ask("vgpu");
  lab.settle();
  lab.is.plugins.clear(), lab.is.allocatable.clear();
  lab.events.clear();
  lab.step();
  auto now = lab.step();
  EXPECT_EQ(now.status->reason, "PluginStarting");
  EXPECT_EQ(now.again_in, 10s) << "the time the plugin is given before its stages are reported";
  lab.is.in_phase = 10s;
  now = lab.step();
  EXPECT_EQ(now.status->reason, "NoPlugin");
  EXPECT_EQ(now.again_in, 290s);
  lab.daemon_sets();
  now = lab.step();
  EXPECT_EQ(now.status->reason, "PluginNotReady");
  EXPECT_EQ(line_of(*now.status), "status.node.not_ready_because{pod=quartermaster/vgpu-x,cause=ContainerCreating}");
  lab.kubelet_starts_pods();
  lab.is.allocatable = {{"tencent.com/vcuda-core", 100}};
  now = lab.step();
  EXPECT_EQ(now.status->reason, "NothingAdvertised") << "every resource of the module counts";
  EXPECT_FALSE(now.tell);
  lab.is.in_phase = 300s;
  now = lab.step();
  EXPECT_EQ(now.status->phase, "Stuck");
  EXPECT_EQ(now.status->reason, "NothingAdvertised");
  EXPECT_EQ(now.tell->reason, "VerifyTimeout");
  EXPECT_FALSE(now.again_in);
  lab.is.in_phase = 0s;
  now = lab.step();
  EXPECT_EQ(now.status->phase, "Stuck") << "and stays so";
  EXPECT_FALSE(now.tell);
  lab.kubelet_advertises();
  now = lab.step();
  EXPECT_EQ(now.status->phase, "Ready") << "it is watched on";
  EXPECT_EQ(now.tell->reason, "Enrolled");
}

TEST(mode_change, a_plugin_that_restarts_keeps_the_mode_and_is_no_news) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.events.clear();
  lab.is.plugins[0].ready = false;
  lab.kubelet_advertises();
  auto now = lab.step();
  EXPECT_EQ(now.status->phase, "Verifying");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  lab.kubelet_starts_pods();
  lab.kubelet_advertises();
  now = lab.step();
  EXPECT_EQ(now.status->phase, "Ready");
  EXPECT_THAT(lab.events, IsEmpty());
}

/// Every pair of modes, killed after any step (which is the same as looking again with nothing remembered but the
/// API): ends in the mode asked for last, and never sets a label while a plugin of another mode is there.
TEST(mode_change, S58_F1_every_change_ends_where_it_was_asked_to_whatever_happens_in_between) {
  const char* modes[] = {"pgpu", "vgpu", "mps", ""};
  std::mt19937 random(7);
  for (int seed = 0; seed < test::rounds(200, 2'000); ++seed) {
    mode_lab node;
    const char* last = "";
    for (int turn = 0; turn < 80; ++turn) {
      switch (random() % 12) {
        case 0:
          last = modes[random() % 4];
          if (*last)
            node.ask(last);
          else
            node.ask_nothing();
          break;
        case 1:
          node.daemon_sets();
          break;
        case 2:
          node.kubelet_ends_pods();
          break;
        case 3:
          node.kubelet_starts_pods();
          break;
        case 4:
          node.kubelet_advertises();
          break;
        case 5:
          node.is.before.reset();  // AcceleratorNode lost
          break;
        case 6:
          node.is.in_phase = 1h;  // whatever it waits for takes too long
          break;
        case 7:
          node.is.wall += 400;
          break;
        case 8:
          node.is.answers = random() % 2 == 0;
          break;
        case 9:
          node.is.holders.clear();
          if (random() % 3 == 0 && !node.is.placed.empty() && !node.is.taint)
            node.is.holders = {mode_lab::pod("train", node.is.placed.c_str())};
          break;
        default: {
          const auto was = node.is.placed;
          const auto out = node.step();
          if (out.label && !out.label->empty()) {
            for (const auto& pod : node.is.plugins)
              ASSERT_EQ(pod.module, *out.label) << "seed " << seed << " turn " << turn;
            for (const auto& pod : node.is.holders)
              ASSERT_EQ(pod.mode->name, *out.label) << "seed " << seed << " turn " << turn;
          }
          if (out.label && out.label->empty() && !was.empty()) {
            for (const auto& pod : node.is.holders)
              ASSERT_NE(pod.mode->name, was) << "seed " << seed << " turn " << turn;
          }
        }
      }
    }
    node.is.holders.clear();
    node.is.answers = true;
    node.is.in_phase = 0ms;
    node.is.wall += 100'000;
    for (int i = 0; i < 3; ++i) node.settle();
    EXPECT_EQ(node.is.placed, last) << "seed " << seed;
    EXPECT_FALSE(node.is.taint) << "seed " << seed;
    if (*last) {
      ASSERT_TRUE(node.is.before) << "seed " << seed;
      EXPECT_EQ(node.is.before->phase, "Ready") << "seed " << seed << ": " << node.is.before->message;
      EXPECT_EQ(node.is.before->actual_mode, last) << "seed " << seed;
    } else {
      EXPECT_FALSE(node.is.before) << "seed " << seed << ": " << node.is.before->message;
    }
  }
}

/// The catalogue with a pgpu that has these settings.
std::shared_ptr<const modules::offer> pgpu_with(settings_map settings) {
  std::map<std::string, module_spec, std::less<>> all;
  all["pgpu"].settings = std::move(settings);
  return std::make_shared<const modules::offer>(all);
}

TEST(mode_change, a_node_whose_cards_are_all_cut_is_up_with_its_slices) {
  for (const auto& [setting, value, resource] : {std::tuple{"MIG_STRATEGY", "mixed", "nvidia.com/mig-1g.10gb"},
                                                 {"configMap", "sizes", "nvidia.com/half-a100"}}) {
    mode_lab node;
    node.is.offered = pgpu_with({{setting, value}});
    node.ask("pgpu");
    node.is.wanted.mode = node.is.offered->find("pgpu");
    node.step(), node.daemon_sets(), node.kubelet_starts_pods();
    node.is.allocatable = {{resource, 56}};
    EXPECT_EQ(node.step().status->phase, "Ready") << resource;
    EXPECT_EQ(line_of(*node.is.before), "status.node.ready{resources=" + std::string(resource) + "}");

    mode_lab strict;
    strict.ask("pgpu");
    strict.step(), strict.daemon_sets(), strict.kubelet_starts_pods();
    strict.is.allocatable = {{resource, 56}};
    EXPECT_EQ(strict.step().status->phase, "Verifying") << "a plugin that was not told so does not advertise it";
  }
}

TEST(mode_change, the_slices_of_the_old_plugin_are_waited_for) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.settle();
  lab.ask("vgpu");
  lab.step();
  lab.is.allocatable = {{"nvidia.com/mig-1g.10gb", 56}};
  lab.step(), lab.daemon_sets(), lab.kubelet_ends_pods();
  EXPECT_FALSE(lab.step().label);
  EXPECT_EQ(lab.is.before->reason, "StillAdvertised");
  lab.is.allocatable = {{"nvidia.com/mig-1g.10gb", 0}};
  EXPECT_EQ(lab.step().label, "vgpu");
}

TEST(mode_change, S69_what_gpushare_leaves_in_the_status_holds_no_change_up) {
  mode_lab node;
  node.ask("gpushare");
  node.settle();
  ASSERT_EQ(node.is.before->phase, "Ready");
  node.ask("pgpu");
  node.step(), node.step();
  node.daemon_sets(), node.kubelet_ends_pods(), node.kubelet_advertises();
  const auto leave = [&] {
    for (auto& [name, amount] : node.is.allocatable) amount = name == "aliyun.com/gpu-count" ? 8 : amount;
  };
  leave();
  EXPECT_EQ(node.step().label, "pgpu") << node.is.before->message;
  node.daemon_sets(), node.kubelet_starts_pods(), node.kubelet_advertises(), leave();
  node.step();
  EXPECT_EQ(node.is.before->phase, "Ready");
  EXPECT_FALSE(node.is.taint);

  mode_lab fresh;  // a node that had the original once
  fresh.is.allocatable = {{"aliyun.com/gpu-count", 8}, {"aliyun.com/gpu-mem", 0}};
  fresh.ask("gpushare");
  EXPECT_EQ(fresh.step().label, "gpushare");
}

TEST(mode_change, S3_a_taint_that_keeps_the_plugin_away_is_named_with_the_setting_that_helps) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.step();
  lab.is.untolerated = "dedicated=gpu:NoSchedule";
  const auto now = lab.step();
  EXPECT_EQ(now.status->reason, "UntoleratedTaint");
  EXPECT_THAT(line_of(*now.status),
              words::has_in_order({"status.node.untolerated{", "taints=dedicated=gpu:NoSchedule"}));
  lab.is.in_phase = 300s;
  EXPECT_THAT(line_of(*lab.step().status->given_up), HasSubstr("cause=status.node.untolerated{"));
}

TEST(mode_change, S2_without_a_policy_the_status_says_so) {
  for (const bool its_turn : {false, true}) {
    mode_lab node;
    node.ask("pgpu");
    node.settle();
    node.is.holders = {mode_lab::pod("train", "pgpu")};
    node.is.governed = false;
    node.switched_off = "pgpu";
    node.refuse("NoPolicy", "there is none");
    node.switch_on();
    node.is.may_begin = its_turn;
    node.is.plugins.clear();
    node.step();
    const auto now = node.step();
    EXPECT_EQ(now.status->phase, its_turn ? "Draining" : "Waiting");
    EXPECT_EQ(now.status->reason, "NoPolicy");
    EXPECT_THAT(line_of(*now.status), HasSubstr("status.node.no_policy{mode=pgpu}"));
  }
}

TEST(mode_change, S3_the_condition_Ready_is_that_of_the_mode_the_node_asks_for) {
  mode_lab lab;
  lab.ask("pgpu");
  lab.step();
  EXPECT_EQ(lab.is.before->ready, "False");
  const auto began = lab.is.before->ready_since;
  EXPECT_EQ(began, lab.is.before->since);
  lab.is.wall += 60;
  lab.settle();
  EXPECT_EQ(lab.is.before->ready, "True");
  const auto since = lab.is.before->ready_since;
  EXPECT_GT(since, began);
  lab.is.wall += 3600;
  lab.step();
  EXPECT_EQ(lab.is.before->ready_since, since) << "the time of the last change, and no write for it";
  lab.refuse("UnknownMode", "what is that");
  lab.step();
  EXPECT_EQ(lab.is.before->ready, "False") << "it works, in another mode than was asked for";
  EXPECT_GT(lab.is.before->ready_since, since);
}

}  // namespace
}  // namespace reconcilers
