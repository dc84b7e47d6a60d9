#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/allocation/cdi.hpp"

namespace agent::allocation {
namespace {

TEST(cdi, a_device_is_named_by_its_ids_in_any_order) {
  EXPECT_EQ(device_name_of({"b", "a"}), device_name_of({"a", "b"}));
  EXPECT_NE(device_name_of({"ab"}), device_name_of({"a", "b"}));
  EXPECT_EQ(device_name_of({}).size(), 18U);
  EXPECT_EQ(qualified_name("quartermaster.io/share", device_name_of({"a"})).substr(0, 25), "quartermaster.io/share=d-");
}

TEST(cdi, a_specification_is_of_one_container) {
  const auto text =
      specification("quartermaster.io/share", "d-1",
                    {{{"NVIDIA_VISIBLE_DEVICES", "GPU-1"}}, {"/dev/nvidia0"}, {{"/run/mps", "/mps"}}}, "lab/p", "main");
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
