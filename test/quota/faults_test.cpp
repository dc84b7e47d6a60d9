#include "quota/faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "quota/units.hpp"

namespace faults_test {
namespace {

using quota::amount;
using testing::ElementsAre, testing::IsEmpty;

using containers = std::vector<std::vector<amount>>;

std::string text_of(const quota::pod_fault& fault) {
  const auto& [no, is_of_two_modes] = fault;
  auto out = std::to_string(no.container) + " " + std::string(no.key);
  if (!no.other.empty()) out += (is_of_two_modes ? " against " : " without ") + std::string(no.other);
  if (const auto meant = quota::units_meant(no.key, no.value); meant > 0) out += " means " + std::to_string(meant);
  return out;
}
std::vector<std::string> faults(const containers& pod, std::span<const quota::node_view> nodes = {}) {
  const std::vector<quota::limits> limits(pod.begin(), pod.end());
  std::vector<std::string> out;
  for (const auto& fault : quota::faults_among(limits, nodes)) out.push_back(text_of(fault));
  return out;
}

constexpr std::int64_t gib = std::int64_t{1} << 30;

TEST(faults, of_amounts_keys_of_two_modes_and_bytes) {
  EXPECT_THAT(faults({{{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", 4 * gib}}}),
              ElementsAre("0 nvidia.com/gpumem means 4096"));
  EXPECT_THAT(faults({{{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", gib / 2}}}),
              ElementsAre("0 nvidia.com/gpumem means 512"))
      << "the engine takes so many MiB, and no node has them";
  EXPECT_THAT(faults({{{"nvidia.com/gpumem", 4096}}}), ElementsAre("0 nvidia.com/gpumem without nvidia.com/gpualloc"));
  EXPECT_THAT(faults({{{"nvidia.com/gpu", 1}}, {{"tencent.com/vcuda-core", 200}}}),
              ElementsAre("1 tencent.com/vcuda-core against nvidia.com/gpu"));
  EXPECT_THAT(faults({{{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", 4096}},
                      {{"tencent.com/vcuda-core", 20}, {"tencent.com/vcuda-memory", 4}},
                      {{"example.com/fpga", 1}}}),
              ElementsAre("1 tencent.com/vcuda-core against nvidia.com/gpualloc"));
}

TEST(faults, of_what_some_mode_takes_there_are_none) {
  for (const containers& pod :
       {containers{{{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", 40'000}}},
        containers{{{"nvidia.com/gpu", 1}, {"nvidia.com/gpumem-percentage", 50}}},
        containers{{{"nvidia.com/gpu", 0}}, {{"tencent.com/vcuda-core", 200}}},
        containers{{{"volcano.sh/vgpu-memory", 4096}}}, containers{{{"aliyun.com/gpu-mem", 40'960}}},
        containers{{{"example.com/fpga", 1'000'000'000}}}})
    EXPECT_THAT(faults(pod), IsEmpty()) << pod[0][0].key;
  const std::vector<amount> lonely{{"nvidia.com/gpumem", 4096}};
  const std::vector<quota::limits> manifest{lonely};
  EXPECT_THAT(quota::refused_amounts(manifest, quota::stage::written), IsEmpty()) << "a webhook may add the number";
}

TEST(faults, of_what_a_node_reads_or_refuses_itself_the_node_speaks) {
  quota::node_inventory reads{.name = "a", .serves = {}, .cards = {}, .counts = {}, .placement = {}};
  reads.serves.modes = static_cast<std::uint16_t>(quota::mode::slots);
  auto refuses = reads;
  refuses.serves.default_cards = 0;
  const containers lonely{{{"nvidia.com/gpumem", 4096}}};
  const quota::node_view reading{&reads, {}, {}}, refusing{&refuses, {}, {}};
  EXPECT_THAT(faults(lonely, std::span(&reading, 1)), IsEmpty());
  EXPECT_THAT(faults(lonely, std::span(&refusing, 1)), IsEmpty());
  refuses.serves.modes = static_cast<std::uint16_t>(quota::mode::vgpu);
  EXPECT_THAT(faults(lonely, std::span(&refusing, 1)), ElementsAre("0 nvidia.com/gpumem without nvidia.com/gpualloc"));
}

}  // namespace
}  // namespace faults_test
