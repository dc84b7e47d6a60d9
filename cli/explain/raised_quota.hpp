#pragma once
// By how much one limit of a namespace would have to be higher for a waiting pod.

#include <cstdint>
#include <optional>
#include <span>

#include "cli/cluster/picture.hpp"
#include "quota/limits.hpp"
#include "reconcilers/extender/request.hpp"

namespace cli {

/// Tried with a copy of all limits, on the nodes where the pod's cards fit. Nothing: no amount of this one limit is
/// enough, or the old ConfigMap of quotas limits the namespace as well.
std::optional<std::int64_t> enough_quota(const picture& picture, const kube::pod& pod,
                                         const reconcilers::extender::pod_request& request,
                                         std::span<const quota::node_view> nodes, const quota::exceeded_limit& limit);

}  // namespace cli
