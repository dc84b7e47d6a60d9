#include "reconcilers/nodes/eviction_pace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

holder pod(const std::string& name, const std::string& owner) {
  holder out;
  out.pod = {"team", name};
  out.id = kube::uid::parse("pod-" + name);
  out.owner = kube::uid::parse(owner);
  return out;
}

std::vector<std::string> names(const eviction_pace::turn& turn) {
  std::vector<std::string> out;
  for (const auto& entry : turn.due) out.push_back(entry.pod.name);
  return out;
}

TEST(eviction_pace, S58_each_pod_that_was_there_first_is_evicted_once) {
  eviction_pace pace;
  const std::vector pods{pod("a", "train"), pod("b", "train"), pod("c", "serve")};
  EXPECT_THAT(names(pace.take("n", pods, 0s)), ElementsAre("a", "b", "c"));
  EXPECT_THAT(names(pace.take("n", pods, 1s)), ElementsAre("a", "b", "c")) << "none was granted";
  pace.evicted("n", pods[0], 1s);
  EXPECT_THAT(names(pace.take("n", pods, 2s)), ElementsAre("b", "c")) << "it is about to end";
  EXPECT_THAT(names(pace.take("n", pods, 61s)), ElementsAre("a", "b", "c")) << "and has not ended for a minute";
  EXPECT_THAT(names(pace.take("other", pods, 2s)), ElementsAre("a", "b", "c")) << "another node is another matter";
}

TEST(eviction_pace, S58_the_pods_of_one_owner_that_come_back_wait_and_those_of_others_do_not) {
  eviction_pace pace;
  const auto first = pod("a", "train");
  pace.take("n", std::vector{first}, 0s);
  pace.evicted("n", first, 0s);
  const std::vector second{pod("b", "train"), pod("x", "serve")};
  const auto turn = pace.take("n", second, 2s);
  EXPECT_THAT(names(turn), ElementsAre("x"));
  EXPECT_EQ(turn.next, 8s);
  EXPECT_TRUE(pace.came_back("n", second[0]));
  EXPECT_FALSE(pace.came_back("n", second[1]));
  EXPECT_FALSE(pace.came_back("n", first));
  EXPECT_FALSE(pace.came_back("other", second[0]));
  EXPECT_THAT(names(pace.take("n", second, 10s)), ElementsAre("b", "x"));
  EXPECT_TRUE(pace.came_back("n", second[0])) << "also while it is evicted";
  pace.evicted("n", second[0], 10s);
  const auto third = pace.take("n", std::vector{pod("c", "train")}, 11s);
  EXPECT_THAT(names(third), IsEmpty());
  EXPECT_EQ(third.next, 19s) << "the pause has doubled";
}

TEST(eviction_pace, a_pause_has_an_end_and_a_new_change_of_mode_begins_afresh) {
  eviction_pace pace;
  auto now = 0s;
  int evictions = 0;
  for (; now < 3600s; now += 1s) {
    const std::vector pods{pod("p" + std::to_string(evictions), "train")};
    for (const auto& entry : pace.take("n", pods, now).due) {
      pace.evicted("n", entry, now);
      ++evictions;
    }
  }
  EXPECT_EQ(evictions, 6 + 10) << "at 0, 10, 30, 70, 150 and 310 s, and then every 300 s";
  pace.forget("n");
  EXPECT_THAT(names(pace.take("n", std::vector{pod("new", "train")}, now)), ElementsAre("new"));
}

TEST(eviction_pace, pods_that_were_never_evicted_did_not_come_back) {
  eviction_pace pace;
  const auto guarded = pod("guarded", "train");
  pace.take("n", std::vector{guarded}, 0s);
  EXPECT_FALSE(pace.came_back("n", guarded));
  EXPECT_FALSE(pace.came_back("n", pod("scaled-up", "train"))) << "its budget refused the eviction of the first";
}

}  // namespace
}  // namespace reconcilers
