// Where gpu-manager will put what it is asked for, by hand; property_test.cpp has the model of it for random nodes.
#include "quota/forecast.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quota/filter.hpp"

namespace quota {
namespace {

using testing::ElementsAre;

class gpu_manager_node : public testing::Test {
 protected:
  explicit gpu_manager_node(std::size_t cards = 8) {
    node_.name = "n";
    node_.serves.modes = static_cast<std::uint16_t>(mode::vgpu);
    node_.serves.plugin_chooses = true;
    for (std::size_t i = 0; i < cards; ++i)
      node_.cards.push_back({.uuid = std::to_string(i), .model = {}, .memory_mib = 16384});
    book_.put(node_);
  }
  /// Four switches of two cards, two to a NUMA node.
  void link_in_pairs() {
    node_.links.clear();
    for (std::size_t a = 0; a < node_.cards.size(); ++a)
      for (std::size_t b = 0; b < node_.cards.size(); ++b)
        node_.links.push_back({.pci = a / 2 == b / 2   ? path::bridge
                                      : a / 4 == b / 4 ? path::host_bridge
                                                       : path::system});
    book_.put(node_);
  }
  static std::vector<amount> share(std::int64_t cores, std::int64_t units) {
    return {{"tencent.com/vcuda-core", cores}, {"tencent.com/vcuda-memory", units}};
  }
  static std::vector<amount> whole(std::int64_t cards) { return {{"tencent.com/vcuda-core", 100 * cards}}; }

  shortfall try_it(const std::vector<std::vector<amount>>& pod, const preferences& preferences = {}) {
    const std::vector<limits> containers{pod.begin(), pod.end()};
    EXPECT_FALSE(read(containers, node_.serves, demand_));
    const auto view = *book_.view("n");
    const auto no = place(demand_, view, preferences, placement_);
    EXPECT_EQ(fit(demand_, view, preferences), no);
    return no;
  }
  std::vector<int> cards(const std::vector<std::vector<amount>>& pod, const preferences& preferences = {}) {
    EXPECT_TRUE(try_it(pod, preferences).fits());
    std::vector<int> out;
    for (const placed& place : placement_.all()) out.push_back(place.card);
    return out;
  }
  void run(const std::vector<std::vector<amount>>& pod) {
    ASSERT_TRUE(try_it(pod).fits());
    ASSERT_EQ(book_.assume("pod-" + std::to_string(++made_), holding_of(demand_, placement_, node_), 1), booked::done);
  }

  node_inventory node_;
  ledger book_;
  demand demand_;
  placement placement_;
  int made_ = 0;
};

TEST_F(gpu_manager_node, S61_a_share_goes_where_fewest_cores_then_least_memory_are_left_whatever_the_policy) {
  run({share(30, 4)});
  EXPECT_THAT(cards({share(30, 4)}, {.default_policy = policy::spread}), ElementsAre(0));
  run({whole(1)});
  EXPECT_THAT(cards({share(80, 4)}), ElementsAre(2));
  run({share(80, 4)});
  // Card 2 has 20 cores left, card 0 has 70.
  EXPECT_THAT(cards({share(20, 1)}), ElementsAre(2));
  EXPECT_THAT(cards({share(30, 1)}), ElementsAre(0));
  run({share(70, 10)});
  run({share(30, 30), share(50, 10)});
  // Both have 20 cores left, card 3 has less memory.
  EXPECT_THAT(cards({share(20, 20)}), ElementsAre(3));
  EXPECT_THAT(cards({share(20, 30)}), ElementsAre(2));
}

TEST_F(gpu_manager_node, containers_are_placed_in_their_order_and_never_the_other_way_round) {
  run({whole(6)});
  run({share(50, 40)});
  // The first container takes the started card, the second finds its cores nowhere; the other way round they would fit.
  run({share(40, 20)});
  EXPECT_EQ(try_it({share(10, 1), share(95, 1), share(95, 1)}).code, reason::together);
  node_.cards[6].max_sharers = 2;
  book_.put(node_);
  EXPECT_EQ(try_it({share(5, 1)}), (shortfall{.code = reason::plugin_choice}));
  EXPECT_TRUE(try_it({share(5, 1)}, {.any_order = true}).fits());
  EXPECT_TRUE(try_it({share(20, 1)}).fits());
}

TEST_F(gpu_manager_node, S15_a_card_out_of_use_that_it_would_take_keeps_the_pod_away) {
  run({share(50, 4)});
  node_.cards[0].cordoned = true;
  book_.put(node_);
  EXPECT_EQ(try_it({share(50, 4)}), (shortfall{.code = reason::plugin_choice}));
  EXPECT_THAT(cards({share(60, 4)}), ElementsAre(1));
  node_.cards[1].healthy = false;
  book_.put(node_);
  EXPECT_EQ(try_it({whole(1)}).code, reason::plugin_choice);
}

TEST_F(gpu_manager_node, one_card_comes_from_the_smallest_rest_and_several_from_the_closest_group) {
  link_in_pairs();
  run({whole(1)});
  EXPECT_THAT(cards({whole(1)}), ElementsAre(1));
  EXPECT_THAT(cards({whole(2)}), ElementsAre(2, 3));
  EXPECT_THAT(cards({whole(3)}), ElementsAre(1, 2, 3));
  EXPECT_THAT(cards({whole(4)}), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(cards({whole(7)}), ElementsAre(1, 2, 3, 4, 5, 6, 7));
  run({whole(2)});
  EXPECT_THAT(cards({whole(2), whole(1)}), ElementsAre(4, 5, 1));
  EXPECT_THAT(cards({whole(1), share(10, 1)}), ElementsAre(1, 4));
}

TEST_F(gpu_manager_node, without_links_the_first_free_cards_are_taken) {
  run({share(10, 1)});
  EXPECT_THAT(cards({whole(2)}), ElementsAre(1, 2));
}

}  // namespace
}  // namespace quota
