#pragma once
// What `verify` walks, of a picture of the cluster: for the verb and for the console's first screen.

#include <string_view>

#include "cli/cluster/picture.hpp"
#include "reconcilers/verify/verify.hpp"

namespace cli::console {

/// What declarations are refused, into the picture, or the reason why they cannot be read.
kube::task<void> take_in_refused_declarations(kube::transport& transport, picture& picture);

/// With what the ledger of a finished picture says of each node. `only_node`: of that one; empty: of all.
reconcilers::verify::cluster_view walked_view(const picture& picture, std::string_view only_node = {});

}  // namespace cli::console
