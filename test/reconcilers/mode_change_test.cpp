#include "reconcilers/mode_change.hpp"

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

/// A node, its kubelet and the DaemonSet controller as far as a change of mode meets them: pods follow the label a few
/// turns later, what is advertised follows the pods.
class lab {
 public:
  node_state is;
  std::vector<mode_step::event> told;
  std::vector<std::string> history;  ///< phases, without repetitions

  lab() { is.now = "2026-01-01T00:00:00Z"; }

  void ask(const char* mode) {
    is.wanted = {kind::mode, modules::find(mode), mode, {}, {}};
    switch_on();
  }
  void ask_nothing() { is.wanted = {}; }
  void refuse(const char* reason, const char* message) { is.wanted = {kind::refused, nullptr, "x", reason, message}; }
  void switch_on() { is.placed_enabled = modules::find(is.placed) != nullptr; }

  mode_step step() {
    const auto out = next_step(is);
    if (out.relabel) is.placed = out.label;
    is.placed_enabled = is.placed_enabled || modules::find(is.placed);
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
  EXPECT_TRUE(first.relabel);
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
  one.is.now = "2030-01-01T00:00:00Z";
  one.is.in_phase = 1h;
  const auto again = one.step();
  EXPECT_FALSE(again.relabel);
  EXPECT_EQ(again.status, status) << "the time of a phase stays, or every look would be a write";
  EXPECT_FALSE(again.tell);
  EXPECT_FALSE(again.again_in);
}

TEST(mode_change, C61_a_change_removes_waits_and_only_then_sets) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.ask("mps");
  auto now = one.step();
  EXPECT_TRUE(now.relabel);
  EXPECT_EQ(now.label, "") << "never a flip: two plugins would run side by side";
  EXPECT_EQ(now.status->phase, "Removing");
  EXPECT_EQ(now.status->actual_mode, "none");
  one.daemon_sets();  // the old pod is on its way out
  now = one.step();
  EXPECT_FALSE(now.relabel);
  EXPECT_THAT(now.status->message, HasSubstr("quartermaster/pgpu-x"));
  one.kubelet_ends_pods();
  now = one.step();  // gone, but the kubelet still shows its cards
  EXPECT_FALSE(now.relabel);
  EXPECT_EQ(now.status->phase, "Enrolling");
  EXPECT_EQ(now.status->reason, "StillAdvertised");
  one.kubelet_advertises();
  now = one.step();
  EXPECT_TRUE(now.relabel);
  EXPECT_EQ(now.label, "mps");
  one.settle();
  EXPECT_EQ(one.is.before->actual_mode, "mps");
  EXPECT_THAT(one.history, ElementsAre("Verifying", "Ready", "Removing", "Enrolling", "Verifying", "Ready"));
}

TEST(mode_change, C62_a_change_waits_for_pods_that_hold_cards_and_names_them) {
  lab one;
  one.ask("pgpu");
  one.settle();
  const auto* pgpu = modules::find("pgpu");
  one.is.holders = {{"team/train-1", pgpu}, {"team/train-0", pgpu}};
  one.ask("vgpu");
  auto now = one.step();
  EXPECT_FALSE(now.relabel);
  EXPECT_EQ(now.status->phase, "Draining");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
  EXPECT_THAT(now.status->blockers, ElementsAre("team/train-0", "team/train-1"));
  EXPECT_EQ(now.tell->reason, "PodsHoldCards");
  EXPECT_FALSE(one.step().tell) << "said once";
  one.is.holders.clear();
  now = one.step();
  EXPECT_TRUE(now.relabel);
  EXPECT_THAT(now.status->blockers, IsEmpty());
  one.settle();
  EXPECT_EQ(one.is.before->actual_mode, "vgpu");
}

TEST(mode_change, pods_that_hold_cards_of_the_mode_it_is_in_hinder_nothing) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.holders = {{"team/train", modules::find("pgpu")}};
  EXPECT_EQ(one.step().status->phase, "Ready");
}

TEST(mode_change, asking_for_nothing_removes_the_label_and_then_the_object) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.ask_nothing();
  const auto first = one.step();
  EXPECT_TRUE(first.relabel);
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
  EXPECT_FALSE(now.relabel);
  EXPECT_FALSE(now.status);
  EXPECT_FALSE(now.tell);
}

