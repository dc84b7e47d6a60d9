#pragma once
// A Pod with all it says of where it may run and of what became of it. For answers about one pod, or about pods of a
// file: the stores keep kube::pod.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kube/projections/pod.hpp"

namespace kube {

/// What a spec says of nodes, apart from spec.nodeName; what affinity prefers is left out.
struct node_rules {
  struct toleration {
    std::string key, op, value, effect;
    friend bool operator==(const toleration&, const toleration&) = default;
  };
  struct requirement {
    std::string key, op;
    std::vector<std::string> values;
    bool is_field = false;  ///< of matchFields, which knows metadata.name alone
    friend bool operator==(const requirement&, const requirement&) = default;
  };
  std::map<std::string, std::string> selector;
  std::vector<toleration> tolerations;
  std::optional<std::vector<std::vector<requirement>>> terms;  ///< where there is a list, a node has to meet one of it
  friend bool operator==(const node_rules&, const node_rules&) = default;
};

/// Reason and message of a status; `name` is the container's, of a condition its status ("False").
struct statement {
  std::string name, reason, message;
  friend bool operator==(const statement&, const statement&) = default;
};

/// An entry of spec.resourceClaims, which are DRA's.
struct pod_claim {
  std::string name;
  std::string object;        ///< the ResourceClaim; empty: it has not been made of the template yet
  std::string made_of = {};  ///< a ResourceClaimTemplate; empty: the claim is named
  friend bool operator==(const pod_claim&, const pod_claim&) = default;
};

/// How a container ended.
struct container_end {
  std::string name, reason;  ///< "OOMKilled", "Error", "Completed"
  std::int32_t exit_code = 0;
  std::int64_t ended_at = 0;  ///< seconds since 1970; 0: not known
  std::int32_t restarts = 0;
  bool is_last = false;  ///< of its run before; false: it has ended and runs no more
  friend bool operator==(const container_end&, const container_end&) = default;
};

/// `containers` are all of them, with their requests.
struct described_pod : pod {
  std::int64_t deleted_at = 0;                           ///< metadata.deletionTimestamp, seconds since 1970; 0: none
  std::int64_t grace_s = 0;                              ///< metadata.deletionGracePeriodSeconds
  std::vector<std::string> finalizers = {}, gates = {};  ///< names
  std::vector<pod_claim> claims = {};
  std::set<std::string> native_limits = {};  ///< keys that are no extended resource: cpu, kubernetes.io/gpu
  node_rules rules = {};
  statement status = {};                    ///< its own
  std::optional<statement> scheduled = {};  ///< the condition PodScheduled
  std::vector<statement> waiting = {};      ///< containers, init containers first
  std::vector<container_end> ends = {};     ///< of containers that have ended, or ended before; init containers first

  static result<described_pod> decode(std::string_view bytes);
  friend bool operator==(const described_pod&, const described_pod&) = default;
};

}  // namespace kube
