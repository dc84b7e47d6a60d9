// Whole cards of one pod lie together: by hand, and against every set of cards there is.
#include "quota/topology.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quota/filter.hpp"
#include "small_world.hpp"
#include "test/rounds.hpp"

namespace quota {
namespace {

using testing::ElementsAre;

node_inventory eight(mode mode) {
  node_inventory node{.name = "n", .serves = {}, .cards = {}, .counts = {}, .placement = {}};
  node.serves.modes = static_cast<std::uint16_t>(mode);
  for (int i = 0; i < 8; ++i)
    node.cards.push_back({.uuid = std::to_string(i), .model = {}, .memory_mib = 81920, .numa = i / 4});
  return node;
}

class whole_cards : public testing::Test {
 protected:
  void put(const node_inventory& node) { book_.put(node_ = node); }
  void busy(std::initializer_list<const char*> cards) {
    for (const char* card : cards)
      ASSERT_EQ(book_.assume(card, {.node = "n", .grants = {{.whole = true, .card = card}}, .counts = {}}, 1),
                booked::done);
  }
  std::vector<int> cards(const std::vector<std::vector<amount>>& pod) {
    const std::vector<limits> containers{pod.begin(), pod.end()};
    demand demand;
    EXPECT_FALSE(read(containers, node_.serves, demand));
    EXPECT_TRUE(place(demand, *book_.view("n"), policy::spread, placement_).fits());
    std::vector<int> out;
    for (const auto& entry : placement_.all()) out.push_back(entry.card);
    return out;
  }
  static std::vector<amount> gpus(std::int64_t count) { return {{"nvidia.com/gpu", count}}; }

