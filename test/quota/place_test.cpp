// Placement, and filter and score, which are placement over many nodes.
#include "quota/filter.hpp"
#include "test/quota/facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace {
std::size_t allocations = 0;
}

// Counted for the whole program, so that "allocates nothing" is a number.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* const got = std::malloc(size == 0 ? 1 : size)) return got;
  throw std::bad_alloc{};
}
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }

namespace quota {
namespace {

using testing::ElementsAre;

node_inventory with(mode mode, std::vector<std::int64_t> memory_mib, int sharers = 16) {
  node_inventory out{.name = "n",
                     .serves = {.modes = static_cast<std::uint16_t>(mode), .plugin_chooses = mode == quota::mode::vgpu},
                     .cards = {},
                     .counts = {},
                     .placement = {}};
  for (std::size_t i = 0; i < memory_mib.size(); ++i)
    out.cards.push_back(
        {.uuid = "GPU-" + std::to_string(i), .model = {}, .memory_mib = memory_mib[i], .max_sharers = sharers});
  return out;
}

/// HAMi's shares and ACK's whole cards, of the same cards.
constexpr mode shares_and_wholes{static_cast<std::uint16_t>(mode::slots) | static_cast<std::uint16_t>(mode::topology)};

/// A node and its book.
class bench : public testing::Test {
 protected:
  explicit bench(node_inventory node = with(shares_and_wholes, {8192, 8192, 8192})) : name_(node.name) {
    ledger_.put(std::move(node));
  }

  static std::vector<amount> share(std::int64_t cores, std::int64_t blocks) {
    return {{"nvidia.com/gpucores", cores}, {"nvidia.com/gpumem", 256 * blocks}};
  }
  static std::vector<amount> whole(std::int64_t cards) { return {{"aliyun.com/gpu", cards}}; }

  shortfall try_it(const std::vector<std::vector<amount>>& pod, policy strategy = policy::binpack) {
    const std::vector<limits> containers{pod.begin(), pod.end()};
    const auto view = *ledger_.view(name_);
    EXPECT_FALSE(read(containers, view.inventory->serves, demand_));
    const auto result = place(demand_, view, strategy, placement_);
    EXPECT_EQ(result.fits(), fit(demand_, view).fits());
    return result;
  }
  /// The cards, in the order of the containers.
  std::vector<int> cards(const std::vector<std::vector<amount>>& pod, policy strategy = policy::binpack) {
    EXPECT_TRUE(try_it(pod, strategy).fits());
    std::vector<int> out;
    for (const auto& entry : placement_.all()) out.push_back(entry.card);
    return out;
  }
  void run(const std::vector<std::vector<amount>>& pod, policy strategy = policy::binpack) {
    ASSERT_TRUE(try_it(pod, strategy).fits());
    const auto held = holding_of(demand_, placement_, *ledger_.view(name_)->inventory);
    ASSERT_EQ(ledger_.assume("pod-" + std::to_string(++made_), held, 1000), booked::done);
  }

