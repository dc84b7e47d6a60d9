#pragma once
// Amounts of a LimitRange that contradict each other: the API server refuses the object.

#include <vector>

#include "cli/lint/lint_finding.hpp"

namespace cli {

/// By ValidateLimitRange, over what SetDefaults_LimitRangeItem makes of it (k8s.io/kubernetes pkg/apis/core). Amounts
/// are compared rounded up to whole numbers, so that no finding is wrong; parts of one are not told apart.
void lint_range(const manifest& manifest, text::language locale, std::vector<lint_finding>& findings);

}  // namespace cli
