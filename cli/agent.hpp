#pragma once
// `quartermaster agent`: the node side. With --static-pod it keeps our extender in the configuration of the
// kube-scheduler that runs on this master as a static pod of kubeadm (agent/static_pod; docs/scheduler-config.md).

#include <string>

#include "cli/cluster.hpp"

namespace cli {

struct agent_options {
  cluster_options cluster;
  bool static_pod = false;
  std::string node;                      ///< this master's name
  std::string ns;                        ///< of the operator; empty: that of the context
  std::string root = "/etc/kubernetes";  ///< where that folder of the node is seen
  std::string extender_url;              ///< empty: the clusterIP of the Service quartermaster-extender
  int patience_seconds = 180, settle_seconds = 10, look_seconds = 20, period_seconds = 10;
  int lease_seconds = 15, renew_seconds = 10, retry_seconds = 2;
  std::string log_format = "text", log_level = "info";
};

/// Until a signal (0), or a lost turn or something it cannot run without (1); 2: wrong usage.
int run_agent(const agent_options& options);

}  // namespace cli