  std::string name_;
  ledger ledger_;
  demand demand_;
  placement placement_;
  int made_ = 0;
};

TEST_F(bench, S61_binpack_fills_the_card_that_is_used_and_spread_takes_the_emptiest) {
  run({share(30, 4)});
  EXPECT_THAT(cards({share(30, 4)}), ElementsAre(0));
  EXPECT_THAT(cards({share(30, 4)}, policy::spread), ElementsAre(1));
  run({share(30, 4)}, policy::spread);
  EXPECT_THAT(cards({share(30, 4)}, policy::spread), ElementsAre(2));
  EXPECT_THAT(cards({share(60, 4)}), ElementsAre(0));
  EXPECT_THAT(cards({share(80, 4)}), ElementsAre(2));
}

TEST_F(bench, binpack_keeps_a_card_nobody_uses_whole_even_where_it_would_fit_better) {
  ledger_.put(with(shares_and_wholes, {16384, 4096}));
  run({share(10, 20)});
  EXPECT_THAT(cards({share(10, 4)}), ElementsAre(0));
}

TEST_F(bench, S61_the_nodes_own_placement_wins_over_the_callers) {
  auto node = *ledger_.view(name_)->inventory;
  node.placement = policy::spread;
  ledger_.put(node);
  run({share(10, 1)});
  EXPECT_THAT(cards({share(10, 1)}, policy::binpack), ElementsAre(1));
}

TEST_F(bench, S8_a_shared_card_is_no_whole_card_and_a_whole_card_is_not_shared) {
  run({share(1, 1)});
  EXPECT_THAT(cards({whole(2)}), ElementsAre(1, 2));
  run({whole(2)});
  EXPECT_EQ(try_it({whole(1)}), (shortfall{.code = reason::whole_cards, .needed = 1, .available = 0}));
  EXPECT_THAT(cards({share(99, 31)}), ElementsAre(0));
  EXPECT_EQ(try_it({share(99, 32)}), (shortfall{.code = reason::memory, .needed = 8192, .available = 7936}));
}

TEST_F(bench, containers_of_one_pod_are_placed_together_or_not_at_all) {
  EXPECT_THAT(cards({share(60, 4), whole(1), share(60, 4)}), ElementsAre(1, 0, 2));
  EXPECT_EQ(try_it({share(60, 4), whole(1), share(60, 4), share(60, 4)}).code, reason::together);
  EXPECT_TRUE(placement_.all().empty());
}

TEST_F(bench, a_way_that_the_first_try_misses_is_found) {
  run({whole(1)});
  run({share(1, 16)});
  run({share(60, 1)}, policy::spread);
  // Card 1 has 16 blocks and 99 cores left, card 2 has 31 and 40. Best fit puts the 16 blocks on card 1, where the
  // other container then finds no memory, and on card 2 no cores.
  EXPECT_THAT(cards({share(10, 16), share(60, 8)}), ElementsAre(2, 1));
}

TEST_F(bench, reasons_have_their_numbers) {
  EXPECT_EQ(facts_of(try_it({whole(4)})), "whole_cards 4 > 3");
  EXPECT_EQ(facts_of(try_it({share(10, 33)})), "memory 8448 > 8192");
  for (int i = 0; i < 3; ++i) run({share(70, 1)});
  EXPECT_EQ(facts_of(try_it({share(40, 1)})), "cores 40 > 30");
}

TEST_F(bench, memory_and_cores_on_different_cards_are_said_to_be_so) {
  ledger_.put(with(shares_and_wholes, {8192, 8192}));
  run({share(90, 1)});
  run({share(20, 30)});
  EXPECT_EQ(try_it({share(50, 10)}).code, reason::one_card);
}

TEST_F(bench, as_many_parts_as_a_pod_may_have_are_judged_by_their_sum_before_any_search) {
  std::vector<std::int64_t> memory_mib;
  for (int i = 0; i < 128; ++i) memory_mib.push_back(8192 + i);  // no two alike: a search would not end
  ledger_.put(with(mode::slots, memory_mib));
  const auto each_on = [](std::int64_t cards) {
    return std::vector<amount>{{"nvidia.com/gpu", cards}, {"nvidia.com/gpumem", 100}, {"nvidia.com/gpucores", 26}};
  };
  // 26 cores 512 times are more than the node's 12,800.
  EXPECT_EQ(try_it(std::vector(8, each_on(64))).code, reason::together);
  EXPECT_EQ(try_it(std::vector(9, each_on(57))).code, reason::search_limit) << "513";
}

TEST_F(bench, S15_cards_that_are_ill_cut_by_mig_or_taken_out_of_use_get_nothing) {
  auto node = with(shares_and_wholes, {8192, 8192, 8192});
  node.cards[0].healthy = false;
  node.cards[1].mig = true;
  node.cards[2].cordoned = true;
  ledger_.put(node);
  EXPECT_EQ(try_it({share(1, 1)}).code, reason::no_cards);
  EXPECT_EQ(try_it({whole(1)}).code, reason::no_cards);
  for (auto& card : node.cards) card.mig = true;
  ledger_.put(node);
  EXPECT_EQ(try_it({share(1, 1)}).code, reason::cut_cards);
  EXPECT_EQ(try_it({whole(1)}).code, reason::cut_cards);
}

TEST_F(bench, of_a_node_whose_plugin_has_named_no_card_yet_nothing_is_known) {
  ledger_.put(with(shares_and_wholes, {}));
  for (const auto& ask : {share(1, 1), whole(1)}) EXPECT_EQ(try_it({ask}).code, reason::no_node);
}

TEST_F(bench, S52_a_card_has_no_more_sharers_than_it_may) {
  ledger_.put(with(shares_and_wholes, {8192}, 2));
  run({share(1, 1)});
  run({share(1, 1)});
  EXPECT_EQ(try_it({share(1, 1)}).code, reason::sharers);
}

TEST_F(bench, S50_several_slots_lie_on_different_cards_and_replicas_may_share_one) {
  ledger_.put(with(mode::slots, {8192, 8192}));
  const std::vector<amount> three{{"nvidia.com/gpu", 3}, {"nvidia.com/gpumem", 1000}};
  EXPECT_EQ(try_it({three}), (shortfall{.code = reason::cards, .needed = 3, .available = 2}));
  const std::vector<amount> half{{"nvidia.com/gpu", 2}, {"nvidia.com/gpumem-percentage", 50}};
  EXPECT_THAT(cards({half}), ElementsAre(0, 1));
  EXPECT_EQ(placement_.all()[1].memory_mib, 4096);
  const std::vector<amount> third{{"nvidia.com/gpu", 1}, {"nvidia.com/gpumem-percentage", 33}};
  EXPECT_THAT(cards({third}), ElementsAre(0));
  EXPECT_EQ(placement_.all()[0].memory_mib, 2703);  // 2703.36

  ledger_.put(with(mode::share, {8192, 8192}, 2));
  EXPECT_THAT(cards({{{"nvidia.com/gpu", 3}}}), ElementsAre(0, 0, 1));
}

TEST_F(bench, S50_a_hundred_cores_are_a_card_alone_and_no_cores_need_some_left) {
  ledger_.put(with(mode::slots, {8192, 8192}));
  const auto slot = [](std::int64_t cores) {
    return std::vector<amount>{{"nvidia.com/gpumem", 100}, {"nvidia.com/gpucores", cores}};
  };
  run({slot(100)});
  EXPECT_THAT(cards({slot(0)}), ElementsAre(1));
  run({slot(0)});
  EXPECT_EQ(try_it({slot(100)}).code, reason::cores);
  run({slot(60)});
  run({slot(40)});
  EXPECT_EQ(try_it({slot(0)}), (shortfall{.code = reason::cores, .needed = 1, .available = 0}));
}

TEST_F(bench, S52_memory_is_lent_beyond_the_card_only_where_that_is_switched_on) {
  auto node = with(shares_and_wholes, {8192});
  ledger_.put(node);
  EXPECT_EQ(try_it({share(10, 33)}), (shortfall{.code = reason::memory, .needed = 8448, .available = 8192}));
  node.cards[0].memory_scale = 150;
  ledger_.put(node);
  run({share(10, 33)});
  EXPECT_EQ(try_it({share(10, 16)}), (shortfall{.code = reason::memory, .needed = 4096, .available = 3840}));
  ledger_.put(with(shares_and_wholes, {8192}));
  EXPECT_EQ(ledger_.over_given("n"), 1U);
}

TEST_F(bench, counted_keys_are_counted_on_the_node) {
  auto node = with(shares_and_wholes, {8192});
  node.counts = {{"example.com/fpga", 2}};
  ledger_.put(node);
  run({{{"example.com/fpga", 1}}});
  const auto result = try_it({{{"example.com/fpga", 2}}});
  EXPECT_EQ(facts_of(result), "counted example.com/fpga 2 > 1");
  EXPECT_EQ(try_it({{{"example.com/dsp", 1}}}).code, reason::counted);
}

TEST(filter, S50_a_pod_is_judged_by_each_nodes_mode_and_scored_from_0_to_10) {
  ledger book;
  const std::vector<mode> kinds{mode::pgpu, mode::slots, mode::share, mode::vgpu};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    auto node = with(kinds[i], {8192, 8192});
    node.name = "n" + std::to_string(i);
    book.put(node);
  }
  ASSERT_EQ(book.assume("a", {.node = "n1", .grants = {{.memory_mib = 1, .card = "GPU-0"}}, .counts = {}}, 1),
            booked::done);
  std::vector<node_view> nodes;
  for (const auto* name : {"n0", "n1", "n2", "n3", "gone"}) nodes.push_back(book.view(name).value_or(node_view{}));
  const std::vector<amount> two{{"nvidia.com/gpu", 2}};
  const std::vector<limits> pod{two};
  std::vector<shortfall> out(nodes.size());
  filter(pod, nodes, out);
  EXPECT_TRUE(out[0].fits());
  EXPECT_EQ(out[1].code, reason::cards);  // all memory of a card, and one card has lost a MiB
  EXPECT_TRUE(out[2].fits());
  EXPECT_EQ(facts_of(out[3]), "not_offered nvidia.com/gpu 2 > 0");
  EXPECT_EQ(out[4].code, reason::no_node);

