#include "reconcilers/usage/recorder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reconcilers::usage {
namespace {

using testing::ElementsAre;

quota::node_inventory node_of(quota::mode served) {
  quota::node_inventory out;
  out.name = "gpu-1";
  out.serves.modes = static_cast<std::uint16_t>(served);
  auto& card = out.cards.emplace_back();
  card.uuid = "gpu-1/0", card.memory_mib = 15'360, card.max_sharers = 10;
  return out;
}

/// By time-slicing a pod has a turn on a card, without amounts. It pays for one of the turns that there are.
TEST(usage_parts, a_turn_on_a_card_is_one_of_as_many_as_its_plugin_offers) {
  const quota::grant turn{.container = 0, .card = "gpu-1/0"};
  const auto node = node_of(quota::mode::share);
  EXPECT_THAT(
      parts_of({"gpu-1", {turn, turn}, {}}, &node),
      ElementsAre(quota::usage_part{"gpu-1/0", "share", 10, 1'536}, quota::usage_part{"gpu-1/0", "share", 10, 1'536}));
  EXPECT_THAT(parts_of({"gpu-1", {turn}, {}}, nullptr), ElementsAre(quota::usage_part{"gpu-1/0", "vGPU", 0, 0}))
      << "of a node that is gone nothing is known";
}

TEST(usage_parts, a_share_that_says_its_amounts_is_these) {
  const quota::grant share{.container = 0, .cores = 30, .memory_mib = 2'048, .card = "gpu-1/0"};
  for (const auto served : {quota::mode::vgpu, quota::mode::share}) {
    const auto node = node_of(served);
    EXPECT_THAT(parts_of({"gpu-1", {share}, {}}, &node), ElementsAre(quota::usage_part{"gpu-1/0", "vGPU", 30, 2'048}));
  }
}

}  // namespace
}  // namespace reconcilers::usage
