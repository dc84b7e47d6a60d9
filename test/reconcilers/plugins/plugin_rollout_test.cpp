#include "reconcilers/plugins/plugin_rollout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "reconcilers/modules/node_sets.hpp"
#include "test/facts_in.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using kind = rollout_step::kind;
using strategy = modules::rollout::strategy;
using testing::HasSubstr;
using words::line_of;

constexpr auto gpu_resource = "nvidia.com/gpu";
const std::string v1 = "shape.1", v2 = "shape.2", other_version = "different.3";

std::string progress(int done, int nodes) {
  return "status.rollout.progress{done=" + std::to_string(done) +
         ",nodes=status.nodes.many{number=" + std::to_string(nodes) + "}}";
}
/// Progress, and what it waits for.
std::string waiting(int done, int nodes, const std::string& rest) {
  return "list.semicolons{first=" + progress(done, nodes) + ",rest=status.rollout." + rest + "}}";
}

/// The nodes of a module, their kubelets and the DaemonSet controller. A version may be broken: its pods do not become
/// ready, or become ready and find no card.
class lab {
 public:
  rollout_state is;
  std::set<std::string> never_ready, no_cards;  ///< versions
  std::vector<std::string> order;               ///< nodes whose plugin was replaced
  std::chrono::milliseconds now{0};

  explicit lab(std::size_t nodes, strategy update_strategy = strategy::always) {
    is.method = update_strategy;
    is.resources = {gpu_resource};
    is.wall = 1'767'225'600;
    for (std::size_t i = 0; i < nodes; ++i) {
      auto& node = is.nodes.emplace_back();
      node.name = "n" + std::to_string(i);
      node.set = "plugin-ds";
      node.wanted = v1;
      make(node);
      come_up(node);
    }
  }

  rollout_node& at(std::size_t i) { return is.nodes.at(i); }
  void want(const std::string& version) {
    for (auto& node : is.nodes) node.wanted = version;
  }
  rollout_step step() {
    if (!is_well(is)) {
      well_.reset();
    } else if (!well_ || well_->first != is.record) {
      well_ = {is.record, now};
    }
    is.well_for = well_ ? now - well_->second : 0ms;
    auto out = next_rollout_step(is);
    if (out.clear) {
      EXPECT_TRUE(is.record && is.record->set == *out.clear);
      is.record.reset();
    }
    if (out.record) is.record = out.record;
    if (out.remove) {
      EXPECT_TRUE(is.record && is.record->node == out.remove->node) << "it is written down before it is done";
      for (auto& node : is.nodes) {
        if (node.name != out.remove->node) continue;
        EXPECT_EQ(node.pods.front().id, out.remove->pod.id);
        EXPECT_TRUE(node.answers && !node.changing);
        EXPECT_FALSE((is.method == strategy::when_idle || changes_chooser(node)) && !node.users.empty())
            << node.name << " is in use";
        order.push_back(node.name);
        node.pods.front().deleting = true;
      }
    }
    return out;
  }
  void pass(std::chrono::milliseconds time) {
    now += time;
    is.wall += std::chrono::duration_cast<std::chrono::seconds>(time).count();
  }
  /// The kubelet and the DaemonSet controller do everything there is to do.
  void cluster(rollout_node& node) {
    if (!node.answers) return;
    if (!node.pods.empty() && node.pods.front().deleting) {
      node.pods.clear();
      node.allocatable = {{gpu_resource, 0}};
    } else if (node.pods.empty()) {
      make(node);
    } else if (!node.pods.front().ready) {
      come_up(node);
    }
  }
  void cluster() {
    for (auto& node : is.nodes) cluster(node);
  }
  /// Until nothing more happens, at most so many rounds of ten seconds.
  rollout_step run(int rounds = 100) {
    rollout_step last;
    for (int i = 0; i < rounds; ++i) {
      last = step();
      cluster();
      cluster();
      cluster();
      pass(10s);
      if (last.is == kind::done && !is.record) break;
    }
    return last;
  }
  std::string versions() const {
    std::string out;
    for (const auto& node : is.nodes) out += node.pods.empty() ? '-' : node.pods.front().made_from.back();
    return out;
  }
  /// Whose plugin we took away and whose new one is not up or finds no card: never more than one.
  int between() const {
    int out = 0;
    for (const auto& node : is.nodes) {
      const bool touched = std::ranges::find(order, node.name) != order.end();
      const auto* pod = node.pods.empty() ? nullptr : &node.pods.front();
      const bool up = pod && pod->ready && !pod->deleting && kube::amount(node.allocatable, gpu_resource) > 0;
      out += touched && node.answers && !node.changing && !up ? 1 : 0;
    }
    return out;
  }

