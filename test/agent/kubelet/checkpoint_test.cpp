#include "agent/kubelet/checkpoint.hpp"

#include <gtest/gtest.h>

namespace agent::kubelet {
namespace {

TEST(kubelet_checkpoint, has_the_devices_of_each_container) {
  const auto found = devices_recorded_in(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"u1","ContainerName":"main","ResourceName":"a/b",
      "DeviceIDs":{"-1":["d2","d1"],"0":["d0"]},"AllocResp":"Kg8="}],"RegisteredDevices":{"a/b":["d0","d1","d2"]}},"Checksum":1})");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (std::vector<recorded_devices>{{"u1", "main", "a/b", {"d0", "d1", "d2"}}}));
  EXPECT_TRUE(
      devices_recorded_in(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1})")->empty());
}

TEST(kubelet_checkpoint, of_another_form_is_an_error_and_never_empty) {
  for (
      const auto* text :
      {"", "[]", "{}", R"({"Data":3})", R"({"Data":{"PodDeviceEntries":{}}})", R"({"Data":{"PodDeviceEntries":[3]}})",
       R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r"}]}})",
       R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":["d"]}]}})",
       R"({"Data":{"PodDeviceEntries":[{"PodUID":1,"ContainerName":"c","ResourceName":"r","DeviceIDs":{}}]}})",
       R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":{"0":[1]}}]}})"})
    EXPECT_FALSE(devices_recorded_in(text)) << text;
}

}  // namespace
}  // namespace agent::kubelet
