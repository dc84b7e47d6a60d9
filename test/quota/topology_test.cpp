// Whole cards of one pod lie together: by hand, and beside every set of cards there is.
#include "quota/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quota/filter.hpp"
#include "small_world.hpp"

namespace quota {
namespace {

using testing::ElementsAre;

node eight(mode of) {
  node on{.name = "n", .serves = {}, .cards = {}, .counts = {}, .placement = {}};
  on.serves.modes = static_cast<std::uint16_t>(of);
  for (int i = 0; i < 8; ++i)
    on.cards.push_back({.uuid = std::to_string(i), .model = {}, .memory_mib = 81920, .numa = i / 4});
  return on;
}

class whole_cards : public testing::Test {
 protected:
  void put(const node& on) { book_.put(on_ = on); }
  void busy(std::initializer_list<const char*> cards) {
    for (const char* one : cards)
      ASSERT_EQ(book_.assume(one, {.node = "n", .grants = {{.whole = true, .card = one}}, .counts = {}}, 1),
                booked::done);
  }
  std::vector<int> cards(const std::vector<std::vector<amount>>& pod) {
    const std::vector<limits> containers{pod.begin(), pod.end()};
    demand what;
    EXPECT_FALSE(read(containers, on_.serves, what));
    EXPECT_TRUE(place(what, *book_.view("n"), policy::spread, where_).fits());
    std::vector<int> out;
    for (const auto& one : where_.all()) out.push_back(one.card);
    return out;
  }
  static std::vector<amount> gpus(std::int64_t count) { return {{"nvidia.com/gpu", count}}; }

