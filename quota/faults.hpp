#pragma once
// What no node takes of a pod's limits, whatever mode it is in and however empty it is. lint, simulate, explain, the
// console and the operator's events judge by these, so that all of them name the same causes.

#include <optional>
#include <span>
#include <vector>

#include "quota/place.hpp"

namespace quota {

struct pod_fault {
  refusal no;
  bool is_of_two_modes = false;  ///< no mode has both `no.key` and `no.other`, in one container or in two
};

enum class stage : std::uint8_t {
  written,   ///< a manifest: a webhook of the plugin's own product may still add the number of slots
  admitted,  ///< a pod of the cluster: what no one has added is missing
};

/// Of each container the first amount that every mode of its keys refuses. A container without keys of one mode in
/// common has none here (`two_modes`). Views as those of `read`.
std::vector<refusal> refused_amounts(std::span<const limits> pod, stage stage);

/// The first key that no mode has together with an earlier one of the pod; in one container or in two.
std::optional<pod_fault> two_modes(std::span<const limits> pod);

/// Both, of an admitted pod, and amounts that the engine takes and that are so large that they can only be bytes
/// (units_meant).
std::vector<pod_fault> faults_of(std::span<const limits> pod);

/// Those that explain why none of these nodes takes the pod: without what a node reads otherwise, or refuses in words
/// of its own.
std::vector<pod_fault> faults_among(std::span<const limits> pod, std::span<const node_view> nodes);

}  // namespace quota
