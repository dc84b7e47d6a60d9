#pragma once
// What `verify` walks, of a picture of the cluster: for the verb and for the console's first screen.

#include <string_view>

#include "cli/cluster/picture.hpp"
#include "reconcilers/verify/verify.hpp"

namespace cli::console {

/// With what the ledger of a finished picture says of each node. `only_node`: of that one; empty: of all.
reconcilers::verify::cluster_view walked_view(const picture& picture, std::string_view only_node = {});

}  // namespace cli::console
