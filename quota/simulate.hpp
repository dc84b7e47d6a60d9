#pragma once
// Would this list of pods fit? Places them one after the other on a copy of the book, each on the node with the best
// score, and says of each where it would lie or why it waits. For a person: allocates.
//
// It is what this engine would do with nobody else asking: the scheduler's other rules (taints, CPU, affinity), pods
// that leave, and pods that come in another order are not in it.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quota/explain.hpp"

namespace quota {

struct asking {
  std::span<const limits> containers;
  const selector* only = nullptr;  ///< the cards it wants; nullptr: any
};

struct simulated {
  std::optional<std::size_t> node;  ///< index in what was given
  holding held;                     ///< the cards, where there is a node
  explanation why;                  ///< where there is none
  std::string text;                 ///< of `why`, as the nodes were when it was this pod's turn
};

struct simulation {
  std::vector<simulated> pods;  ///< in the order they were given
  std::size_t fitting = 0;
  bool all() const { return fitting == pods.size(); }
};

/// @param nodes by name; one that is not reported takes nothing. Of equal scores the first.
/// Cost: pods x nodes, and an explanation for each that does not fit.
simulation simulate(const ledger& book, std::span<const std::string> nodes, std::span<const asking> pods,
                    policy how = policy::binpack);

}  // namespace quota
