// MIG devices and the walk that go-nvlib makes from a device to the name of its profile.
#include "library_under_test.hpp"

namespace {

using namespace nvml_test;

TEST(mig, devices_have_their_own_uuid_name_memory_and_parent) {
  const session session("a100_mig");
  const auto card = card_at(0), mig = mig_at(card, 0);
  EXPECT_EQ(text("nvmlDeviceGetUUID", mig), "MIG-a1160000-0000-5000-8000-000000000001");
  EXPECT_EQ(text("nvmlDeviceGetName", mig), "NVIDIA A100-SXM4-80GB MIG 3g.40gb");
  EXPECT_EQ(value<nvml::memory>("nvmlDeviceGetMemoryInfo", mig).total >> 20, 40192U);
  EXPECT_EQ(value<device>("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", mig), card);
  EXPECT_EQ(value<unsigned>("nvmlDeviceIsMigDeviceHandle", mig), 1U);
  EXPECT_EQ(value<unsigned>("nvmlDeviceIsMigDeviceHandle", card), 0U);
  device found = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetHandleByUUID", "MIG-a1160000-0000-5000-8000-000000000002", &found), nvml::success);
  EXPECT_EQ(found, mig_at(card, 1));
  unsigned celsius = 0;
  EXPECT_EQ(call("nvmlDeviceGetTemperature", mig, 0, &celsius), nvml::not_supported);
}

TEST(mig, mode_is_per_card) {
  const session session("a100_mig");
  unsigned current = 9, pending = 9;
  EXPECT_EQ(call("nvmlDeviceGetMigMode", card_at(0), &current, &pending), nvml::success);
  EXPECT_EQ(current, 1U);
  EXPECT_EQ(call("nvmlDeviceGetMigMode", card_at(1), &current, &pending), nvml::success);
  EXPECT_EQ(current, 0U);
  device mig = nullptr;
  EXPECT_EQ(call("nvmlDeviceGetMigDeviceHandleByIndex", card_at(0), 3U, &mig), nvml::not_found);
  nvml::utilization rates{};
  EXPECT_EQ(call("nvmlDeviceGetUtilizationRates", card_at(0), &rates), nvml::not_supported);
}

TEST(mig, the_profile_is_found_through_both_instances) {
  const session session("a100_mig");
  const auto card = card_at(0), mig = mig_at(card, 1);
  const auto gpu_id = value<unsigned>("nvmlDeviceGetGpuInstanceId", mig);
  const auto compute_id = value<unsigned>("nvmlDeviceGetComputeInstanceId", mig);
  EXPECT_EQ(gpu_id, 11U);
  device gpu = nullptr, compute = nullptr;
  ASSERT_EQ(call("nvmlDeviceGetGpuInstanceById", card, gpu_id, &gpu), nvml::success);
  ASSERT_EQ(call("nvmlGpuInstanceGetComputeInstanceById", gpu, compute_id, &compute), nvml::success);
  const auto gpu_info = value<nvml::gpu_instance_info>("nvmlGpuInstanceGetInfo", gpu);
  EXPECT_EQ(gpu_info.profile, 19U);
  EXPECT_EQ(gpu_info.placement.start, 4U);
  EXPECT_EQ(gpu_info.card, card);
  EXPECT_EQ(value<nvml::compute_instance_info>("nvmlComputeInstanceGetInfo_v2", compute).profile, 0U);
  nvml::gpu_instance_profile profile{};
  ASSERT_EQ(call("nvmlDeviceGetGpuInstanceProfileInfo", card, 0U, &profile), nvml::success);
  EXPECT_EQ(profile.id, gpu_info.profile);
  EXPECT_EQ(profile.multiprocessors, 14U);
  nvml::compute_instance_profile part{};
  EXPECT_EQ(call("nvmlGpuInstanceGetComputeInstanceProfileInfo", gpu, 0U, 0U, &part), nvml::success);
  EXPECT_EQ(call("nvmlGpuInstanceGetComputeInstanceProfileInfo", gpu, 1U, 0U, &part), nvml::not_supported);
  const auto attributes = value<nvml::attributes>("nvmlDeviceGetAttributes_v2", mig);
  EXPECT_EQ(attributes.memory_mib, 9728U);
  EXPECT_EQ(attributes.gpu_slices, 1U);
}

TEST(mig, room_for_more_instances_is_what_the_placements_leave) {
  const session session("a100_mig");
  unsigned count = 99;
  ASSERT_EQ(call("nvmlDeviceGetGpuInstanceRemainingCapacity", card_at(0), 19U, &count), nvml::success);
  EXPECT_EQ(count, 1U);  // 0-3 and 4, 5 are taken; 1g fits on 0 to 6
  ASSERT_EQ(call("nvmlDeviceGetGpuInstanceRemainingCapacity", card_at(0), 9U, &count), nvml::success);
  EXPECT_EQ(count, 0U);
  nvml::placement placements[8];
  count = 8;
  ASSERT_EQ(call("nvmlDeviceGetGpuInstancePossiblePlacements_v2", card_at(0), 9U, &placements[0], &count),
            nvml::success);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(placements[1].start, 4U);
  EXPECT_EQ(placements[1].size, 4U);
}

TEST(mig, an_instance_that_is_taken_apart_leaves_its_handle_without_an_answer) {
  session session("a100_mig");
  const auto mig = mig_at(card_at(0), 2);
  auto content = session.node.content();
  content["cards"][0]["mig"]["instances"].erase(2);
  session.node.replace(content);
  char uuid[96];
  EXPECT_EQ(call("nvmlDeviceGetUUID", mig, &uuid[0], 96U), nvml::not_found);
}

}  // namespace
