#pragma once
// `verify --allocate`: one pod for the smallest unit of a node's mode, through the real scheduler, kubelet and plugin;
// what it sees is read, and it is removed whatever happens (cli/verify/test_pod.hpp). A full node is not asked for
// anything.

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kube/task.hpp"
#include "kube/transport.hpp"
#include "reconcilers/verify/verify.hpp"

namespace cli {

struct allocate_options {
  std::string ns = "default";          ///< of the pod
  std::string image = "ubuntu:24.04";  ///< with sh and glibc, for the nvidia-smi that the container toolkit brings
  std::string scheduler;               ///< by which it is scheduled; empty: the policy's, else the cluster's own
  std::string runtime_class;           ///< with which the module's pods run
  int timeout_seconds = 120;
  std::chrono::milliseconds look_every{500};
  /// How long a pod may run before it counts as having run where its log cannot be read.
  std::chrono::milliseconds silent_run{5000};
};

/// One unit of each resource that a share or a card needs.
kube::quantities smallest_unit(const reconcilers::modules::module_type& mode);

/// Bound to the node by affinity on its name, so that the scheduler takes part.
nlohmann::json allocation_pod(const std::string& node, const kube::quantities& unit, const allocate_options& options);

/// A step of stage `allocation`: good with what was seen, wrong with why not, skipped where no unit is free. An error
/// where it was stopped by a signal, or as cli/verify/test_pod.hpp has it: nothing is known of the node then, and
/// `words` may say why.
kube::task<reconcilers::verify::step> try_allocation(kube::transport& transport,
                                                     const reconcilers::verify::node_view& node,
                                                     const reconcilers::modules::module_type& mode,
                                                     allocate_options options, text::phrase* words = nullptr);

}  // namespace cli