  node_inventory node_;
  ledger book_;
  placement placement_;
};

TEST_F(whole_cards, S65_lie_on_one_numa_node_where_that_is_all_that_is_known) {
  put(eight(mode::pgpu));
  busy({"1", "2"});
  EXPECT_THAT(cards({gpus(3)}), ElementsAre(4, 5, 6));
  EXPECT_THAT(cards({gpus(2)}), ElementsAre(0, 3));
  EXPECT_THAT(cards({gpus(5)}), ElementsAre(0, 3, 4, 5, 6));
}

TEST_F(whole_cards, S9_S13_lie_where_the_links_are_and_leave_the_rest_linked) {
  auto node = eight(mode::pgpu);
  // NVLink between 0 and 3, and among 4, 5 and 6.
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b) {
      const bool nvlink =
          (a != b) && ((a % 3 == 0 && b % 3 == 0 && a < 4 && b < 4) || (a / 4 == 1 && b / 4 == 1 && a < 7 && b < 7));
      node.links.push_back({.pci = a / 4 == b / 4 ? path::numa_node : path::system,
                            .nvlinks = static_cast<std::uint8_t>(nvlink ? 2 : 0)});
    }
  put(node);
  EXPECT_THAT(cards({gpus(2)}), ElementsAre(0, 3));
  EXPECT_THAT(cards({gpus(3)}), ElementsAre(4, 5, 6));
  // Two containers get the five best cards, and each those that are linked.
  EXPECT_THAT(cards({gpus(2), gpus(3)}), ElementsAre(0, 3, 4, 5, 6));
  EXPECT_THAT(cards({gpus(1)}), ElementsAre(1));
  busy({"1", "2"});
  EXPECT_THAT(cards({gpus(1)}), ElementsAre(7));
}

TEST_F(whole_cards, make_way_for_the_shares_of_the_same_pod) {
  auto node = eight(mode{static_cast<std::uint16_t>(mode::pgpu) | static_cast<std::uint16_t>(mode::mps)});
  node.cards[0].memory_mib = 163840;
  put(node);
  busy({"2", "3", "4", "5", "6", "7"});
  // The share fits on card 0 alone, which is the only other one.
  const std::vector<amount> share{{"nvidia.com/mps-core", 10}, {"nvidia.com/mps-memory", 100}};
  EXPECT_THAT(cards({gpus(1), share}), ElementsAre(1, 0));
}

TEST_F(whole_cards, what_is_left_of_shared_cards_is_counted) {
  put(eight(mode::slots));
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
  node_.cards[0].cordoned = true;
  book_.put(node_);
  EXPECT_EQ(fragmentation(*book_.view("n")), 10);
}

TEST(topology_property, S9_no_set_of_the_model_lies_better) {
  const auto seed = static_cast<unsigned long>(small::number_from("QM_SEED", 1));
  const long scenes = small::number_from("QM_QUOTA_OPERATIONS", test::rounds(25'000, 100'000)) / 250;
  for (long number = 0; number < scenes; ++number) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed) + ", scene " + std::to_string(number));
    small::world world{seed * 1'000'003 + static_cast<unsigned long>(number)};
    node_inventory node = eight(mode::pgpu);
    const std::size_t size = static_cast<std::size_t>(number % 100 == 0 ? 14 + world.below(3) : 2 + world.below(8));
    node.cards.resize(size);
    std::vector<brute::lying> cards(size);
    ledger book;
    std::vector<std::string> names(size);
    std::size_t free = 0;
    const bool numa = world.below(3) > 0, linked = world.below(3) > 0, uniform = world.below(4) == 0;
    for (std::size_t i = 0; i < size; ++i) {
      node.cards[i] = {.uuid = std::to_string(i),
                       .model = {},
                       .memory_mib = world.pick<long>({1024, 2048}),
                       .numa = numa ? world.below(3) - 1 : -1};
      cards[i] = {node.cards[i].numa, node.cards[i].memory_mib, number % 100 == 0 || world.below(4) > 0};
      free += cards[i].free ? 1 : 0;
    }
    std::vector<std::vector<int>> near(size, std::vector<int>(size, 0));
    if (linked) {
      node.links.resize(size * size);
      for (std::size_t a = 0; a < size; ++a)
        for (std::size_t b = 0; b < a; ++b) {
          const link link{.pci = uniform ? path::system : static_cast<path>(world.below(6)),
                          .nvlinks = static_cast<std::uint8_t>(uniform ? 12 : world.pick({0, 0, 1, 2}))};
          node.links[a * size + b] = node.links[b * size + a] = link;
          near[a][b] = near[b][a] = 10 * static_cast<int>(link.pci) + 100 * link.nvlinks;
        }
    }
    book.put(node);
    for (std::size_t i = 0; i < size; ++i)
      if (!cards[i].free)
        ASSERT_EQ(book.assume("p" + std::to_string(i),
                              {.node = "n", .grants = {{.whole = true, .card = node.cards[i].uuid}}, .counts = {}}, 1),
                  booked::done);
    if (free == 0) continue;
    const int wanted = 1 + world.below(static_cast<int>(free));
    const std::vector<amount> amounts{{"nvidia.com/gpu", wanted}};
    const std::vector<limits> pod{amounts};
    demand demand;
    placement placement;
    ASSERT_FALSE(read(pod, node.serves, demand));
    ASSERT_TRUE(place(demand, *book.view("n"), policy::binpack, placement).fits());
    std::vector<int> got;
    for (const auto& part : placement.all()) got.push_back(part.card);
    ASSERT_EQ(got, brute::together(cards, near, wanted));
  }
}

TEST(topology, more_cards_than_are_looked_at_in_every_way_are_grown_from_one) {
  node_inventory node = eight(mode::pgpu);
  node.cards.assign(24, node.cards[0]);
  node.links.resize(24U * 24U);
  for (std::size_t a = 0; a < 24; ++a)
    for (std::size_t b = 0; b < 24; ++b)
      if (a % 6 == b % 6) node.links[a * 24 + b].nvlinks = 4;
  std::vector<std::uint8_t> free(24), out(4);
  for (std::size_t i = 0; i < 24; ++i) free[i] = static_cast<std::uint8_t>(i);
  ASSERT_EQ(best_together(node, free, 4, out), 4U);
  EXPECT_THAT(out, ElementsAre(0, 6, 12, 18));
  EXPECT_EQ(best_together(node, free, 25, out), 0U);
}

}  // namespace
}  // namespace quota
