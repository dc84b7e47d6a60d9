#include "reconcilers/extender/sick_cards.hpp"

#include <gmock/gmock.h>

#include "test/facts_in.hpp"
#include "test/reconcilers/extender/rig.hpp"

namespace extender_test {
namespace {

using namespace std::chrono_literals;
using reconcilers::extender::sick_cards;
using testing::HasSubstr;
using testing::Not;

struct sick_cards_test : rig {
  reconcilers::recording_recorder recorder;
  sick_cards subject{{known.cards, known.nodes, known.pods, book, recorder}};
  std::chrono::milliseconds now = 0s;

  void report(const std::string& first, const std::string& second) {
    known.cards.put(reported("a", {{{"uuid", "GPU-x"}, {"index", 0}, {"memoryMiB", 16384}, {"health", first}},
                                   {{"uuid", "GPU-y"}, {"index", 1}, {"memoryMiB", 16384}, {"health", second}}}));
  }
  void run_on(const std::string& name, const std::string& card) {
    run_on(share(name, 20, 8, "a"), {{"card", card}, {"cores", 20}, {"memoryMiB", 2048}});
  }
  void run_on(const kube::pod& pod, const json& part) {
    const json placement{
        {"v", 1}, {"node", "a"}, {"source", "planned"}, {"containers", {{"main", json::array({part})}}}};
    known.pods.put(annotated(pod, {{"quartermaster.io/placement", placement.dump()}}));
  }
  const std::vector<reconcilers::recording_recorder::event>& told() {
    for (int i = 0; i < 20; ++i) subject.turn(now += 10s);
    return recorder.events;
  }
};

TEST_F(sick_cards_test, S20_a_fault_names_the_pods_on_the_card) {
  known.nodes.put(vgpu_node("a", 2));
  report("Healthy", "Healthy");
  run_on("p", "GPU-y"), run_on("q", "GPU-y"), run_on("other", "GPU-x");
  EXPECT_TRUE(told().empty());
  report("Healthy", "XID 79");
  const auto& events = told();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].about.kind, "Node");
  EXPECT_EQ(events[0].about.key.name, "a");
  EXPECT_EQ(events[0].reason, "PodsOnSickCard");
  EXPECT_THAT(events[0].note, words::has_in_order({"card GPU-y (XID 79)", "On it: pod lab/p, lab/q.", "left alone"}));
  EXPECT_EQ(events[1].about.kind, "Pod");
  EXPECT_EQ(events[1].about.key.to_string(), "lab/p");
  EXPECT_EQ(events[1].about.uid, kube::uid::parse("pod-p").to_string());
  EXPECT_EQ(events[1].reason, "CardUnhealthy");
  EXPECT_THAT(events[1].note, words::has_in_order({"card GPU-y (XID 79) of node a", "this pod uses", "no new pods",
                                                   "left alone", "restart"}));
  EXPECT_EQ(events[2].about.key.to_string(), "lab/q");
  report("Healthy", "XID 79");
  EXPECT_EQ(told().size(), 3U) << "once";
  report("Healthy", "Healthy");
  report("Healthy", "XID 48");
  EXPECT_EQ(told().size(), 6U) << "and again when it is sick again, and that it was well is no news then";
  report("Healthy", "Healthy");
  ASSERT_EQ(told().size(), 8U) << "an end for each pod";
  for (const auto* name : {"lab/p", "lab/q"}) {
    const auto& end = events[name == std::string("lab/p") ? 6 : 7];
    EXPECT_EQ(end.about.key.to_string(), name);
    EXPECT_EQ(end.reason, "CardHealthy");
  }
}

/// MPS comes back when the last program has left the card, so the event says what to do, and when it is over.
TEST_F(sick_cards_test, S20_a_card_whose_mps_has_failed_names_its_pods_and_its_end) {
  known.nodes.put(
      node("a", {{"quartermaster.io/module", "mps"}}, {{"nvidia.com/mps-core", 200}, {"nvidia.com/mps-memory", 32}}));
  report("Healthy", "Healthy");
  const amounts limits{{"nvidia.com/mps-core", 20}, {"nvidia.com/mps-memory", 2}};
  const auto place = [&](const std::string& name, const std::string& card) {
    run_on(pod(name, {container("main", limits)}, "a"), {{"card", card}, {"cores", 20}, {"memoryMiB", 2048}});
  };
  place("p", "GPU-y"), place("other", "GPU-x");
  report("Healthy", "MpsFailed");
  const auto& events = told();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_THAT(events[0].note, words::has_in_order({"card GPU-y (MpsFailed)", "On it: pod lab/p."}));
  EXPECT_EQ(events[1].about.key.to_string(), "lab/p");
  EXPECT_EQ(events[1].reason, "CardUnhealthy");
  EXPECT_THAT(events[1].note, words::has_in_order({"GPU-y (MpsFailed) of node a", "this pod uses", "no new pods", "806",
                                                   "the last program", "delete the pods"}));
  report("Healthy", "Healthy");
  ASSERT_EQ(told().size(), 3U);
  EXPECT_EQ(events[2].about.key.to_string(), "lab/p");
  EXPECT_EQ(events[2].reason, "CardHealthy");
  EXPECT_EQ(events[2].type, controller::event_type::normal);
  EXPECT_THAT(events[2].note, words::has_in_order({"card GPU-y of node a", "in order again"}));
  report("Healthy", "MpsFailed");
  ASSERT_EQ(told().size(), 5U);
  report("Healthy", "XID 79");
  ASSERT_EQ(told().size(), 7U) << "MPS fails with its card";
  EXPECT_THAT(events[6].note, words::has_in_order({"GPU-y (XID 79)", "restart"}));
  auto last = *known.pods.find({"lab", "p"});
  last.resource_version = next_version();
  known.pods.erase(last);
  report("Healthy", "Healthy");
  EXPECT_EQ(told().size(), 7U) << "a pod that has gone";
}

