#include "cli/console/given_twice.hpp"
#include "cli/console/walked_view.hpp"
#include "cli/explain/uncounted.hpp"
#include "cli/inspect/inspect_fleet.hpp"

#include "test/cli/console/two_teams.hpp"

namespace cli::console {
namespace {

using console_test::pod_of, console_test::vgpu_node;
using testing::ElementsAre, testing::IsEmpty;

using given_twice_test = console_test::two_teams;

TEST_F(given_twice_test, a_card_with_more_than_it_has_is_named_with_its_pods) {
  cluster.nodes.put(vgpu_node("gpu-5", 2));
  for (const auto* name : {"first", "slipped-by"})
    cluster.pods.put(
        extender_test::annotated(pod_of("team-a", name, 60, 8, "gpu-5"),
                                 {{"tencent.com/gpu-assigned", "true"}, {"tencent.com/predicate-gpu-idx-0", "0"}}));
  read();
  EXPECT_THAT(given_twice(cluster, "gpu-5").certain, ElementsAre("gpu-5/0 (team-a/first, team-a/slipped-by)"));
}

TEST_F(given_twice_test, where_the_card_of_a_pod_is_a_guess_that_is_told_apart) {
  cluster.pods.put(pod_of("team-a", "slipped-by", 60, 8, "gpu-1"));
  read();
  const auto cards = given_twice(cluster, "gpu-1");
  EXPECT_THAT(cards.certain, IsEmpty());
  EXPECT_THAT(cards.guessed, ElementsAre("gpu-1/0 (team-a/mine-1, team-a/slipped-by, team-b/secret-1)"));
}

// The ledger counts such a card as given out twice, and its alert leads here.
TEST_F(given_twice_test, verify_warns_of_a_guess) {
  cluster.pods.put(pod_of("team-a", "slipped-by", 60, 8, "gpu-1"));
  read();
  EXPECT_EQ(cluster.book->book().over_given("gpu-1"), 1U);
  const auto view = walked_view(cluster, "gpu-1");
  ASSERT_EQ(view.nodes.size(), 1U);
  EXPECT_THAT(view.nodes.front().given_twice, IsEmpty());
  EXPECT_EQ(view.nodes.front().perhaps_given_twice.size(), 1U);
}

api::accelerator_node three_cards(const std::string& first) {
  auto all = nlohmann::json::array();
  for (int i = 0; i < 3; ++i)
    all.push_back({{"uuid", "GPU-" + std::to_string(i)},
                   {"index", i},
                   {"model", "Tesla-T4"},
                   {"memoryMiB", 16384},
                   {"health", i == 0 ? first : "Healthy"}});
  auto made = extender_test::reported("gpu-5", all);
  made.mode.actual_mode = made.mode.requested_mode = "vgpu";
  made.mode.phase = "Ready";
  return made;
}

// GPU-Manager's plugin knows no health: of cards that are equally full it takes the first, so that no share comes to
// the others.
TEST_F(given_twice_test, healthy_cards_behind_a_sick_one_are_withheld) {
  cluster.nodes.put(vgpu_node("gpu-5", 3));
  cluster.cards.put(three_cards("XID 79"));
  read();
  EXPECT_EQ(walked_view(cluster, "gpu-5").nodes.at(0).withheld_cards, 2U);
  const auto rows = node_rows(fleet(cluster), {"gpu-5"});
  EXPECT_EQ(rows.at(0).withheld_cards, 2U);
  for (const auto& resource : rows.at(0).resources) EXPECT_EQ(resource.free(), 0) << resource.name;
  std::ostringstream table;
  look_options options;
  options.output = "wide";
  print(rows, options, table);
  EXPECT_THAT(table.str(), testing::HasSubstr("SharesWithheld"));
}

TEST_F(given_twice_test, of_healthy_cards_none_is_withheld) {
  cluster.nodes.put(vgpu_node("gpu-5", 3));
  cluster.cards.put(three_cards("Healthy"));
  read();
  EXPECT_EQ(walked_view(cluster, "gpu-5").nodes.at(0).withheld_cards, 0U);
}

TEST_F(given_twice_test, a_share_larger_than_every_card_is_certain) {
  cluster.nodes.put(vgpu_node("gpu-5", 2));
  cluster.pods.put(pod_of("team-a", "larger", 20, 1000, "gpu-5"));
  read();
  EXPECT_THAT(given_twice(cluster, "gpu-5").certain, ElementsAre("gpu-5/0 (team-a/larger)"));
}

TEST_F(given_twice_test, a_card_that_is_full_is_not) {
  read();
  for (const auto* name : {"gpu-2", "no-such-node"}) {
    EXPECT_THAT(given_twice(cluster, name).certain, IsEmpty()) << name;
    EXPECT_THAT(given_twice(cluster, name).guessed, IsEmpty()) << name;
  }
}

TEST_F(given_twice_test, a_bound_pod_whose_limits_the_ledger_cannot_count_is_named_with_the_reason) {
  cluster.nodes.put(vgpu_node("gpu-5", 2));
  cluster.pods.put(pod_of("team-a", "counted", 20, 4, "gpu-5"));
  cluster.pods.put(pod_of("team-a", "half", 30, 0, "gpu-5"));
  auto ended = pod_of("team-a", "ended", 30, 0, "gpu-5");
  ended.phase = kube::pod_phase::succeeded;
  cluster.pods.put(ended);
  read();
  const auto uncounted = uncounted_pods(cluster, "gpu-5");
  ASSERT_EQ(uncounted.size(), 1u);
  EXPECT_EQ(uncounted.front().pod, (kube::object_key{"team-a", "half"}));
  EXPECT_THAT(words_of(uncounted.front().reason, text::language::en), testing::HasSubstr("vcuda-memory"));
  EXPECT_THAT(uncounted_pods(cluster, "gpu-1"), IsEmpty());
  EXPECT_THAT(uncounted_pods(cluster, "no-such-node"), IsEmpty());
}

TEST_F(given_twice_test, a_pod_whose_placement_names_a_card_that_is_not_there_is_named) {
  cluster.nodes.put(vgpu_node("gpu-5", 2));
  const auto placed = [](const std::string& name, const std::string& card) {
    return extender_test::annotated(
        pod_of("team-a", name, 20, 4, "gpu-5"),
        {{"quartermaster.io/placement",
          nlohmann::json{{"v", 1},
                         {"node", "gpu-5"},
                         {"source", "planned"},
                         {"containers", {{"main", {{{"card", card}, {"cores", 20}, {"memoryMiB", 1024}}}}}}}
              .dump()}});
  };
  cluster.pods.put(placed("real", "gpu-5/1"));
  cluster.pods.put(placed("forged", "GPU-nope"));
  read();
  const auto uncounted = uncounted_pods(cluster, "gpu-5");
  ASSERT_EQ(uncounted.size(), 1u);
  EXPECT_EQ(uncounted.front().pod, (kube::object_key{"team-a", "forged"}));
  EXPECT_EQ(uncounted.front().reason.key, "uncounted.no_such_card");
}

}  // namespace
}  // namespace cli::console
