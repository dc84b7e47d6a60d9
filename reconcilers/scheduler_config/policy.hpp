#pragma once
// The Policy API (--policy-config-file), which kube-scheduler read up to 1.22: its extenders as
// KubeSchedulerConfiguration. Source: k8s.io/kube-scheduler v0.22 config/v1.

#include <expected>
#include <string>
#include <vector>

#include "reconcilers/scheduler_config/verdict.hpp"

namespace reconcilers::scheduler_config {

struct converted_policy {
  std::string text;                      ///< a KubeSchedulerConfiguration
  std::vector<std::string> not_carried;  ///< predicates and priorities by name: the plugins of today do their work
};

bool is_policy(const document& of);
/// The error: what kube-scheduler 1.22 would have refused, in the words of today's fields.
std::expected<converted_policy, finding> convert_policy(const document& of, std::string_view kubeconfig, int minor);

}  // namespace reconcilers::scheduler_config
