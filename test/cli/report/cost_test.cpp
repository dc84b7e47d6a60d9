#include "cli/chargeback/cost.hpp"

#include <gtest/gtest.h>

namespace cli {
namespace {

constexpr std::int64_t price = 2'500'000;  // 2.50

TEST(cost, S68_a_whole_card_for_an_hour_costs_its_price) {
  EXPECT_EQ(cost_of(price, {100 * 3600, 15360 * 3600}, 15360), (cost{2'500'000, 250}));
}

TEST(cost, the_larger_part_is_paid) {
  EXPECT_EQ(cost_of(price, {30 * 3600, 1536 * 3600}, 15360).hundredths, 75) << "30 % of the cores, 10 % of the memory";
  EXPECT_EQ(cost_of(price, {10 * 3600, 7680 * 3600}, 15360).hundredths, 125) << "half of the memory";
  EXPECT_EQ(cost_of(price, {50 * 3600, 7680 * 3600}, 0).hundredths, 125) << "without memory the cores count";
}

TEST(cost, halves_are_rounded_up_from_the_exact_quotient) {
  // 0.005 for 100 core-seconds times 3600: exactly half a hundredth.
  EXPECT_EQ(cost_of(5'000, {100 * 3600, 0}, 0), (cost{5'000, 1}));
  EXPECT_EQ(cost_of(4'999, {100 * 3600, 0}, 0), (cost{4'999, 0}));
  // 0.0049999999: six decimals are 0.005, and two decimals are still 0.00.
  EXPECT_EQ(cost_of(10'000, {179'999, 0}, 0), (cost{5'000, 0}));
  EXPECT_EQ(cost_of(1'000'000, {1, 0}, 0), (cost{3, 0})) << "one core-second is 1/360000 of a card-hour";
}

TEST(cost, a_month_of_a_large_cluster_does_not_overflow) {
  const std::int64_t cards = 10'000, seconds = 31 * 86'400, mib = 196'608;
  const auto most = cost_of(999'999'999'999, {cards * 100 * seconds, cards * mib * seconds}, mib);
  EXPECT_EQ(most.hundredths, 744'000'000'000'000 - 744) << "7,440,000 hours";
  EXPECT_GT(cost_of(999'999'999'999, {cards * 100'000 * seconds, 0}, 0).hundredths, 0);
}

/// The largest amounts that an object of anyone's hand brings (api/accelerator_usage.cpp), and the largest price.
TEST(cost, edited_objects_do_not_overflow) {
  const std::int64_t cores = std::int64_t{1} << 50, memory = std::int64_t{1} << 55;
  const auto mib = card_memory_mib({1, memory});
  auto sum = cost_of(999'999'999'999, {cores, memory}, mib);
  for (int i = 0; i < 10; ++i) sum += sum;
  EXPECT_GT(sum.millionths, 0);
  EXPECT_GT(sum.hundredths, 0);
}

TEST(cost, memory_of_a_card_follows_from_the_capacity) {
  EXPECT_EQ(card_memory_mib({100 * 7200, 15360 * 7200}), 15360);
  EXPECT_EQ(card_memory_mib({100 * 7200, 0}), 0);
  EXPECT_EQ(card_memory_mib({0, 0}), 0);
}

TEST(cost, amounts_are_written_with_their_decimals) {
  EXPECT_EQ(decimal(1'234'567, 6), "1.234567");
  EXPECT_EQ(decimal(5, 2), "0.05");
  EXPECT_EQ(decimal(0, 2), "0.00");
  EXPECT_EQ(decimal(-5, 2), "-0.05");
  EXPECT_EQ(card_hours({100 * 1800, 0}), "0.50");
  EXPECT_EQ(card_hours({1800, 0}), "0.01") << "0.005 is rounded up";
  EXPECT_EQ(memory_gib_hours({0, 1536 * 3600}), "1.50");
}

}  // namespace
}  // namespace cli