  std::vector<std::uint8_t> full(nodes.size()), empty(nodes.size());
  score(pod, nodes, policy::binpack, full);
  score(pod, nodes, policy::spread, empty);
  EXPECT_THAT(full, ElementsAre(10, 0, 0, 0, 0));
  EXPECT_THAT(empty, ElementsAre(0, 0, 9, 0, 0));
}

TEST(filter, allocates_nothing_whatever_the_number_of_nodes) {
  ledger book;
  std::vector<node_view> nodes;
  for (int i = 0; i < 500; ++i) {
    auto node = with(i % 3 == 0 ? mode::pgpu : mode::vgpu, {8192, 8192, 4096, 4096});
    node.name = "n" + std::to_string(i);
    book.put(node);
    const holding held{
        .node = node.name, .grants = {{.cores = i % 90, .memory_mib = 4096, .card = "GPU-0"}}, .counts = {}};
    ASSERT_EQ(book.assume("pod-" + std::to_string(i), held, 1), booked::done);
  }
  for (int i = 0; i < 500; ++i) nodes.push_back(*book.view("n" + std::to_string(i)));
  const std::vector<amount> share{{"tencent.com/vcuda-core", 70}, {"tencent.com/vcuda-memory", 16}};
  const std::vector<limits> pod{share, share, share};
  std::vector<shortfall> out(nodes.size());
  std::vector<std::uint8_t> scores(nodes.size());
  const auto before = allocations;
  filter(pod, nodes, out);
  score(pod, nodes, policy::binpack, scores);
  EXPECT_EQ(allocations, before);
  EXPECT_TRUE(out[1].fits());
}

TEST(filter, binpack_scores_a_started_card_above_a_new_one_and_spread_the_other_way) {
  ledger book;
  auto node = with(mode::vgpu, {8192, 8192});
  node.name = "empty";
  book.put(node);
  node.name = "started";
  book.put(node);
  const holding half{.node = "started", .grants = {{.cores = 50, .memory_mib = 256, .card = "GPU-0"}}, .counts = {}};
  ASSERT_EQ(book.assume("a", half, 1), booked::done);
  const std::vector<node_view> nodes{*book.view("empty"), *book.view("started")};
  const std::vector<amount> share{{"tencent.com/vcuda-core", 20}, {"tencent.com/vcuda-memory", 1}};
  const std::vector<limits> pod{share};
  std::vector<std::uint8_t> full(2), empty(2);
  score(pod, nodes, policy::binpack, full);
  score(pod, nodes, policy::spread, empty);
  EXPECT_LT(full[0], full[1]);
  EXPECT_GT(empty[0], empty[1]);
}

}  // namespace
}  // namespace quota
