#pragma once
// What NVIDIA's documents say about drivers, CUDA and cards, as tables with their sources. Code reads these rows and
// holds no version number of its own; a new toolkit is one line.

#include <optional>
#include <span>
#include <string_view>

#include "reconcilers/cuda/version.hpp"

namespace reconcilers::cuda {

namespace sources {
inline constexpr std::string_view release_notes = "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html";
inline constexpr std::string_view compatibility = "https://docs.nvidia.com/deploy/cuda-compatibility/index.html";
inline constexpr std::string_view minor_version =
    "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html";
inline constexpr std::string_view forward =
    "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html";
inline constexpr std::string_view toolkit = "https://github.com/NVIDIA/nvidia-container-toolkit";
inline constexpr std::string_view gpu_manager = "GPU-Manager guide of the platform, baseline of the vGPU library";
}  // namespace sources

/// The smallest Linux driver that knows a CUDA version by itself (release notes, table of toolkit drivers).
struct toolkit_row {
  version cuda;
  driver_version driver;
};
/// Newest first.
std::span<const toolkit_row> toolkits();
/// The newest CUDA of the table that this driver knows. It may know a newer one that the table has not. Empty for a
/// driver older than the table.
std::optional<version> cuda_of(const driver_version& driver);
/// Empty for a version that is not in the table.
std::optional<driver_version> driver_for(const version& cuda);

/// From this driver on, every toolkit of the major version runs (minor version compatibility).
struct family_row {
  int major;
  driver_version floor;
};
std::span<const family_row> families();
const family_row* family_of(int major);

/// From toolkit `removed_in` on, libraries and compilers know no card below `below`.
struct removal_row {
  version removed_in, below;
};
std::span<const removal_row> removals();

/// The first toolkit that builds for a compute capability: older images reach such a card only through PTX.
struct first_toolkit_row {
  version capability, cuda;
};
std::optional<version> first_toolkit_for(const version& capability);

/// A library between program and driver that shares a card. It wraps the driver interface of one CUDA version.
struct shim_row {
  std::string_view mode;      ///< of the node: "vgpu"
  std::string_view name, zh;  ///< of the library, for people
  version baseline;           ///< newest runtime it knows
  std::string_view resource;  ///< who asks for it
  int whole;                  ///< multiples of so many are whole cards, which do not go through it
  std::string_view source;
};
std::span<const shim_row> shims();
/// Null where no library is between.
const shim_row* shim_of(std::string_view mode);

/// Which cards the forward compatibility package is for.
enum class card_class { unknown, data_centre, other };
/// By the name of the card as NVML or GPU Feature Discovery writes it: "NVIDIA-A100-SXM4-40GB", "Tesla T4".
card_class class_of(std::string_view product);

}  // namespace reconcilers::cuda
