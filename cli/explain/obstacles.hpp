#pragma once
// What keeps a pod from a node, or from running there, apart from cards and quotas: what its object says of itself. The
// projection that the stores keep leaves most of these fields out.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "cli/explain/resource_claims.hpp"
#include "cli/lint/unoffered.hpp"
#include "kube/projections/described_pod.hpp"
#include "quota/faults.hpp"
#include "reconcilers/extender/request.hpp"
#include "text/message.hpp"

namespace cli {

struct obstacle {
  /// no_operator, ended, rejected, deleted, amounts, native_resource, gated, claims, device_class, selector,
  /// not_looked_at, other_scheduler, scheduler_says, not_read, not_well, known_error, start_refused, container_ended,
  /// other_plugin, unfamiliar_key
  std::string code;
  std::string text;  ///< a sentence in the language of the answer, safe to print
  /// No card and no node would help while it is there.
  bool decisive = false;
};

/// @param asking the scheduler that asks the operator which nodes have room; empty: none does; nothing: not known
/// @param claims what became of the pod's ResourceClaims, as far as it was seen
/// @return the decisive ones first
std::vector<obstacle> obstacles_of(const kube::described_pod& pod, std::optional<std::string_view> asking,
                                   text::language locale, const claim_states& claims = {});

/// What no node takes of a pod (quota/faults.hpp).
std::vector<obstacle> fault_obstacles(std::span<const quota::pod_fault> faults,
                                      const reconcilers::extender::pod_request& request, text::language locale);
/// Keys of a waiting pod that no one here knows and that are near to one that is known. Of a pod that is seen without
/// its cluster: whether a node offers such a key is not known.
std::vector<obstacle> mistyped_keys(const kube::pod& pod, text::language locale);

/// Resources of the pod that only a DeviceClass of DRA gives.
std::vector<obstacle> devices_of_classes(const kube::described_pod& pod, const known_resources& known,
                                         text::language locale);
/// "DeviceClass gpu.example.com (example.com/gpu)" of each of them.
std::vector<std::string> classes_asked_by(const kube::described_pod& pod, const known_resources& known);

/// What the nodeSelector of a waiting pod asks for and no node of the cluster has, a sentence for each label.
/// @param nodes_named with values that nodes have, which may be their names
std::vector<obstacle> unmet_selectors(const kube::described_pod& pod, const picture& cluster, text::language locale,
                                      bool nodes_named = true);

/// That no operator answers the scheduler of a waiting pod, and for how long: by the rule of `verify`. Nothing where
/// that scheduler does not ask, or the lease was not looked for (none in `cluster.leader`; one without a holder: it is
/// not there).
std::vector<obstacle> missing_operator(const kube::pod& pod, const picture& cluster, text::language locale);

/// The key of cards for want of which kube-scheduler refused the pod when it last looked at it; empty: there is none. A
/// pod that also names a key that no node advertises, such as nvidia.com/gpumem, is not looked at again when a node
/// gets what it lacks, but after five minutes (noderesources/fit.go, isFit, 1.37: it does not know which keys an
/// extender manages).
std::string refused_key(const kube::described_pod& pod);

/// The scheduling gates that hold a pod, in the language of the answer; empty: it has none.
std::string gates_of(const kube::described_pod& pod, text::language locale);

}  // namespace cli
