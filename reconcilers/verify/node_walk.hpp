#pragma once
// The chain of one node, from its label to its pods.

#include "reconcilers/verify/verify.hpp"

namespace reconcilers::verify {

/// @param leaderless what only an operator would do next is not held against the node
node_walk walk_node(const cluster_view& view, const node_view& node, bool leaderless);

}  // namespace reconcilers::verify