TEST_F(sick_cards_test, does_not_claim_to_know_what_a_plugin_picks) {
  known.nodes.put(node("a", {{"quartermaster.io/module", "pgpu"}}, {{"nvidia.com/gpu", 2}}));
  report("Healthy", "Healthy");
  known.pods.put(pod("p", {container("main", {{"nvidia.com/gpu", 1}})}, "a"));
  report("Healthy", "Lost");
  const auto& events = told();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_THAT(events[0].note, words::has_in_order({"Perhaps on it", "plugin picks cards by itself", ": pod lab/p."}));
  EXPECT_THAT(events[1].note, HasSubstr("may be one"));
}

/// Our choice stands on the pod, and the plugin may have taken the other card.
TEST_F(sick_cards_test, does_not_take_a_plan_for_what_a_plugin_picks) {
  known.nodes.put(node("a", {{"quartermaster.io/module", "pgpu"}}, {{"nvidia.com/gpu", 2}}));
  report("Healthy", "Healthy");
  run_on(pod("p", {container("main", {{"nvidia.com/gpu", 1}})}, "a"), {{"card", "GPU-x"}, {"whole", true}});
  report("Healthy", "Lost");
  const auto& events = told();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_THAT(events[1].note, HasSubstr("may be one"));
}

TEST_F(sick_cards_test, says_that_a_card_still_gets_pods) {
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.resource_version = next_version();
  policy.health.max_withdrawn = "0";
  known.policies.put(policy);
  known.nodes.put(vgpu_node("a", 2));
  report("Healthy", "Healthy");
  run_on("p", "GPU-y");
  report("Healthy", "XID 79");
  const auto& events = told();
  ASSERT_EQ(events.size(), 2U);
  for (const auto& event : events) EXPECT_THAT(event.note, HasSubstr("It still gets new pods"));
}

TEST_F(sick_cards_test, a_new_leader_tells_what_an_earlier_one_may_not_have) {
  known.nodes.put(vgpu_node("a", 2));
  report("XID 79", "Healthy");
  run_on("p", "GPU-x");
  EXPECT_TRUE(told().empty()) << "what is there at the start is no news";
  subject.tell_again();
  EXPECT_EQ(told().size(), 2U);
}

TEST_F(sick_cards_test, a_card_that_recovered_meanwhile_and_a_card_without_pods_are_no_news) {
  known.nodes.put(vgpu_node("a", 2));
  report("Healthy", "Healthy");
  run_on("p", "GPU-y");
  report("XID 79", "Lost");
  report("XID 79", "Healthy");
  EXPECT_TRUE(told().empty());
  EXPECT_EQ(subject.pending(), 0U);
}

/// What an agent writes ends up in events: it may be hostile.
TEST_F(sick_cards_test, shows_no_control_characters) {
  known.nodes.put(vgpu_node("a", 2));
  report("Healthy", "Healthy");
  run_on("p", "GPU-y");
  report("Healthy", "XID 79\n\x1b[31m");
  for (const auto& event : told()) EXPECT_THAT(event.note, Not(HasSubstr("\n")));
  EXPECT_EQ(recorder.events.size(), 2U);
}

/// A storm makes no more events than are written.
TEST_F(sick_cards_test, leaves_room_for_the_events_of_others) {
  for (int i = 0; i < 100; ++i) {
    const auto name = "n" + std::to_string(i);
    known.nodes.put(vgpu_node(name, 1));
    known.cards.put(reported(name, {{{"uuid", "GPU-" + name}, {"index", 0}, {"health", "Healthy"}}}));
    known.pods.put(share("p" + name, 20, 8, name));
    known.cards.put(reported(name, {{{"uuid", "GPU-" + name}, {"index", 0}, {"health", "Lost"}}}));
  }
  for (int i = 0; i < 50; ++i) subject.turn(now += 200ms);
  EXPECT_LE(recorder.events.size(), 52U) << "five a second";
  EXPECT_GE(recorder.events.size(), 40U);
}

}  // namespace
}  // namespace extender_test
