#pragma once
// What the agent for static pods is given: where it runs, and how long it waits. `cli/agent` has the flags.

#include <string>

namespace agent::static_pod {

struct options {
  std::string node;                      ///< name of this control-plane node
  std::string ns;                        ///< namespace of the operator; empty: that of the context
  std::string root = "/etc/kubernetes";  ///< where that folder of the node is mounted
  std::string extender_url;              ///< empty: the clusterIP of the Service quartermaster-extender
  int patience_seconds = 180, settle_seconds = 10, look_seconds = 20, period_seconds = 10;
  int lease_seconds = 15, renew_seconds = 10, retry_seconds = 2;
};

}  // namespace agent::static_pod
