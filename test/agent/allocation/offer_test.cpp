#include "agent/allocation/offer.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace agent::allocation {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct allocation_offer : testing::Test {
  const offered_resource whole{"nvidia.com/gpu", device_unit::card};
  std::vector<quota::card> cards{{.uuid = "A", .model = "T4", .memory_mib = 16000},
                                 {.uuid = "B", .model = "T4", .memory_mib = 16000},
                                 {.uuid = "C", .model = "T4", .memory_mib = 16000}};
  kube::running_pod pod;
  std::vector<kubelet::recorded_devices> recorded;

  allocation_offer() {
    pod.key = {"lab", "p"};
    pod.id = kube::uid::parse("u1");
    pod.node_name = "n";
    pod.annotations = kube::packed_map::of(
        {{api::placement_annotation, R"({"v":1,"node":"n","containers":{"main":[{"card":"C","whole":true}]}})"}});
    recorded = {{"u1", "main", "nvidia.com/gpu", {"slot-00001"}}};
  }
  /// IDs, of which those that are withdrawn have "!" before them.
  std::vector<std::string> offered(const offered_resource& resource) const {
    const std::vector<const kube::running_pod*> pods{&pod};
    std::vector<std::string> out;
    for (const auto& device : offered_devices(resource, {"n", recorded, {}, pods, cards}))
      out.push_back((device.is_healthy ? "" : "!") + device.id);
    return out;
  }
};

TEST_F(allocation_offer, is_one_device_for_each_card) {
  EXPECT_THAT(offered(whole), ElementsAre("slot-00000", "slot-00001", "slot-00002"));
  EXPECT_EQ(offered({"nvidia.com/mps-core", device_unit::core}).size(), 300U);
  EXPECT_EQ(offered({"nvidia.com/mps-memory", device_unit::memory, 1024}).size(), 45U) << "15 whole units of each";
  EXPECT_EQ(offered({"aliyun.com/gpu-count", device_unit::slot}).size(), 3U);
  EXPECT_EQ(offered({"nvidia.com/gpualloc", device_unit::slot, 1024, 10}).size(), 30U);
  EXPECT_EQ(offered({"aliyun.com/gpu-mem", device_unit::memory, 1}).size(), 48'000U);
  cards[0].memory_mib = 2'000'000;
  EXPECT_THAT(offered({"aliyun.com/gpu-mem", device_unit::memory, 1}), IsEmpty()) << "no kubelet takes so many";
  EXPECT_EQ(offered({"aliyun.com/gpu-mem", device_unit::memory, 1024}).size(), 1'983U);
  cards.clear();
  EXPECT_THAT(offered(whole), IsEmpty());
}

TEST_F(allocation_offer, of_a_sick_card_withdraws_the_device_of_its_pod) {
  cards[2].healthy = false;
  EXPECT_THAT(offered(whole), ElementsAre("slot-00000", "!slot-00001", "slot-00002"));
}

TEST_F(allocation_offer, of_a_sick_card_that_is_free_withdraws_one_that_is_free) {
  cards[0].healthy = false;
  EXPECT_THAT(offered(whole), ElementsAre("slot-00000", "slot-00001", "!slot-00002"));
  cards[1].mig = true;
  EXPECT_THAT(offered(whole), ElementsAre("!slot-00000", "slot-00001", "!slot-00002"));
  cards[2].cordoned = true;
  EXPECT_THAT(offered(whole), ElementsAre("!slot-00000", "!slot-00001", "!slot-00002"));
}

TEST_F(allocation_offer, of_a_pod_that_has_ended_its_devices_are_free) {
  pod.phase = kube::pod_phase::failed;
  cards[2].healthy = false;
  EXPECT_THAT(offered(whole), ElementsAre("slot-00000", "slot-00001", "!slot-00002"));
}

TEST_F(allocation_offer, of_a_sick_card_withdraws_all_of_its_seats) {
  cards[2].healthy = false;
  EXPECT_THAT(offered({"nvidia.com/gpualloc", device_unit::slot, 1024, 2}),
              ElementsAre("slot-00000", "slot-00001", "slot-00002", "slot-00003", "!slot-00004", "!slot-00005"));
}

}  // namespace
}  // namespace agent::allocation
