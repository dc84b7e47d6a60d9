#include "reconcilers/cuda/cards.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <vector>

namespace reconcilers::cuda {
namespace {

TEST(cards, are_of_a_class_by_their_names) {
  for (const auto* name : {"Tesla-T4", "Tesla V100-SXM2-32GB", "NVIDIA-A100-SXM4-40GB", "NVIDIA H100 80GB HBM3",
                           "NVIDIA-L40S", "NVIDIA-H20", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-A10-SHARED"})
    EXPECT_EQ(class_of(name), card_class::data_centre) << name;
  for (const auto* name : {"NVIDIA-GeForce-RTX-4090", "NVIDIA GeForce GTX 1080", "NVIDIA-TITAN-V"})
    EXPECT_EQ(class_of(name), card_class::other) << name;
  for (const auto* name : {"", "NVIDIA-RTX-A6000", "Quadro-RTX-6000", "SomethingNew"})
    EXPECT_EQ(class_of(name), card_class::unknown) << name;
}

/// Compute capabilities as NVIDIA's list of CUDA GPUs has them, and names as people and programs write them.
TEST(cards, S28_have_a_capability_by_their_names) {
  struct row {
    std::string_view capability;
    std::vector<std::string_view> names;
  };
  const row table[] = {
      {"2.0", {"Tesla M2090"}},
      {"3.0", {"GRID K2", "Tesla K10", "GeForce GTX 680", "Quadro K4000"}},
      {"3.5", {"Tesla K40m", "Tesla-K20Xm", "GeForce GTX TITAN", "GeForce GTX 780 Ti"}},
      {"3.7", {"Tesla K80", "k80"}},
      {"5.0", {"Tesla M10", "GTX 750 Ti", "GeForce GTX 960M", "Quadro M2000M"}},
      {"5.2", {"Tesla M40 24GB", "GRID M60-8Q", "GeForce GTX TITAN X", "GTX 980", "Quadro M4000"}},
      {"6.0", {"Tesla P100-PCIE-16GB", "Quadro GP100"}},
      {"6.1",
       {"Tesla P4", "Tesla-P40", "GTX 1080 Ti", "gtx1060", "GeForce 1070", "NVIDIA TITAN Xp", "NVIDIA TITAN X (Pascal)",
        "Quadro P5000"}},
      {"7.0", {"Tesla V100-SXM2-32GB", "V100S", "NVIDIA-TITAN-V", "Quadro GV100"}},
      {"7.5",
       {"Tesla-T4", "Tesla-T4-SHARED", "GRID T4-16Q", "Quadro RTX 6000", "GRID RTX6000-4Q", "RTX 2080Ti",
        "GTX 1660 SUPER", "TITAN RTX", "T1000 8GB", "CMP 50HX"}},
      {"8.0",
       {"NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "a100", "A800", "A30", "A100X", "nvidia_a100"}},
      {"8.6",
       {"NVIDIA A10", "A10G", "A16", "A2", "NVIDIA A40-48Q", "NVIDIA RTX A6000", "RTXA6000-48Q", "A5000", "RTX-3090-Ti",
        "3090"}},
      {"8.7", {"Jetson AGX Orin", "Orin Nano"}},
      {"8.9",
       {"L4", "L2", "L20", "L40", "NVIDIA-L40S", "rtx4090", "4090", "GeForce RTX 4060 Ti", "RTX 6000 Ada",
        "NVIDIA RTX 4000 SFF Ada Generation"}},
      {"9.0", {"NVIDIA H100 80GB HBM3", "H100 NVL", "H800", "H20", "H200", "NVIDIA GH200 480GB"}},
      {"10.0", {"B200", "GB200", "NVIDIA B100"}},
      {"10.3", {"B300", "GB300"}},
      {"12.0", {"NVIDIA GeForce RTX 5090", "RTX 5070 Ti", "RTX PRO 6000 Blackwell Server Edition", "RTX PRO 4500"}},
      {"12.1", {"NVIDIA GB10"}},
  };
  for (const auto& [capability, names] : table) {
    for (const auto& name : names) EXPECT_EQ(capability_of(name), parse_version(capability)) << name;
  }
  for (const auto* name : {"", "Foo 9000", "NVIDIA", "GeForce", "Tesla", "RTX 7090", "A1000000", "RTX 6000", "TITAN X",
                           "AMD Instinct MI300X", "Iluvatar BI-V100", "Ascend 910B", "100", "-"})
    EXPECT_EQ(capability_of(name), std::nullopt) << name;
}

}  // namespace
}  // namespace reconcilers::cuda
