#pragma once
// Which node's container runtime is set up next, where spec.containerRuntime.fix of the policy asks for it. Pure; a
// step follows from what the API shows alone, so that the next leader goes on after a crash.
//
//   make a pod -> it ends -> its answer is recorded on the AcceleratorNode -> the agent sees the new files -> remove it
//
// There is one pod name, so at most one node is under way, also while the leader changes. A pod that failed stays and
// halts everything: until the policy or our image changes, the agent calls the node ok, the node is no longer selected,
// or someone deletes the pod.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/check.hpp"
#include "kube/object.hpp"
#include "text/phrase.hpp"

namespace reconcilers::container_runtime {

/// Condition of the policy; there while spec.containerRuntime.fix is.
inline constexpr std::string_view runtimes_fixed = "ContainerRuntimesFixed";

/// A node that the policy selects.
struct fix_candidate {
  std::string name;
  std::string reported;   ///< the kubelet's word for its runtime: "containerd://2.1.4", "containerd://1.7.20 of k0s"
  bool is_ready = false;  ///< the Node
  std::optional<api::check_state> default_runtime;  ///< of the agent; nothing: no agent reports
  std::optional<api::check_state> toolkit;          ///< the same of container_toolkit
};

/// The pod that runs `agent fix-runtime`.
struct fix_pod {
  kube::object_key key;
  std::string node;
  std::string wish;          ///< what it was made for
  std::string reason;        ///< why it does not run
  std::int64_t created = 0;  ///< seconds since 1970
  bool is_ours = false, is_deleting = false, has_succeeded = false, has_failed = false;
  bool has_report = false;    ///< there is an AcceleratorNode to record its answer on
  std::int64_t recorded = 0;  ///< when the answer was recorded; 0: it was not
  text::phrase answer;        ///< as it was recorded
};

struct fix_state {
  bool is_wanted = false;  ///< the policy selects nodes
  std::string wish;        ///< the selector and our image, as a hash
  std::int64_t wall = 0;   ///< seconds since 1970
  std::vector<fix_candidate> nodes;
  std::optional<fix_pod> pod;
};

struct fix_step {
  enum class kind { none, make, wait, record, remove, halted };
  kind type = kind::none;
  std::string node, runtime;  ///< of `make`: containerd, crio or docker
  text::phrase message;       ///< for people; empty: there is nothing to say
  std::optional<std::chrono::seconds> again_in;
};

/// A pod may take so long to end, and the agent to see what it wrote.
inline constexpr std::chrono::minutes fix_patience{10};

fix_step next_fix_step(const fix_state& state);

/// containerd, crio or docker, as `agent fix-runtime --runtime` takes it; empty: it cannot set it up (k3s, RKE2
/// and k0s write their configuration themselves).
std::string_view runtime_to_fix(std::string_view reported);

}  // namespace reconcilers::container_runtime
