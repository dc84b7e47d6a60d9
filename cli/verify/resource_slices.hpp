#pragma once
// What DRA drivers offer of a node's cards (ResourceSlices). A driver and a device plugin know nothing of each other: a
// card that both offer is given out twice.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/client.hpp"

namespace cli {

/// By node: "8 devices of the DRA driver gpu.nvidia.com".
using slices_by_node = std::map<std::string, std::vector<std::string>, std::less<>>;
slices_by_node cards_in(const std::vector<nlohmann::json>& resource_slices);

/// Empty where the cluster has no DRA, or the slices may not be listed.
kube::task<slices_by_node> read_resource_slices(kube::transport& transport);

}  // namespace cli
