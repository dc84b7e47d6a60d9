#pragma once
// What the flag --feature-gates says, by kube-scheduler's own rules of each version: component-base/featuregate.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_config/flags/command_line.hpp"

namespace scheduler_config {

/// Is the gate on, with these flags? False for a gate the version does not know.
bool gate_enabled(std::string_view gate, std::span<const flag* const> flags, int minor);

/// gate_unknown, gate_locked, gate_dependency and flag_value. `flags`: every --feature-gates, in their order.
/// Versions newer than the newest known one are judged as that.
findings judge_feature_gates(std::span<const flag* const> flags, int minor);

}  // namespace scheduler_config
