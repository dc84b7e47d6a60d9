#pragma once
// What a node's labels say about its driver and its cards. Nothing here is measured by us: GPU Feature Discovery writes
// nvidia.com/*, and the labels of the manual (cuda-major-version, cuda-minor-version) are people's or ours.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/projections/node.hpp"
#include "reconcilers/cuda/cards.hpp"
#include "reconcilers/cuda/rules.hpp"
#include "reconcilers/cuda/version.hpp"
#include "reconcilers/declarations/finding.hpp"

namespace reconcilers::cuda {

namespace keys {
inline constexpr std::string_view cuda_major = "cuda-major-version", cuda_minor = "cuda-minor-version";
/// The newest CUDA the driver knows, as GPU Feature Discovery has it.
inline constexpr std::string_view found_major = "nvidia.com/cuda.runtime-version.major",
                                  found_minor = "nvidia.com/cuda.runtime-version.minor";
inline constexpr std::string_view driver_major = "nvidia.com/cuda.driver-version.major",
                                  driver_minor = "nvidia.com/cuda.driver-version.minor",
                                  driver_patch = "nvidia.com/cuda.driver-version.revision";
inline constexpr std::string_view capability_major = "nvidia.com/gpu.compute.major",
                                  capability_minor = "nvidia.com/gpu.compute.minor";
inline constexpr std::string_view product = "nvidia.com/gpu.product";
inline constexpr std::string_view mig_strategy = "nvidia.com/mig.strategy";
}  // namespace keys

struct node_facts {
  std::string name;
  /// The newest CUDA the driver knows: the labels of the manual where they are, else what was found. A node is asked
  /// for in this order by the affinity we write too, so that both see the same.
  std::optional<version> cuda;
  std::optional<version> found;  ///< what GPU Feature Discovery found
  bool labelled = false;         ///< has cuda-major-version, no matter from whom
  std::optional<driver_version> driver;
  std::optional<version> capability;  ///< of the labels alone, because affinity is written by them
  std::string product;
  card_class card = card_class::unknown;
  bool mig = false;
  std::string architecture;
  std::string mode;  ///< "pgpu", "vgpu", "mps", or empty
};

node_facts facts_of(const kube::node& node);

/// "CUDA 12.2, driver 535.54.03, compute capability 7.0, Tesla-V100": what is known, for people.
std::string describe(const node_facts& node_facts, text::language locale = text::language::en);

/// Nodes grouped by what they have, bounded: "CUDA 12.2, compute capability 7.5, Tesla-T4: gpu-1, gpu-2 and 3 more".
std::string describe(const std::vector<const node_facts*>& nodes, text::language locale = text::language::en);

}  // namespace reconcilers::cuda