TEST(mode_change, S3_a_refusal_keeps_the_mode_the_node_is_in) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.refuse("UnknownMode", "label says vgpus");
  const auto now = one.step();
  EXPECT_FALSE(now.relabel);
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
  EXPECT_FALSE(now.relabel);
  EXPECT_EQ(now.status->phase, "Refused");
  EXPECT_EQ(now.status->actual_mode, "none");
  one.ask_nothing();
  const auto after = one.step();
  EXPECT_FALSE(after.status);
  EXPECT_FALSE(after.tell) << "it never had a mode to be released from";
}

TEST(mode_change, S2_a_module_switched_off_lets_its_nodes_go_at_once) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.holders = {{"team/train", modules::find("pgpu")}};
  one.refuse("ModuleDisabled", "off");
  one.is.placed_enabled = false;
  const auto now = next_step(one.is);
  EXPECT_TRUE(now.relabel);
  EXPECT_EQ(now.label, "");
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
  EXPECT_FALSE(now.relabel);
  EXPECT_EQ(now.status->phase, "Refused");
  EXPECT_EQ(now.status->actual_mode, "pgpu");
}

TEST(mode_change, a_node_left_to_others_gives_up_our_mode) {
  lab one;
  one.ask("pgpu");
  one.settle();
  one.is.wanted = {kind::left_alone, nullptr, "pgpu-dra", "LeftAlone", "the DRA driver"};
  EXPECT_TRUE(one.step().relabel);
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
  EXPECT_TRUE(removed.relabel);
  EXPECT_EQ(removed.label, "pgpu");
  one.is.placed = "mps";
  const auto changed = one.step();
  EXPECT_TRUE(changed.relabel);
  EXPECT_EQ(changed.label, "pgpu") << "no plugin of mps has come yet";
  one.settle();
  EXPECT_EQ(one.is.placed, "pgpu");
  EXPECT_EQ(one.is.before->phase, "Ready");
  one.is.placed = "no-such-module";
  one.is.placed_enabled = false;
  one.settle();
  EXPECT_EQ(one.is.placed, "pgpu");
}

TEST(mode_change, S74_waits_while_another_plugin_advertises_and_says_which_resource) {
  lab one;
  one.is.allocatable = {{"nvidia.com/gpu", 8}};
  one.ask("vgpu");
  const auto now = one.step();
  EXPECT_FALSE(now.relabel);
  EXPECT_EQ(now.status->phase, "Enrolling");
  EXPECT_THAT(now.status->message, HasSubstr("nvidia.com/gpu"));
  EXPECT_THAT(now.status->message, HasSubstr("another device plugin"));
}

TEST(mode_change, S4_a_plugin_that_does_not_come_up_is_explained_and_then_called_stuck) {
  lab one;
  one.ask("vgpu");
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
  EXPECT_EQ(now.status->message, "plugin pod quartermaster/vgpu-x is not ready: ContainerCreating");
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
TEST(mode_change, C61_F1_every_change_ends_where_it_was_asked_to_whatever_happens_in_between) {
  const char* modes[] = {"pgpu", "vgpu", "mps", ""};
  std::mt19937 random(7);
  for (int seed = 0; seed < 400; ++seed) {
    lab one;
    const char* last = "";
    for (int turn = 0; turn < 60; ++turn) {
      switch (random() % 8) {
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
          one.is.before.reset();
          break;  // AcceleratorNode lost
        default: {
          const auto out = one.step();
          if (!out.relabel || out.label.empty()) break;
          for (const auto& pod : one.is.plugins)
            EXPECT_EQ(pod.module, out.label) << "seed " << seed << " turn " << turn;
        }
      }
    }
    one.settle();
    EXPECT_EQ(one.is.placed, last) << "seed " << seed;
    if (*last) {
      ASSERT_TRUE(one.is.before) << "seed " << seed;
      EXPECT_EQ(one.is.before->phase, "Ready") << "seed " << seed << ": " << one.is.before->message;
      EXPECT_EQ(one.is.before->actual_mode, last) << "seed " << seed;
    } else {
      EXPECT_FALSE(one.is.before) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace reconcilers
