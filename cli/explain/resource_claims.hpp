#pragma once
// The ResourceClaims of a pod: whether it waits for one of them. Their devices are given by a DRA driver, and how many
// of them are free is not judged here.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "kube/projections/described_pod.hpp"

namespace cli {

struct claim_state {
  std::vector<std::string> classes;  ///< DeviceClasses that it asks for
  std::vector<std::string> devices;  ///< that it was given: "DRIVER/POOL/DEVICE"
  bool is_allocated = false;
};
claim_state claim_state_of(const nlohmann::json& claim);

/// By ResourceClaim. None: it is not there. A claim without an entry was not seen.
using claim_states = std::map<kube::object_key, std::optional<claim_state>>;

/// Of a file of a cluster.
claim_states saved_claims(const picture& picture, const kube::described_pod& pod);
/// Of the cluster.
kube::task<void> read_claims(kube::transport& transport, kube::described_pod pod, claim_states& out);

}  // namespace cli
