#include "cli/verify/given_twice.hpp"

#include "test/cli/console/two_teams.hpp"

namespace cli {
namespace {

using console_test::pod_of;
using testing::ElementsAre, testing::IsEmpty;

using given_twice_test = console_test::two_teams;

TEST_F(given_twice_test, a_card_with_more_than_it_has_is_named_with_its_pods) {
  cluster.pods.put(pod_of("team-a", "slipped-by", 60, 8, "gpu-1"));
  read();
  EXPECT_THAT(given_twice(cluster, "gpu-1"),
              ElementsAre("gpu-1/0 (team-a/mine-1?, team-a/slipped-by?, team-b/secret-1?)"));
}

TEST_F(given_twice_test, a_card_that_is_full_is_not) {
  read();
  EXPECT_THAT(given_twice(cluster, "gpu-2"), IsEmpty());
  EXPECT_THAT(given_twice(cluster, "no-such-node"), IsEmpty());
}

}  // namespace
}  // namespace cli
