#pragma once
// The pod that runs `agent fix-runtime` on one node. It sees two folders of the node: that of its container runtime,
// and /usr/bin, read-only, where NVIDIA's runtime is looked for. It is root there, without a capability, a token or a
// namespace of the node. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "text/phrase.hpp"

namespace reconcilers::container_runtime {

/// Of the pod, its account and its label.
inline constexpr std::string_view pod_name = "quartermaster-fix-runtime";
inline constexpr std::string_view part = "fix-runtime";

struct pod_facts {
  std::string ns;
  std::string image;  ///< ours
  std::string wish;   ///< remembered on the pod
  std::string policy_name, policy_uid;
};

/// @param runtime containerd, crio or docker
nlohmann::json pod_for(std::string_view node, std::string_view runtime, const pod_facts& known);

/// What the container answered; where it did not get so far, what the kubelet says. Safe to show.
text::phrase answer_of(const nlohmann::json& pod);
/// It in one line of English, as long as a status has it.
std::string line_of(const text::phrase& answer);

}  // namespace reconcilers::container_runtime
