#pragma once
// What placements are judged by, of a whole cluster, as one file: to ask later, or elsewhere, why a pod waits and what
// would fit. Only what the ledger reads is in it: names, labels, our and other schedulers' annotations, extended
// resources; no environment, no commands, no images.
//
//   {"apiVersion":"quartermaster.io/v1alpha1","kind":"Snapshot","taken":"<RFC 3339>","nodes":[<Node>...],"pods":[...],
//    "acceleratorpolicies":[...],"resourcerules":[...],"acceleratorquotas":[...],"acceleratornodes":[...],
//    "configmaps":[<kube-system/gpuquota>]}

#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cli/cluster/placements.hpp"

namespace cli {

/// Reads the cluster page by page; `object` is the file's content.
kube::task<void> take_snapshot(kube::transport& transport, nlohmann::ordered_json& object);

/// @return what is wrong with the text, in one line
std::expected<void, std::string> read_snapshot(std::string_view text, placements& placements);

}  // namespace cli
