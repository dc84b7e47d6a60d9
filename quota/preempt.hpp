#pragma once
// Which pods have to leave a node so that one more fits: the scheduler's preemption names candidates by priority, this
// drops those that hold nothing the pod needs, and never names another.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "quota/place.hpp"

namespace quota {

struct candidate {
  std::string_view pod_uid;
  std::int32_t priority = 0;
};

struct victims {
  std::vector<std::size_t> which;  ///< indexes in what was given, ascending
  bool smallest = true;            ///< false: there were too many ways to look at all of them
};

inline constexpr int preempt_steps = 20'000;

/// The smallest set of candidates without which the pod fits: as few as can be of the highest priority, of those sets
/// as few as can be of the next, and so on down; among equals those that come later in the list, which the scheduler
/// sorts by importance. After `preempt_steps` tries the more important ones are kept one after the other as far as it
/// fits, which is what the scheduler does itself.
/// @return nothing where the pod does not fit even without all of them, or asks for what the node does not take
std::optional<victims> preempt(std::span<const limits> pod, const ledger& book, std::string_view node,
                               std::span<const candidate> candidates, const selector* only = nullptr);

}  // namespace quota