 private:
  void make(rollout_node& node) {
    rollout_pod pod;
    pod.key = {"quartermaster", node.name + "-" + std::to_string(++made_)};
    pod.id.bytes[0] = static_cast<std::uint8_t>(made_ & 255);
    pod.id.bytes[1] = static_cast<std::uint8_t>(made_ >> 8);
    pod.made_from = node.wanted;
    node.pods = {pod};
  }
  void come_up(rollout_node& node) {
    auto& pod = node.pods.front();
    pod.ready = !never_ready.contains(pod.made_from);
    node.allocatable = {{gpu_resource, pod.ready && !no_cards.contains(pod.made_from) ? 4 : 0}};
  }
  int made_ = 0;
  std::optional<std::pair<std::optional<rollout_record>, std::chrono::milliseconds>> well_;
};

TEST(plugin_rollout, with_the_newest_version_everywhere_there_is_nothing_to_do) {
  lab lab(3);
  const auto step = lab.step();
  EXPECT_EQ(step.is, kind::done);
  EXPECT_FALSE(step.record || step.clear || step.remove || step.again_in);
  EXPECT_TRUE(step.message.empty());
}

TEST(plugin_rollout, goes_from_node_to_node_and_waits_until_each_is_what_it_was) {
  lab lab(3);
  lab.want(v2);
  auto step = lab.step();
  ASSERT_TRUE(step.record && step.remove);
  EXPECT_EQ(step.remove->node, "n0");
  EXPECT_EQ(step.record->needs, (kube::quantities{{gpu_resource, 4}}));
  EXPECT_EQ(line_of(step.message), "status.rollout.under_way{progress=" + progress(0, 3) + ",node=n0}");
  for (int i = 0; i < 3; ++i) {
    lab.cluster(lab.at(0));
    step = lab.step();
    EXPECT_EQ(step.is, kind::wait);
    EXPECT_FALSE(step.record || step.clear || step.remove) << i;
  }
  ASSERT_EQ(lab.at(0).allocatable, (kube::quantities{{gpu_resource, 4}}));
  EXPECT_EQ(step.again_in, 10s) << "what is allocatable may be from before the restart";
  lab.pass(9s);
  EXPECT_FALSE(lab.step().remove);
  lab.pass(1s);
  step = lab.step();
  ASSERT_TRUE(step.remove);
  EXPECT_EQ(step.remove->node, "n1");
  EXPECT_FALSE(step.clear) << "the next record takes the place of the last";
  EXPECT_EQ(lab.run().is, kind::done);
  EXPECT_EQ(lab.versions(), "222");
  EXPECT_THAT(lab.order, testing::ElementsAre("n0", "n1", "n2"));
  EXPECT_FALSE(lab.is.record);
}

TEST(plugin_rollout, the_first_node_that_does_not_come_back_halts_it) {
  lab lab(3);
  lab.never_ready = {v2};
  lab.want(v2);
  auto step = lab.run(20);
  EXPECT_EQ(step.is, kind::wait) << "it has its time";
  step = lab.run(20);
  EXPECT_EQ(step.is, kind::halted);
  EXPECT_EQ(lab.versions(), "211");
  EXPECT_EQ(line_of(step.message),
            "status.rollout.halted{node=n0,trouble=status.rollout.not_ready{pod=quartermaster/n0-4},"
            "rest=status.rollout.rest.many{number=2}}");
}

