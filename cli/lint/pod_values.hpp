#pragma once
// What the API server refuses of the values in a pod's spec (k8s.io/kubernetes pkg/apis/core/validation): words that it
// does not know, names that are there twice, and names of parts that are not there.

#include "cli/lint/judged_pod.hpp"

namespace cli {

/// The pod's containers are known.
void judge_values(judged_pod& pod);

}  // namespace cli
