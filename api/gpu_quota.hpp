#pragma once
// The ConfigMap of gpu-quota-admission, `kube-system/gpuquota`, read as its users wrote it: under the key `gpu_quota`
// one JSON object {"<namespace>":{"quota":{"<model>":<cards>},"pool":["<pool>"...]}}. A namespace that is not named has
// no limit; one that is may use the models it names, each up to so many cards, in the pools it names (none: any).
// Models and pools are those of node labels (inventory.hpp). We never write it.

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "quota/limits.hpp"

namespace api {

inline constexpr std::string_view gpu_quota_namespace = "kube-system", gpu_quota_name = "gpuquota",
                                  gpu_quota_key = "gpu_quota";

/// One tenant for each namespace, by name; empty text: none. A card is 100 cores, as gpu-quota-admission counts.
/// @return what is wrong, where, and what is allowed, in one line; nothing of the text counts then.
std::expected<std::vector<quota::tenant>, std::string> read_gpu_quota(std::string_view text);

}  // namespace api
