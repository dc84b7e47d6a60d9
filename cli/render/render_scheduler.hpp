#pragma once
// `quartermaster render scheduler-config`: what a kube-scheduler must be told to ask our extender, as a file of its own
// or merged into the one that is there (scheduler_config). Judged before it is printed.

#include <istream>
#include <ostream>
#include <string>
#include <vector>

namespace cli {

struct render_scheduler_options {
  std::string address, server_name, ca, certificate, key;  ///< the last three are files of PEM
  std::string kubernetes = "1.37";
  std::string merge, unmerge;  ///< files
  std::vector<std::string> resources, not_offered, plugins;
  std::string scheduler_name;  ///< with `merge`: a profile next to those that are there
  std::string lease = "quartermaster-scheduler", kubeconfig = "/etc/kubernetes/scheduler.conf";
  bool in_cluster = false;
  std::string language = "en";  ///< of a refusal
};

/// The exit code of the verb: 0 printed, 1 a file cannot be read, 2 refused.
int run_render_scheduler(const render_scheduler_options& options, std::istream& input, std::ostream& out,
                         std::ostream& err);

}  // namespace cli
