#pragma once
// What NVIDIA's documents say about drivers, CUDA and cards, as tables with their sources. Code reads these rows and
// holds no version number of its own; a new toolkit is one line.

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reconcilers/cuda/version.hpp"

namespace reconcilers::cuda {

namespace sources {
inline constexpr std::string_view release_notes = "https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/index.html";
inline constexpr std::string_view compatibility = "https://docs.nvidia.com/deploy/cuda-compatibility/index.html";
inline constexpr std::string_view minor_version =
    "https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html";
inline constexpr std::string_view forward =
    "https://docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html";
inline constexpr std::string_view binary_code =
    "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#binary-compatibility";
inline constexpr std::string_view drivers = "https://docs.nvidia.com/datacenter/tesla/drivers/index.html#cuda-drivers";
inline constexpr std::string_view cards = "https://developer.nvidia.com/cuda-gpus";
inline constexpr std::string_view jetson = "https://docs.nvidia.com/cuda/cuda-for-tegra-appnote/index.html";
inline constexpr std::string_view toolkit = "https://github.com/NVIDIA/nvidia-container-toolkit";
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
/// The same of the releases of a branch: 12.4 of 550.
std::optional<version> cuda_of_branch(int branch);
/// Empty for a version that is not in the table.
std::optional<driver_version> driver_for(const version& cuda);
/// There is such a toolkit, as far as is known here: 12.7 and 12.99 are none, 9.2 is.
bool is_toolkit(const version& cuda);

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
/// Oldest first.
std::span<const removal_row> removals();

/// Branches of the driver that drive a generation of cards: from `first` on, and up to `last`; 0: no end is known.
struct driver_branches_row {
  version lowest, below;  ///< compute capabilities; `below` is none of them
  int first, last;
};
/// Branches of the Linux driver that were released, as far as is known here; oldest first.
std::span<const int> released_branches();
/// Null for a card that the table does not have.
const driver_branches_row* driver_branches_for(const version& capability);

/// The first toolkit that builds for a compute capability. Older images reach such a card through PTX, or through code
/// for an older capability of the same major version, which runs on newer ones. Not so on the GPUs of Tegra (Jetson),
/// which run code of their own capability alone.
struct first_toolkit_row {
  version capability, cuda;
  bool tegra = false;
};
std::optional<version> first_toolkit_for(const version& capability);
/// There are cards of this capability, as far as is known here.
bool is_capability_of_cards(const version& capability);
/// Of the GPUs of Jetson and Drive.
bool is_tegra(const version& capability);
/// The older capabilities whose code runs on a card of this one, and which this toolkit builds for; oldest first.
std::vector<version> runnable_code(const version& capability, const version& toolkit);

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

}  // namespace reconcilers::cuda
