#pragma once
// The limits of namespaces that have an AcceleratorQuota, and what counts against them, as metrics: the numbers that
// these objects have in their status.

#include <cstddef>

#include "api/accelerator_quota.hpp"
#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "quota/limits.hpp"

namespace reconcilers {

/// Limits that have series of their own; the rest share those whose labels are all `other`.
inline constexpr std::size_t max_limit_groups = 10'000;

/// @param limits null: no one counts here, so there are no series. The leader alone gives its own, so that a sum over
/// the operator's pods counts nothing twice.
void write_quota_metrics(const quota::allowances* limits, const controller::store<api::accelerator_quota>& quotas,
                         controller::metric_text& text);

}  // namespace reconcilers
