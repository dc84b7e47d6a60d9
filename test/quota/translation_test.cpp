// A share in the keys of another mode is read there as the same share, or is not translated.

#include "quota/translation.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "quota/resource_keys.hpp"

namespace quota {
namespace {

service offering(mode mode, std::int32_t memory_unit_mib = 1024) {
  return {.modes = static_cast<std::uint16_t>(mode), .memory_unit_mib = memory_unit_mib, .withheld = 1};
}

std::map<std::string, std::int64_t> limits_in(const need& need, mode target, std::int32_t memory_unit_mib = 1024) {
  std::map<std::string, std::int64_t> out;
  const auto words = translated(need, target, offering(target, memory_unit_mib));
  if (!words) return out;
  for (const auto& amount : words->limits) out[std::string(amount.key)] = amount.value;
  if (words->spread_over > 1) out["cards"] = words->spread_over;
  return out;
}
using expected_limits = std::map<std::string, std::int64_t>;

TEST(translation, units_are_converted_and_never_rounded_down) {
  const need share{.cards = 1, .cores = 30, .memory_mib = 13 * 256};
  EXPECT_EQ(limits_in(share, mode::mps), (expected_limits{{"nvidia.com/mps-core", 30}, {"nvidia.com/mps-memory", 4}}));
  EXPECT_EQ(limits_in(share, mode::vgpu),
            (expected_limits{{"tencent.com/vcuda-core", 30}, {"tencent.com/vcuda-memory", 13}}));
  EXPECT_EQ(limits_in(share, mode::slots),
            (expected_limits{{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", 3328}, {"nvidia.com/gpucores", 30}}));
  EXPECT_EQ(limits_in(share, mode::memory_shares, 1),
            (expected_limits{{"aliyun.com/gpu-mem", 3328}, {"aliyun.com/gpu-core.percentage", 30}}));
  EXPECT_EQ(limits_in({.cards = 1, .cores = 31, .memory_mib = 1}, mode::memory_shares),
            (expected_limits{{"aliyun.com/gpu-mem", 1}, {"aliyun.com/gpu-core.percentage", 35}}));
}

TEST(translation, whole_cards_stay_whole_cards) {
  const need two{.cards = 2, .whole = true};
  EXPECT_EQ(limits_in(two, mode::topology), (expected_limits{{"aliyun.com/gpu", 2}}));
  EXPECT_EQ(limits_in(two, mode::vgpu), (expected_limits{{"tencent.com/vcuda-core", 200}}));
  EXPECT_EQ(limits_in(two, mode::slots),
            (expected_limits{
                {"nvidia.com/gpualloc", 2}, {"nvidia.com/gpumem-percentage", 100}, {"nvidia.com/gpucores", 100}}));
  EXPECT_TRUE(limits_in(two, mode::memory_shares).empty());
  EXPECT_TRUE(limits_in(two, mode::share).empty()) << "a replica is a seat, no card";
}

TEST(translation, what_the_other_keys_cannot_say_is_not_translated) {
  EXPECT_TRUE(limits_in({.cards = 1, .memory_mib = 1024}, mode::mps).empty()) << "it needs a number of cores";
  EXPECT_TRUE(limits_in({.cards = 2, .cores = 10, .memory_mib = 1024}, mode::vgpu).empty()) << "one card a container";
  EXPECT_TRUE(limits_in({.cards = 1, .cores = 10, .memory_percent = 50}, mode::mps).empty());
  EXPECT_TRUE(limits_in({.cards = 1, .cores = 10, .burst_cores = 50, .memory_mib = 1024}, mode::mps).empty());
  EXPECT_TRUE(limits_in({.cards = 1, .cores = 10, .memory_mib = 1024}, mode::pgpu).empty());
  EXPECT_TRUE(limits_in({.cards = 1, .distinct = false}, mode::slots).empty()) << "a replica";
  EXPECT_EQ(limits_in({.cards = 2, .memory_mib = 1536}, mode::memory_shares),
            (expected_limits{{"aliyun.com/gpu-mem", 4}, {"cards", 2}}));
}

/// Read again where it was translated for, the share has what it had, and less than a unit or a step more.
TEST(translation, is_read_back_as_the_same_share) {
  std::mt19937 random(7);
  const auto below = [&](int most) { return std::uniform_int_distribution<int>(0, most - 1)(random); };
  const mode modes[] = {mode::vgpu, mode::mps, mode::slots, mode::memory_shares, mode::volcano, mode::qgpu};
  int read_again = 0;
  for (int i = 0; i < 3000; ++i) {
    const need before{
        .cards = static_cast<std::uint32_t>(1 + below(2)), .cores = below(100), .memory_mib = 1 + below(20'000)};
    const auto target = modes[below(6)];
    const auto service = offering(target, below(2) == 0 ? 1 : 1024);
    const auto words = translated(before, target, service);
    if (!words) continue;
    auto amounts = words->limits;
    if (words->spread_over > 1) amounts.push_back({card_count.name, words->spread_over});
    const std::vector<limits> pod{amounts};
    demand demanded;
    SCOPED_TRACE(std::string(amounts.front().key) + " " + std::to_string(before.memory_mib));
    ASSERT_FALSE(read(pod, service, demanded));
    ASSERT_EQ(demanded.needs().size(), 1U);
    const auto& after = demanded.needs().front();
    EXPECT_EQ(after.cards, before.cards);
    EXPECT_GE(after.memory_mib, before.memory_mib);
    EXPECT_LT(after.memory_mib, before.memory_mib + 1024);
    EXPECT_GE(after.cores, before.cores);
    EXPECT_LT(after.cores, before.cores + 5);
    ++read_again;
  }
  EXPECT_GT(read_again, 1000);
}

}  // namespace
}  // namespace quota
