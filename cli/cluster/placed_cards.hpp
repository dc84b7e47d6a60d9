#pragma once
// Which cards a pod has, as its annotations say.

#include <string>
#include <vector>

#include "api/accelerator_node.hpp"
#include "kube/projections/pod.hpp"

namespace cli {

/// Cards of a pod as its annotations say, by number where they say a number; each once, sorted.
std::vector<std::string> placed_cards(const kube::pod& pod);

/// The same by the names that every table has: the UUID; where no agent reports it, the node and the number, "gpu-1/0".
/// @param report of the node of the pod; null: there is none
std::vector<std::string> named_cards(const kube::pod& pod, const api::accelerator_node* report);

}  // namespace cli
