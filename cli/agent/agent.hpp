#pragma once
// `quartermaster agent`: the node side. With --static-pod it keeps our extender in the configuration of the
// kube-scheduler that runs on this control-plane node as a static pod of kubeadm (agent/static_pod;
// docs/scheduler-config.md).

#include <string>

#include "agent/static_pod/options.hpp"
#include "cli/cluster/cluster.hpp"

namespace cli {

struct agent_options : agent::static_pod::options {
  cluster_options cluster;
  bool static_pod = false;
  std::string log_format = "text", log_level = "info";
};

/// Until a signal (0), or a lost turn or something it cannot run without (1); 2: wrong usage.
int run_agent(const agent_options& options);

}  // namespace cli