TEST(plugin_rollout, a_plugin_that_is_ready_and_finds_no_card_halts_it) {
  lab lab(3);
  lab.no_cards = {v2};
  lab.want(v2);
  const auto step = lab.run(40);
  EXPECT_EQ(step.is, kind::halted);
  EXPECT_EQ(lab.versions(), "211");
  EXPECT_THAT(line_of(step.message), HasSubstr("resource=nvidia.com/gpu,amount=0,needed=4}"));
}

TEST(plugin_rollout, a_crash_loop_and_an_image_that_is_not_there_are_said_at_once) {
  lab lab(2);
  lab.never_ready = {v2};
  lab.want(v2);
  lab.run(2);
  lab.at(0).pods.front().restarts = 2;
  EXPECT_EQ(lab.step().is, kind::wait);
  lab.at(0).pods.front().restarts = 3;
  lab.at(0).pods.front().reason = "CrashLoopBackOff";
  EXPECT_EQ(lab.step().is, kind::halted);
  EXPECT_THAT(line_of(lab.step().message), HasSubstr("cause=status.rollout.not_ready_cause{cause=CrashLoopBackOff},"
                                                     "restarts=status.rollout.restarts.many{number=3}}"));
  lab.at(0).pods.front().restarts = 0;
  lab.at(0).pods.front().reason = "ErrImagePull";
  EXPECT_EQ(lab.step().is, kind::halted);
}

TEST(plugin_rollout, the_image_put_back_heals_the_broken_node_and_touches_no_other) {
  lab lab(4);
  lab.never_ready = {v2};
  lab.want(v2);
  ASSERT_EQ(lab.run(40).is, kind::halted);
  lab.want(v1);
  const auto step = lab.step();
  ASSERT_TRUE(step.record && step.remove);
  EXPECT_EQ(step.record->needs, (kube::quantities{{gpu_resource, 4}})) << "as before everything";
  EXPECT_EQ(lab.run().is, kind::done);
  EXPECT_EQ(lab.versions(), "1111");
  EXPECT_THAT(lab.order, testing::ElementsAre("n0", "n0"));
}

TEST(plugin_rollout, a_third_version_is_tried_on_the_broken_node_first) {
  lab lab(4);
  lab.never_ready = {v2};
  lab.want(v2);
  lab.at(0).answers = false;
  ASSERT_EQ(lab.run(40).is, kind::halted);
  lab.at(0).answers = true;
  lab.want(other_version);
  EXPECT_EQ(lab.run().is, kind::done);
  EXPECT_EQ(lab.versions(), "3333");
  EXPECT_THAT(lab.order, testing::ElementsAre("n1", "n1", "n0", "n2", "n3"));
}

TEST(plugin_rollout, a_node_that_heals_lets_it_go_on) {
  lab lab(2);
  lab.never_ready = {v2};
  lab.want(v2);
  ASSERT_EQ(lab.run(40).is, kind::halted);
  lab.never_ready.clear();
  lab.cluster();
  EXPECT_EQ(lab.step().is, kind::wait) << "also a long time after its deadline";
  EXPECT_EQ(lab.run().is, kind::done);
  EXPECT_EQ(lab.versions(), "22");
}

TEST(plugin_rollout, a_node_without_cards_proves_nothing_and_comes_last) {
  lab lab(3);
  lab.at(0).allocatable = {{gpu_resource, 0}};
  lab.no_cards = {v2};
  lab.want(v2);
  lab.run();
  EXPECT_EQ(lab.order, (std::vector<std::string>{"n1"})) << "found out on a node that had something to lose";
}

TEST(plugin_rollout, amounts_are_compared_only_where_nothing_but_the_image_changed) {
  lab healthy(2);
  healthy.at(0).pods.front().made_from = "fewer replicas.1";
  healthy.want(v1);
  auto step = healthy.step();
  ASSERT_TRUE(step.record);
  EXPECT_EQ(step.record->needs, (kube::quantities{{gpu_resource, 1}}));
  lab broken(2);
  broken.at(1).pods.front().ready = false;
  broken.at(1).allocatable.clear();
  broken.want(v2);
  step = broken.step();
  ASSERT_TRUE(step.remove);
  EXPECT_EQ(step.remove->node, "n1") << "who is down has nothing to lose";
  EXPECT_EQ(step.record->needs, (kube::quantities{{gpu_resource, 1}}));
}

