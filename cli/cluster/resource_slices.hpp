#pragma once
// What DRA drivers offer of a node's cards (ResourceSlices). A driver and a device plugin know nothing of each other: a
// card that both offer is given out twice.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kube/client.hpp"
#include "text/phrase.hpp"

namespace cli {

/// By node: "8 devices of the DRA driver gpu.nvidia.com".
using slices_by_node = std::map<std::string, std::vector<text::phrase>, std::less<>>;
slices_by_node cards_in(const std::vector<nlohmann::json>& list_of_slices);

// v1 from Kubernetes 1.34 on.
inline constexpr kube::resource resource_slices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false},
    older_resource_slices{"resource.k8s.io", "v1beta1", "resourceslices", "ResourceSlice", false};

/// Empty where the cluster has no DRA.
kube::task<slices_by_node> read_resource_slices(kube::transport& transport);

}  // namespace cli
