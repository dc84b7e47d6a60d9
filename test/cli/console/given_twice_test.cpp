#include "cli/console/given_twice.hpp"
#include "cli/explain/uncounted.hpp"

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
  EXPECT_THAT(given_twice(cluster, "gpu-5"), ElementsAre("gpu-5/0 (team-a/first, team-a/slipped-by)"));
}

TEST_F(given_twice_test, where_the_card_of_a_pod_is_a_guess_nothing_is_claimed) {
  cluster.pods.put(pod_of("team-a", "slipped-by", 60, 8, "gpu-1"));
  read();
  EXPECT_THAT(given_twice(cluster, "gpu-1"), IsEmpty());
}

TEST_F(given_twice_test, a_share_larger_than_every_card_is_certain) {
  cluster.nodes.put(vgpu_node("gpu-5", 2));
  cluster.pods.put(pod_of("team-a", "larger", 20, 1000, "gpu-5"));
  read();
  EXPECT_THAT(given_twice(cluster, "gpu-5"), ElementsAre("gpu-5/0 (team-a/larger)"));
}

TEST_F(given_twice_test, a_card_that_is_full_is_not) {
  read();
  EXPECT_THAT(given_twice(cluster, "gpu-2"), IsEmpty());
  EXPECT_THAT(given_twice(cluster, "no-such-node"), IsEmpty());
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