TEST(plugin_rollout, a_plugin_that_running_pods_need_waits_for_them_node_by_node) {
  lab lab(3, strategy::when_idle);
  lab.at(0).users = {"team/train"};
  lab.at(2).users = {"team/infer"};
  lab.want(v2);
  auto step = lab.run(20);
  EXPECT_EQ(step.is, kind::wait);
  EXPECT_TRUE(step.waits_for_pods);
  EXPECT_FALSE(step.again_in) << "nothing but the end of a pod changes that";
  EXPECT_EQ(lab.versions(), "121");
  EXPECT_EQ(line_of(step.message), waiting(1, 3, "waits_for_pods.many{number=2,list=" + words::listed({"n0", "n2"})));
  lab.at(2).users.clear();
  lab.run(20);
  EXPECT_EQ(lab.versions(), "122");
  lab.at(0).users.clear();
  EXPECT_EQ(lab.run().is, kind::done);
  lab.want(v1);
  for (auto& node : lab.is.nodes) node.users = {"team/train"};
  lab.is.method = strategy::always;
  EXPECT_EQ(lab.run().is, kind::done) << "the policy may say otherwise";
  EXPECT_EQ(lab.versions(), "111");
}

TEST(plugin_rollout, between_a_plugin_that_follows_placements_and_one_that_chooses_a_node_waits_for_its_pods) {
  const auto placed = "shape.4" + std::string(modules::placement_mark);
  const auto newer = "shape.5" + std::string(modules::placement_mark);
  lab lab(2);
  for (const auto& [before, after] : {std::pair(v1, placed), std::pair(placed, v2)}) {
    lab.at(0).users = {"team/train"};
    lab.want(after);
    const auto step = lab.run(20);
    EXPECT_EQ(step.is, kind::wait);
    EXPECT_TRUE(step.waits_for_pods);
    EXPECT_EQ(lab.at(0).pods.front().made_from, before);
    EXPECT_EQ(lab.at(1).pods.front().made_from, after);
    lab.at(0).users.clear();
    EXPECT_EQ(lab.run().is, kind::done);
    EXPECT_EQ(lab.at(0).pods.front().made_from, after);
  }
  lab.want(placed);
  lab.run();
  lab.at(0).users = {"team/train"};
  lab.want(newer);
  EXPECT_EQ(lab.run().is, kind::done) << "a newer version gives what the older one gave";
}

