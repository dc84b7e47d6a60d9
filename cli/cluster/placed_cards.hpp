#pragma once
// Which cards a pod has, as its annotations say.

#include <string>
#include <vector>

#include "kube/projections/pod.hpp"

namespace cli {

/// Cards of a pod as its annotations say, by number where they say a number; each once, sorted.
std::vector<std::string> placed_cards(const kube::pod& pod);

}  // namespace cli
