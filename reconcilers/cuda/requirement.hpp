#pragma once
// What a pod says it needs of a driver and a card, in the grammar of nvidia-container-toolkit (NVIDIA_REQUIRE_CUDA,
// NVIDIA_REQUIRE_*): conditions joined by commas hold together, groups of them separated by blanks are alternatives,
// and several requirements hold together. A condition is a property (cuda, driver, arch, brand), one of
// != <= >= = < >, and a value. Properties the toolkit does not know are skipped, as it does.
//
// Our annotations are the same without the property: quartermaster.io/cuda: ">=12.4", "<13.0".

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/cuda/facts.hpp"
#include "text/phrase.hpp"

namespace reconcilers::cuda {

namespace names {
inline constexpr std::string_view cuda_annotation = "quartermaster.io/cuda";
inline constexpr std::string_view capability_annotation = "quartermaster.io/compute-capability";
inline constexpr std::string_view cuda_env = "CUDA_VERSION";
inline constexpr std::string_view require_prefix = "NVIDIA_REQUIRE_";
inline constexpr std::string_view require_jetpack = "NVIDIA_REQUIRE_JETPACK";
inline constexpr std::string_view disable_env = "NVIDIA_DISABLE_REQUIRE";
}  // namespace names

enum class property : std::uint8_t { cuda, arch, driver, brand };
enum class comparison : std::uint8_t { equal, not_equal, less, less_equal, greater, greater_equal };

struct version_condition {
  property attribute{};
  comparison op{};
  std::array<int, 3> value{};  ///< what was not written is 0; unused for brand
  friend bool operator==(const version_condition&, const version_condition&) = default;
};
/// "cuda>=12.4".
std::string to_string(const version_condition& condition);

/// All of them hold.
using conjunction = std::vector<version_condition>;

struct requirement {
  std::vector<conjunction> any_of;  ///< empty: nothing is needed
  std::string source;               ///< "annotation quartermaster.io/cuda", "env CUDA_VERSION of container main"
  std::string text;                 ///< as it was written, safe to show
};

/// The grammar of the toolkit. The error is one line: what is wrong and what is allowed.
std::expected<requirement, text::phrase> parse_requirement(std::string_view text);
/// The same of an annotation, whose conditions are all about `about`.
std::expected<requirement, text::phrase> parse_annotation(std::string_view text, property about);
/// CUDA_VERSION as the toolkit takes it: cuda>=MAJOR.MINOR. `checked` is false where NVIDIA_DISABLE_REQUIRE switches
/// the runtime's own check off: then every driver of minor version compatibility will do.
std::expected<requirement, text::phrase> parse_cuda_version(std::string_view text, bool checked = true);

enum class fit : std::uint8_t { yes, no, unknown };
/// unknown where an alternative needs a fact the node does not have and none is met. A brand is on no label and counts
/// as met: the container runtime checks it.
fit meets(const node_facts& node, const version_condition& needed);
fit meets(const node_facts& node, const requirement& needed);
fit meets(const node_facts& node, std::span<const requirement> needed);

/// The runtime an image was most likely built with: the newest CUDA that all of them start from. Empty where none
/// names one.
std::optional<version> runtime_of(std::span<const requirement> needed);

}  // namespace reconcilers::cuda