/// containerd 1.7 without CDI, where the new plugin gives cards by CDI names.
TEST(plugin_rollout, a_node_that_the_new_plugin_does_not_suit_keeps_the_old_one_and_holds_up_no_other) {
  lab lab(3);
  lab.at(0).unsuitable = true;
  lab.want("shape.4" + std::string(modules::placement_mark));
  auto step = lab.run(40);
  EXPECT_EQ(step.is, kind::wait);
  EXPECT_EQ(lab.versions().front(), '1');
  EXPECT_EQ(lab.order, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_FALSE(lab.at(0).pods.front().deleting);
  EXPECT_FALSE(lab.is.record) << "no node is under way";
  EXPECT_EQ(line_of(step.message), waiting(2, 3, "unsuitable.one{number=1,list=" + words::listed({"n0"})));
  lab.at(0).unsuitable = false;  // a newer runtime
  EXPECT_EQ(lab.run().is, kind::done);
  EXPECT_EQ(lab.order.back(), "n0");
  lab.at(1).unsuitable = true;
  EXPECT_EQ(lab.run().is, kind::done) << "what it has already is not taken from it";
}

TEST(plugin_rollout, a_node_under_way_keeps_its_plugin_when_the_policy_turns_to_one_that_does_not_suit) {
  lab lab(2);
  lab.want(v2);
  const auto step = next_rollout_step(lab.is);  // written down, and the operator was killed
  lab.is.record = step.record;
  const auto node = lab.is.record->node;
  for (auto& entry : lab.is.nodes) entry.unsuitable = entry.name == node;
  lab.want("shape.4" + std::string(modules::placement_mark));
  EXPECT_EQ(lab.run(40).is, kind::wait);
  EXPECT_EQ(std::ranges::count(lab.order, node), 0);
  EXPECT_EQ(lab.order.size(), 1U);
}

TEST(plugin_rollout, a_pod_that_comes_before_the_plugin_is_deleted_is_waited_for) {
  lab lab(2, strategy::when_idle);
  lab.want(v2);
  auto step = next_rollout_step(lab.is);
  ASSERT_TRUE(step.record);
  lab.is.record = step.record;  // and killed here
  lab.at(0).users = {"team/train"};
  step = lab.step();
  ASSERT_TRUE(step.remove);
  EXPECT_EQ(step.remove->node, "n1");
}

TEST(plugin_rollout, a_version_under_way_when_we_were_killed_goes_on) {
  lab lab(3);
  lab.want(v2);
  lab.at(0).users = {"team/a"};
  const auto step = next_rollout_step(lab.is);
  ASSERT_TRUE(step.record && step.remove);
  lab.is.record = step.record;  // and killed here
  const auto again = next_rollout_step(lab.is);
  EXPECT_FALSE(again.record || again.clear);
  ASSERT_TRUE(again.remove);
  EXPECT_EQ(again.remove->node, step.remove->node);
}

TEST(plugin_rollout, nodes_that_change_their_mode_are_left_alone_and_silent_ones_are_named) {
  lab lab(4);
  lab.at(0).changing = true;
  lab.at(1).answers = false;
  lab.want(v2);
  auto step = lab.run(20);
  EXPECT_EQ(lab.versions(), "1122");
  EXPECT_EQ(step.is, kind::wait);
  EXPECT_EQ(line_of(step.message), waiting(2, 3, "silent.one{number=1,list=n1"));
  lab.at(1).answers = true;
  EXPECT_EQ(lab.run().is, kind::done);
  EXPECT_EQ(lab.versions(), "1222");
}

TEST(plugin_rollout, a_node_that_falls_silent_with_its_new_plugin_halts_it_until_it_answers_or_leaves) {
  lab lab(3);
  lab.want(v2);
  lab.step();
  lab.at(0).answers = false;
  auto step = lab.run(40);
  EXPECT_EQ(step.is, kind::halted);
  EXPECT_THAT(line_of(step.message), HasSubstr("node=n0,trouble=status.rollout.silent_node"));
  lab.at(0).changing = true;  // or gone: it is not ours any more
  lab.run(20);
  EXPECT_THAT(lab.order, testing::ElementsAre("n0", "n1", "n2"));
}

TEST(plugin_rollout, by_hand_means_that_we_delete_nothing) {
  lab lab(2, strategy::by_hand);
  lab.want(v2);
  const auto step = lab.run(10);
  EXPECT_EQ(lab.versions(), "11");
  EXPECT_EQ(line_of(step.message), waiting(0, 2, "by_hand{list=" + words::listed({"n0", "n1"})));
}

TEST(plugin_rollout, waits_until_the_DaemonSet_controller_has_seen_the_version) {
  lab lab(1);
  lab.want(v2);
  lab.at(0).known = false;
  EXPECT_FALSE(lab.step().remove) << "it would make the pod from the version before";
  lab.at(0).known = true;
  EXPECT_TRUE(lab.step().remove);
}

TEST(plugin_rollout, a_plugin_somebody_else_deleted_counts) {
  lab lab(3);
  lab.want(v2);
  lab.at(2).pods.clear();
  auto step = lab.step();
  ASSERT_TRUE(step.record);
  EXPECT_EQ(step.record->node, "n2");
  EXPECT_FALSE(step.remove);
  EXPECT_EQ(lab.run().is, kind::done);
}

TEST(plugin_rollout, the_record_is_read_as_it_was_written) {
  const rollout_record record{"set", "gpu-1", v2, 1'767'225'600, {{gpu_resource, 4}}};
  EXPECT_EQ(rollout_record::parse(record.to_string(), "set"), record);
  for (const auto* text : {"", "[]", "{", "{\"node\":1}", "{\"node\":\"\"}"})
    EXPECT_FALSE(rollout_record::parse(text, "set")) << text;
}

/// Whatever happens in whatever order: one node at a time, no pod disturbed (lab::step checks that), nothing new
/// touched while a node is broken, and once the world is good everything gets the newest version.
TEST(plugin_rollout, holds_its_promises_in_every_order_of_events) {
  std::mt19937 random(20'260'817);
  const auto chance = [&](int odds) { return random() % static_cast<unsigned>(odds) == 0; };
  const int rounds = test::rounds(200, 2'000);
  int halts = 0, ends = 0, waits = 0;
  for (int round = 0; round < rounds; ++round) {
    lab lab(1 + random() % 6, chance(2) ? strategy::when_idle : strategy::always);
    const std::vector<std::string> versions{v1, v2, other_version, "shape.4"};
    for (int turn = 0; turn < 150; ++turn) {
      auto& node = lab.at(random() % lab.is.nodes.size());
      if (chance(25)) lab.want(versions[random() % versions.size()]);
      if (chance(40)) lab.never_ready = {versions[random() % versions.size()]};
      if (chance(40)) lab.no_cards = {versions[random() % versions.size()]};
      if (chance(20)) lab.never_ready.clear(), lab.no_cards.clear();
      if (chance(8) && kube::amount(node.allocatable, gpu_resource) > 0) node.users = {"team/pod"};
      if (chance(4)) node.users.clear();
      if (chance(3)) lab.cluster(node);
      if (chance(3)) lab.cluster(node);
      lab.pass(std::chrono::seconds(random() % 30));
      const auto before = lab.between();
      const auto step = lab.step();
      halts += step.is == kind::halted ? 1 : 0;
      waits += step.waits_for_pods ? 1 : 0;
      if (step.remove && before > 0) {
        const auto& record = *lab.is.record;
        EXPECT_EQ(step.remove->node, record.node);
      }
      ASSERT_LE(lab.between(), 1) << "round " << round << " turn " << turn;
    }
    lab.never_ready.clear();
    lab.no_cards.clear();
    for (auto& node : lab.is.nodes) {
      node.users.clear();
      if (!node.pods.empty() && node.pods.front().ready) node.allocatable = {{gpu_resource, 4}};
    }
    EXPECT_EQ(lab.run(200).is, kind::done) << "round " << round;
    for (const auto& node : lab.is.nodes) {
      ASSERT_EQ(node.pods.size(), 1u);
      EXPECT_EQ(node.pods.front().made_from, node.wanted);
      EXPECT_TRUE(node.pods.front().ready);
    }
    ++ends;
  }
  EXPECT_EQ(ends, rounds);
  EXPECT_GT(halts, rounds / 20) << "the random worlds are too good to prove anything";
  EXPECT_GT(waits, rounds / 20);
}

/// The DaemonSets of two sets, as their controller acts on our label: what it does not select goes, what it selects
/// comes when nothing is there.
class move_lab {
 public:
  rollout_state is;
  std::vector<std::string> taken;  ///< nodes whose old plugin we sent away, in order

  explicit move_lab(strategy strategy) {
    is.method = strategy;
    is.resources = {gpu_resource};
    is.wall = 1'767'225'600;
    for (const auto* name : {"n0", "n1", "n2"}) {
      auto& node = is.nodes.emplace_back();
      node.name = name;
      node.set = "plugin-ds";
      node.wanted = v1;
      pods(node);
      pods(node);
    }
  }
  void to_set(const std::string& set) {
    for (auto& node : is.nodes) {
      node.target = set;
      node.wanted = version_of(set);
      node.set = "plugin-ds-" + set;
    }
  }
  static std::string version_of(const std::string& set) { return set.empty() ? v1 : set + ".1"; }
  /// One turn of the controllers.
  void pods(rollout_node& node) {
    if (!node.pods.empty() && node.pods[0].deleting) {
      node.pods.clear();
      node.allocatable = {{gpu_resource, 0}};
    } else if (node.serves == between_sets) {
      for (auto& pod : node.pods) pod.deleting = true;
    } else if (node.pods.empty()) {
      rollout_pod pod;
      pod.key.name = node.name;
      pod.made_from = version_of(node.serves);
      node.pods = {pod};
    } else if (node.pods[0].made_from != version_of(node.serves)) {
      ADD_FAILURE() << node.name << " got another DaemonSet while the plugin of the old one was there";
    } else {
      node.pods[0].ready = true;
      node.allocatable = {{gpu_resource, 4}};
    }
  }
  rollout_step step() {
    is.well_for = is_well(is) ? rollout_settle : 0ms;
    const auto out = next_rollout_step(is);
    if (out.clear) is.record.reset();
    if (out.record) is.record = out.record;
    EXPECT_FALSE(out.remove) << "the DaemonSet would make the old one again";
    if (out.move) {
      auto& node = *std::ranges::find(is.nodes, out.move->node, &rollout_node::name);
      EXPECT_EQ(out.move->source, node.serves);
      EXPECT_TRUE(is.record && is.record->node == node.name) << "it is written down before it is done";
      if (out.move->target == between_sets) {
        taken.push_back(node.name);
        EXPECT_EQ(out.move->if_idle, is.method == strategy::when_idle);
      } else {
        EXPECT_TRUE(node.pods.empty()) << "two plugins on " << node.name;
      }
      node.serves = out.move->target;
    }
    return out;
  }
  std::size_t without_plugin() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        is.nodes, [](const auto& node) { return node.pods.empty() || !node.pods[0].ready || node.pods[0].deleting; }));
  }
  rollout_step run() {
    rollout_step last;
    for (int i = 0; i < 60; ++i) {
      last = step();
      for (auto& node : is.nodes) pods(node);
      EXPECT_LE(without_plugin(), 1u) << "node after node";
    }
    return last;
  }
};

