#pragma once
// What pods hold of cards at this moment, as metrics: the ledger, grouped by who pays and who owns the pods; and what a
// query needs to make costs of it.

#include <functional>
#include <string>
#include <string_view>

#include "controller/metrics.hpp"
#include "controller/store.hpp"
#include "kube/projections/pod.hpp"
#include "reconcilers/extender/account.hpp"

namespace reconcilers::usage {

/// Groups of pods that have series of their own; the rest share one group whose labels are all `other`.
inline constexpr std::size_t max_allocation_groups = 10'000;

/// Models of cards that have a price and a size; the rest have none.
inline constexpr std::size_t max_priced_models = 256;

/// Who made the pod, "ReplicaSet/web-5d9c"; "Pod" of one that no one made.
std::string owner_of(const kube::pod& pod);

/// @param organization of a namespace; empty: none
/// @param is_leader the leader alone has series, so that a sum over the operator's pods counts nothing twice
/// @param prices null: there are none
void write_allocation_metrics(bool is_leader, const extender::account& account,
                              const controller::store<kube::pod>& pods,
                              const std::function<std::string(std::string_view name_space)>& organization,
                              const chargeback_spec* prices, controller::metric_text& text);

}  // namespace reconcilers::usage
