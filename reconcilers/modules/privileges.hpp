#pragma once
// Why each module may do what a plain container may not. A test reads every privilege out of the objects and fails on
// one that is not in the table, and on a row that no object needs any more.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reconcilers::modules {

struct privilege {
  std::string_view module;     ///< empty: every module of a policy's own
  std::string_view container;  ///< empty: the whole pod
  /// "privileged", "add NAME", "hostPID", "hostNetwork", "hostIPC", "hostPort", "token" (of a ServiceAccount),
  /// "read PATH", "write PATH", "share PATH" (mounts made inside appear on the host), "root" (no user is set).
  std::string_view permission;
  std::string_view reason;
};

std::span<const privilege> privileges();

/// What one pod template asks for, as "container: what" ("what" for the pod), sorted, each once.
std::vector<std::string> privileges_in(const nlohmann::json& pod_spec);

}  // namespace reconcilers::modules
