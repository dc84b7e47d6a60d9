#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/allocation/cdi.hpp"
#include "agent/allocation/checkpoint.hpp"

namespace agent::allocation {
namespace {

TEST(kubelet_checkpoint, has_the_devices_of_each_container) {
  const auto found = devices_recorded_in(
      R"({"Data":{"PodDeviceEntries":[{"PodUID":"u1","ContainerName":"main","ResourceName":"a/b",
      "DeviceIDs":{"-1":["d2","d1"],"0":["d0"]},"AllocResp":"Kg8="}],"RegisteredDevices":{"a/b":["d0","d1","d2"]}},"Checksum":1})");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (std::vector<recorded_devices>{{"u1", "main", "a/b", {"d0", "d1", "d2"}}}));
  EXPECT_TRUE(devices_recorded_in(R"({"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1})")->empty());
}

TEST(kubelet_checkpoint, of_another_form_is_an_error_and_never_empty) {
  for (const auto* text :
       {"", "[]", "{}", R"({"Data":3})", R"({"Data":{"PodDeviceEntries":{}}})", R"({"Data":{"PodDeviceEntries":[3]}})",
        R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r"}]}})",
        R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":["d"]}]}})",
        R"({"Data":{"PodDeviceEntries":[{"PodUID":1,"ContainerName":"c","ResourceName":"r","DeviceIDs":{}}]}})",
        R"({"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":{"0":[1]}}]}})"})
    EXPECT_FALSE(devices_recorded_in(text)) << text;
}

TEST(cdi, a_device_is_named_by_its_ids_in_any_order) {
  EXPECT_EQ(device_name_of({"b", "a"}), device_name_of({"a", "b"}));
  EXPECT_NE(device_name_of({"ab"}), device_name_of({"a", "b"}));
  EXPECT_EQ(device_name_of({}).size(), 18U);
  EXPECT_EQ(qualified_name("quartermaster.io/share", device_name_of({"a"})).substr(0, 25), "quartermaster.io/share=d-");
}

TEST(cdi, a_specification_is_of_one_container) {
  const auto text = specification("quartermaster.io/share", "d-1",
                                  {{{"NVIDIA_VISIBLE_DEVICES", "GPU-1"}}, {"/dev/nvidia0"}, {{"/run/mps", "/mps"}}},
                                  "lab/p", "main");
  const auto whole = nlohmann::json::parse(text);
  EXPECT_EQ(whole["kind"], "quartermaster.io/share");
  ASSERT_EQ(whole["devices"].size(), 1U);
  const auto& edits = whole["devices"][0]["containerEdits"];
  EXPECT_EQ(edits["env"], nlohmann::json::array({"NVIDIA_VISIBLE_DEVICES=GPU-1"}));
  EXPECT_EQ(edits["deviceNodes"][0]["path"], "/dev/nvidia0");
  EXPECT_EQ(edits["mounts"][0]["hostPath"], "/run/mps");
  EXPECT_EQ(whole["annotations"]["quartermaster.io/pod"], "lab/p");
}

}  // namespace
}  // namespace agent::allocation
