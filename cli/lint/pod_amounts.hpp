#pragma once
// Amounts of resources: Kubernetes' own rule for extended resources, the unit of each key, and the declared rules.

#include "cli/lint/judged_pod.hpp"

namespace cli {

/// Amounts that stand in no container: of a ResourceQuota or a LimitRange.
void judge_amounts(judged_pod& pod, const amounts_at& all, const reconcilers::declarations::rule_set& rules);
/// Of the pod's containers.
void judge_amounts(judged_pod& pod, const reconcilers::declarations::rule_set& rules);
/// Resources that stand without a pod around them.
void judge_resources_alone(judged_pod& pod, const reconcilers::declarations::rule_set& rules);

}  // namespace cli
