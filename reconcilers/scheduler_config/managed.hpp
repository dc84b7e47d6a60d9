#pragma once
// The resources a kube-scheduler asks our extender about, and whether a kubelet advertises them. Those of docs/quota.md
// that a module of ours, or one it takes over, offers.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reconcilers::scheduler_config {

struct managed_key {
  std::string_view key;
  bool offered = true;            ///< false: no node ever advertises it, so kube-scheduler must not look for room
  std::string_view partner = {};  ///< an extender that manages the one and not the other misses pods
};
inline constexpr managed_key managed_keys[] = {
    {"nvidia.com/gpu"},
    {"nvidia.com/gpu.shared"},
    {"nvidia.com/mps-core", true, "nvidia.com/mps-memory"},
    {"nvidia.com/mps-memory", true, "nvidia.com/mps-core"},
    {"tencent.com/vcuda-core", true, "tencent.com/vcuda-memory"},
    {"tencent.com/vcuda-memory", true, "tencent.com/vcuda-core"},
    {"nvidia.com/gpualloc"},
    {"nvidia.com/gpumem", false},
    {"nvidia.com/gpucores", false},
    {"nvidia.com/gpumem-percentage", false},
    {"aliyun.com/gpu-mem"},
    {"aliyun.com/gpu-count", false},
    {"aliyun.com/gpu-core.percentage", false},
};
/// Null for any other key.
const managed_key* managed_key_of(std::string_view key) noexcept;

}  // namespace reconcilers::scheduler_config
