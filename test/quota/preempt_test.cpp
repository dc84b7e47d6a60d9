// The smallest set of victims, by hand and beside every set the model can think of.
#include "quota/preempt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "small_world.hpp"

namespace {

using quota::candidate;
using testing::ElementsAre;
using testing::IsEmpty;

class preempting : public testing::Test {
 protected:
  preempting() {
    quota::node on{.name = "n", .serves = {}, .cards = {}, .counts = {}, .placement = {}};
    on.serves.modes = static_cast<std::uint16_t>(quota::mode::hami) | static_cast<std::uint16_t>(quota::mode::topology);
    for (int i = 0; i < 2; ++i) on.cards.push_back({.uuid = std::to_string(i), .model = {}, .memory_mib = 8192});
    book_.put(on);
  }
  void hold(const char* uid, const char* card, std::int32_t cores) {
    ASSERT_EQ(book_.assume(
                  uid, {.node = "n", .grants = {{.cores = cores, .memory_mib = 256, .card = card}}, .counts = {}}, 1),
              quota::booked::done);
  }
  std::optional<quota::victims> ask(const std::vector<quota::amount>& container, const std::vector<candidate>& of) {
    const std::vector<quota::limits> pod{container};
    return quota::preempt(pod, book_, "n", of);
  }
  static std::vector<quota::amount> share(std::int64_t cores) {
    return {{"nvidia.com/gpumem", 256}, {"nvidia.com/gpucores", cores}};
  }
  quota::ledger book_;
};

TEST_F(preempting, nobody_goes_where_it_fits_and_nobody_helps_where_it_cannot) {
  hold("a", "0", 50);
  EXPECT_THAT(ask(share(60), {{"a", 1}})->which, IsEmpty());
  EXPECT_FALSE(ask({{"aliyun.com/gpu", 3}}, {{"a", 1}}).has_value());
  EXPECT_FALSE(ask({{"tencent.com/vcuda-core", 100}}, {{"a", 1}}).has_value());
}

TEST_F(preempting, those_that_need_not_go_are_dropped_and_lower_priorities_go_first) {
  hold("a", "0", 50);
  hold("b", "0", 50);
  hold("c", "1", 60);
  hold("d", "1", 40);
  const std::vector<candidate> all{{"a", 9}, {"c", 5}, {"b", 5}, {"d", 1}, {"unknown", 0}};
  EXPECT_THAT(ask(share(40), all)->which, ElementsAre(3));
  EXPECT_THAT(ask(share(50), all)->which, ElementsAre(2));
  EXPECT_THAT(ask(share(60), all)->which, ElementsAre(1));
  EXPECT_THAT(ask({{"aliyun.com/gpu", 1}}, all)->which, ElementsAre(1, 3));
  EXPECT_THAT(ask({{"aliyun.com/gpu", 2}}, all)->which, ElementsAre(0, 1, 2, 3));
  // Who was not named stays.
  EXPECT_FALSE(ask({{"aliyun.com/gpu", 1}}, {{"a", 9}, {"d", 1}}).has_value());
}

TEST_F(preempting, many_equal_candidates_are_reprieved_one_after_the_other) {
  std::vector<std::string> uids;
  std::vector<candidate> all;
  for (int i = 0; i < 60; ++i) uids.push_back("p" + std::to_string(i));
  quota::node on = *book_.view("n")->what;
  for (auto& one : on.cards) one.max_sharers = 100;
  book_.put(on);
  for (int i = 0; i < 60; ++i) {
    hold(uids[static_cast<std::size_t>(i)].c_str(), i % 2 == 0 ? "0" : "1", 3);
    all.push_back({uids[static_cast<std::size_t>(i)], 0});
  }
  const auto got = ask(share(60), all);
  ASSERT_TRUE(got.has_value());
  EXPECT_FALSE(got->smallest);
  EXPECT_EQ(got->which.size(), 17U);  // 10 cores are free; 17 of 3 make 50
}

TEST(preempt_property, no_set_of_the_model_is_smaller) {
  const auto seed = static_cast<unsigned long>(small::number_from("QM_SEED", 1));
  const long scenes = small::number_from("QM_QUOTA_OPERATIONS", 100'000) / 100;
  long some = 0, none = 0, several = 0;
  for (long number = 0; number < scenes; ++number) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed) + ", scene " + std::to_string(number));
    small::world of{seed * 1'000'003 + static_cast<unsigned long>(number)};
    const auto modes = of.pick<std::set<std::string>>({{"hami"}, {"vgpu"}, {"pgpu", "vgpu"}, {"hami", "vgpu"}});
    of.add_node("a", modes, 1 + of.below(3));
    of.add_node("b", modes, 1);
    std::vector<std::string> uids;
    for (int i = 0; i < 9; ++i) {
      const auto name = i == 0 ? "b" : "a";
      const auto uid = "p" + std::to_string(i);
      if (of.run(uid, of.make_pod(name, 1 + of.below(2)), name)) uids.push_back(uid);
    }
    std::vector<candidate> all;
    for (const auto& uid : uids)
      if (of.below(5) > 0) all.push_back({uid, of.below(3)});
    const auto pod = of.make_pod("a", 1 + of.below(2));
    const small::spoken words{pod};
    const auto got = quota::preempt(words.limits, of.book, "a", all);

    // How many of each priority go, the highest first.
    using cost = std::vector<long>;
    std::optional<cost> best;
    for (unsigned set = 0; set < 1U << all.size(); ++set) {
      auto world = of.model;
      cost now(3, 0);
      for (std::size_t i = 0; i < all.size(); ++i)
        if ((set >> i & 1U) != 0) {
          world.pods.erase(std::string{all[i].pod_uid});
          ++now[static_cast<std::size_t>(2 - all[i].priority)];
        }
      if ((!best || now < *best) && of.fits(world, pod, "a")) best = now;
    }
    ASSERT_EQ(got.has_value(), best.has_value());
    if (!best) {
      ++none;
      continue;
    }
    ASSERT_TRUE(got->smallest);
    auto world = of.model;
    cost now(3, 0);
    for (const auto i : got->which) {
      ASSERT_EQ(world.pods.erase(std::string{all.at(i).pod_uid}), 1U);
      ++now[static_cast<std::size_t>(2 - all[i].priority)];
    }
    ASSERT_TRUE(of.fits(world, pod, "a"));
    ASSERT_EQ(now, *best);
    if (!got->which.empty()) ++some;
    if (got->which.size() > 1) ++several;
  }
  if (scenes < 1000) return;
  EXPECT_GT(some, scenes / 10);
  EXPECT_GT(several, scenes / 50);
  EXPECT_GT(none, scenes / 50);
}

}  // namespace