  node on_;
  ledger book_;
  placement where_;
};

TEST_F(whole_cards, lie_on_one_numa_node_where_that_is_all_that_is_known) {
  put(eight(mode::pgpu));
  busy({"1", "2"});
  EXPECT_THAT(cards({gpus(3)}), ElementsAre(4, 5, 6));
  EXPECT_THAT(cards({gpus(2)}), ElementsAre(0, 3));
  EXPECT_THAT(cards({gpus(5)}), ElementsAre(0, 3, 4, 5, 6));
}

TEST_F(whole_cards, lie_where_the_links_are_and_leave_the_rest_linked) {
  auto on = eight(mode::pgpu);
  // NVLink between 0 and 3, and among 4, 5 and 6.
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b) {
      const bool nvlink =
          (a != b) && ((a % 3 == 0 && b % 3 == 0 && a < 4 && b < 4) || (a / 4 == 1 && b / 4 == 1 && a < 7 && b < 7));
      on.links.push_back({.pci = a / 4 == b / 4 ? path::numa_node : path::system,
                          .nvlinks = static_cast<std::uint8_t>(nvlink ? 2 : 0)});
    }
  put(on);
  EXPECT_THAT(cards({gpus(2)}), ElementsAre(0, 3));
  EXPECT_THAT(cards({gpus(3)}), ElementsAre(4, 5, 6));
  // Two containers get the five best cards, and each those that are linked.
  EXPECT_THAT(cards({gpus(2), gpus(3)}), ElementsAre(0, 3, 4, 5, 6));
  EXPECT_THAT(cards({gpus(1)}), ElementsAre(1));
  busy({"1", "2"});
  EXPECT_THAT(cards({gpus(1)}), ElementsAre(7));
}

TEST_F(whole_cards, make_way_for_the_shares_of_the_same_pod) {
  auto on = eight(mode{static_cast<std::uint16_t>(mode::pgpu) | static_cast<std::uint16_t>(mode::mps)});
  on.cards[0].memory_mib = 163840;
  put(on);
  busy({"2", "3", "4", "5", "6", "7"});
  // The share fits on card 0 alone, which is the only other one.
  const std::vector<amount> share{{"nvidia.com/mps-core", 10}, {"nvidia.com/mps-memory", 100}};
  EXPECT_THAT(cards({gpus(1), share}), ElementsAre(1, 0));
}

TEST_F(whole_cards, what_is_left_of_shared_cards_is_counted) {
  put(eight(mode::hami));
  EXPECT_EQ(fragmentation(*book_.view("n")), 0);
  busy({"7"});
  ASSERT_EQ(
      book_.assume("a", {.node = "n", .grants = {{.cores = 30, .memory_mib = 8192, .card = "0"}}, .counts = {}}, 1),
      booked::done);
  EXPECT_EQ(fragmentation(*book_.view("n")), 70);
  ASSERT_EQ(
      book_.assume("b", {.node = "n", .grants = {{.cores = 30, .memory_mib = 73728, .card = "1"}}, .counts = {}}, 1),
      booked::done);
  EXPECT_EQ(fragmentation(*book_.view("n")), 80);
  on_.cards[0].cordoned = true;
  book_.put(on_);
  EXPECT_EQ(fragmentation(*book_.view("n")), 10);
}

TEST(topology_property, no_set_of_the_model_lies_better) {
  const auto seed = static_cast<unsigned long>(small::number_from("QM_SEED", 1));
  const long scenes = small::number_from("QM_QUOTA_OPERATIONS", 100'000) / 250;
  for (long number = 0; number < scenes; ++number) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed) + ", scene " + std::to_string(number));
    small::world of{seed * 1'000'003 + static_cast<unsigned long>(number)};
    node on = eight(mode::pgpu);
    const std::size_t size = static_cast<std::size_t>(number % 100 == 0 ? 14 + of.below(3) : 2 + of.below(8));
    on.cards.resize(size);
    std::vector<brute::lying> cards(size);
    ledger book;
    std::vector<std::string> names(size);
    std::size_t free = 0;
    const bool numa = of.below(3) > 0, linked = of.below(3) > 0, uniform = of.below(4) == 0;
    for (std::size_t i = 0; i < size; ++i) {
      on.cards[i] = {.uuid = std::to_string(i),
                     .model = {},
                     .memory_mib = of.pick<long>({1024, 2048}),
                     .numa = numa ? of.below(3) - 1 : -1};
      cards[i] = {on.cards[i].numa, on.cards[i].memory_mib, number % 100 == 0 || of.below(4) > 0};
      free += cards[i].free ? 1 : 0;
    }
    std::vector<std::vector<int>> near(size, std::vector<int>(size, 0));
    if (linked) {
      on.links.resize(size * size);
      for (std::size_t a = 0; a < size; ++a)
        for (std::size_t b = 0; b < a; ++b) {
          const link between{.pci = uniform ? path::system : static_cast<path>(of.below(6)),
                             .nvlinks = static_cast<std::uint8_t>(uniform ? 12 : of.pick({0, 0, 1, 2}))};
          on.links[a * size + b] = on.links[b * size + a] = between;
          near[a][b] = near[b][a] = 10 * static_cast<int>(between.pci) + 100 * between.nvlinks;
        }
    }
    book.put(on);
    for (std::size_t i = 0; i < size; ++i)
      if (!cards[i].free)
        ASSERT_EQ(book.assume("p" + std::to_string(i),
                              {.node = "n", .grants = {{.whole = true, .card = on.cards[i].uuid}}, .counts = {}}, 1),
                  booked::done);
    if (free == 0) continue;
    const int wanted = 1 + of.below(static_cast<int>(free));
    const std::vector<amount> one{{"nvidia.com/gpu", wanted}};
    const std::vector<limits> pod{one};
    demand what;
    placement where;
    ASSERT_FALSE(read(pod, on.serves, what));
    ASSERT_TRUE(place(what, *book.view("n"), policy::binpack, where).fits());
    std::vector<int> got;
    for (const auto& part : where.all()) got.push_back(part.card);
    ASSERT_EQ(got, brute::together(cards, near, wanted));
  }
}

TEST(topology, more_cards_than_are_looked_at_in_every_way_are_grown_from_one) {
  node on = eight(mode::pgpu);
  on.cards.assign(24, on.cards[0]);
  on.links.resize(24U * 24U);
  for (std::size_t a = 0; a < 24; ++a)
    for (std::size_t b = 0; b < 24; ++b)
      if (a % 6 == b % 6) on.links[a * 24 + b].nvlinks = 4;
  std::vector<std::uint8_t> free(24), out(4);
  for (std::size_t i = 0; i < 24; ++i) free[i] = static_cast<std::uint8_t>(i);
  ASSERT_EQ(best_together(on, free, 4, out), 4U);
  EXPECT_THAT(out, ElementsAre(0, 6, 12, 18));
  EXPECT_EQ(best_together(on, free, 25, out), 0U);
}

}  // namespace
}  // namespace quota
