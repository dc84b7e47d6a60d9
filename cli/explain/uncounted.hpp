#pragma once
// Pods that have something of the cards and that no sum has: someone bound them past the extender, with limits that are
// allowed on no node of the mode. The kubelet gives what they ask for, and the ledger counts nothing.

#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/placements.hpp"

namespace cli {

/// Those on the node, in the order of their names, each as "team/a (container main: ...)".
std::vector<std::string> uncounted_pods(const placements& placements, std::string_view node);
/// On all nodes.
std::vector<std::string> uncounted_pods(const placements& placements);

}  // namespace cli
