#pragma once
// A picture of a cluster as one file: to ask later, or elsewhere, why a pod waits, what would fit and what is wrong.
// Only what is judged is in it: names, labels, our and other schedulers' annotations, extended resources, conditions,
// folders of the node that are mounted; no environment, no commands, no messages of containers. Images of our
// DaemonSets alone.
//
//   {"apiVersion":"quartermaster.io/v1alpha1","kind":"Snapshot","taken":"<RFC 3339>","missingTypes":["<plural>"],
//    "nodes":[<Node>...],"pods":[...],"acceleratorpolicies":[...],"resourcerules":[...],"acceleratorquotas":[...],
//    "acceleratornodes":[...],"configmaps":[<kube-system/gpuquota>],"deviceConfigs":[<ConfigMap>...],
//    "resourcequotas":[...],"limitranges":[...],"leases":[<the
//    operator's>],"daemonsets":[<ours>],"unseen":{"<list>":"<why it is not here>"}}

#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "cli/cluster/picture.hpp"

namespace cli {

/// Reads the cluster page by page; `object` is the file's content.
kube::task<void> take_snapshot(kube::transport& transport, nlohmann::ordered_json& object);

/// @return what is wrong with the text, in one line
std::expected<void, text::phrase> read_snapshot(std::string_view text, picture& picture);

}  // namespace cli
