#include "reconcilers/verify/mistyped_label.hpp"

#include <gtest/gtest.h>

#include "test/reconcilers/projections.hpp"

namespace reconcilers::verify {
namespace {

/// What was meant; empty: no label is mistyped.
std::string meant_by(const std::string& key, const std::string& value, std::span<const label_alias> declared = {}) {
  kube::node node;
  node.labels = packed({{"kubernetes.io/hostname", "gpu-1"}, {key, value}});
  const auto found = mistyped_label_of(node, nullptr, declared);
  if (found) EXPECT_EQ(found->label, key + "=" + value);
  return found ? found->meant : std::string();
}

TEST(mistyped_label, a_key_near_one_that_asks_with_a_mode_is_found) {
  for (const auto* key :
       {"nvidia-device-enabled", "nvidia-devices-enable", "nvidia.device.enable", "nvidia-device-enabel"})
    EXPECT_EQ(meant_by(key, "pgpu"), "nvidia-device-enable=pgpu") << key;
  EXPECT_EQ(meant_by("nvidia-device-enabled", "vGPU"), "nvidia-device-enable=vGPU");
  EXPECT_EQ(meant_by("quartermaster.io/mod", "mps"), "quartermaster.io/mode=mps");
}

TEST(mistyped_label, labels_of_other_purposes_are_none) {
  EXPECT_EQ(meant_by("nvidia-device-enable", "pgpu"), "") << "it is the label itself";
  EXPECT_EQ(meant_by("nvidia-device-enabled", "true"), "") << "names no mode";
  EXPECT_EQ(meant_by("quartermaster.io/module", "pgpu"), "") << "the operator's own";
  EXPECT_EQ(meant_by("nvidia.com/gpu.present", "pgpu"), "");
  EXPECT_EQ(meant_by("nvidia-device-plugin", "mps"), "");
  EXPECT_EQ(meant_by("quartermaster.io/pool", "share"), "");
  EXPECT_EQ(meant_by("example.com/mode", "share"), "");
}

TEST(mistyped_label, labels_of_device_configurations_count) {
  const std::vector<label_alias> declared{{"example.com/accelerator", "yes", "vgpu"}};
  EXPECT_EQ(meant_by("example.com/acelerator", "vgpu", declared), "example.com/accelerator=vgpu");
  EXPECT_EQ(meant_by("example.com/accelerator", "vgpu", declared), "");
}

}  // namespace
}  // namespace reconcilers::verify