TEST(plugin_rollout, S52_nodes_move_to_another_node_set_one_after_another_and_never_have_two_plugins) {
  move_lab lab(strategy::always);
  lab.to_set("big");
  EXPECT_EQ(lab.run().is, kind::done);
  EXPECT_THAT(lab.taken, testing::ElementsAre("n0", "n1", "n2"));
  for (const auto& node : lab.is.nodes) {
    EXPECT_EQ(node.serves, "big");
    EXPECT_EQ(node.pods.at(0).made_from, "big.1");
  }
  lab.to_set("");
  EXPECT_EQ(lab.run().is, kind::done);
  EXPECT_EQ(lab.taken.size(), 6u) << "and back, when the set is gone from the policy";
  EXPECT_FALSE(lab.is.record);
}

TEST(plugin_rollout, S52_a_plugin_that_running_pods_need_keeps_its_node_set_until_they_end) {
  move_lab lab(strategy::when_idle);
  for (auto& node : lab.is.nodes) node.users = {"team/train"};
  lab.to_set("big");
  const auto step = lab.run();
  EXPECT_EQ(line_of(step.message),
            waiting(0, 3, "waits_for_pods.many{number=3,list=" + words::listed({"n0", "n1", "n2"})));
  EXPECT_TRUE(step.waits_for_pods);
  EXPECT_TRUE(lab.taken.empty());
  lab.is.nodes[1].users.clear();
  lab.run();
  EXPECT_THAT(lab.taken, testing::ElementsAre("n1"));
}

TEST(plugin_rollout, S52_a_move_that_was_broken_off_goes_on_and_by_hand_it_begins_when_a_person_says_so) {
  move_lab lab(strategy::by_hand);
  lab.to_set("big");
  lab.run();
  EXPECT_TRUE(lab.taken.empty());
  lab.is.nodes[2].pods[0].deleting = true;
  lab.run();
  EXPECT_THAT(lab.taken, testing::ElementsAre("n2"));
  EXPECT_EQ(lab.is.nodes[2].pods.at(0).made_from, "big.1");
  auto& node = lab.is.nodes[0];
  node.serves = between_sets;  // an operator before us was killed here
  node.pods.clear();
  lab.run();
  EXPECT_EQ(node.serves, "big");
  EXPECT_TRUE(node.pods.at(0).ready);
}

}  // namespace
}  // namespace reconcilers
