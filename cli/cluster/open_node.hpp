#pragma once
// Which nodes take new pods right now: the one rule for what is free, in every answer.

#include "kube/projections/node.hpp"

namespace cli {

/// Ready, not cordoned, and not in a change of mode.
bool takes_new_pods(const kube::node& node);

}  // namespace cli
