#pragma once
// NVIDIA's cards by name: compute capability, and whether the forward compatibility package is for them. Names are read
// as people and programs write them: "Tesla V100-SXM2-32GB", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "rtx4090", "GRID
// T4-16Q".

#include <cstdint>
#include <optional>
#include <string_view>

#include "reconcilers/cuda/version.hpp"

namespace reconcilers::cuda {

/// Which cards the forward compatibility package is for.
enum class card_class : std::uint8_t { unknown, data_centre, other };
/// By the name of the card as NVML or GPU Feature Discovery writes it: "NVIDIA-A100-SXM4-40GB", "Tesla T4".
card_class class_of(std::string_view product);

/// By its name, it is not NVIDIA's: "MI300X", "Ascend 910B".
bool is_of_other_vendor(std::string_view product);

/// Empty for a name that is not in the table, and for one that several cards have ("RTX 6000": Turing or Ada).
/// Source: https://developer.nvidia.com/cuda-gpus and its page of legacy GPUs.
std::optional<version> capability_of(std::string_view product);

}  // namespace reconcilers::cuda
