#include "cli/cluster/resource_slices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cli {
namespace {

using nlohmann::json;
using testing::ElementsAre, testing::IsEmpty;

json slice(const char* node, const char* driver, int devices) {
  json list = json::array();
  for (int i = 0; i < devices; ++i) list.push_back({{"name", "gpu-" + std::to_string(i)}});
  return {{"spec", {{"nodeName", node}, {"driver", driver}, {"devices", std::move(list)}}}};
}

TEST(resource_slices, devices_of_drivers_of_cards_are_counted_by_node) {
  const text::phrase_argument driver{"driver", std::string("gpu.nvidia.com")};
  const auto found = cards_in({slice("a", "gpu.nvidia.com", 6), slice("a", "gpu.nvidia.com", 2),
                               slice("b", "gpu.nvidia.com", 1), json("no object")});
  EXPECT_THAT(found.at("a"),
              ElementsAre(text::phrase{"verify.dra_devices.many", {{"number", std::string("8")}, driver}}));
  EXPECT_THAT(found.at("b"),
              ElementsAre(text::phrase{"verify.dra_devices.one", {{"number", std::string("1")}, driver}}));
}

TEST(resource_slices, drivers_of_other_things_and_slices_without_devices_are_passed_over) {
  EXPECT_THAT(
      cards_in({slice("a", "compute-domain.nvidia.com", 1), slice("a", "dra.net", 4), slice("a", "gpu.nvidia.com", 0)}),
      IsEmpty());
}

}  // namespace
}  // namespace cli
