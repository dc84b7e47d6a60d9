#pragma once
// The kube-schedulers that ask the extender, as a part of the program: our own next to the cluster's, and those of
// control-plane nodes that an agent points here.

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "cli/controller/control_plane.hpp"
#include "cli/controller/control_plane_agents.hpp"
#include "cli/controller/ground.hpp"
#include "controller/parts.hpp"
#include "reconcilers/own_scheduler/scheduler.hpp"

namespace cli {

class scheduler_part {
 public:
  struct settings {
    std::function<void()> on_state;     ///< `rows` or `state` have changed
    std::function<void()> on_sends;     ///< `sends` has changed
    std::function<void()> on_isolates;  ///< `isolates` has changed
  };
  scheduler_part(const ground& ground, settings settings);

  /// Are pods that ask for accelerators to be sent to our own scheduler? Are nodes with a module to be tainted? Empty
  /// before the first look.
  std::optional<bool> sends() const { return own_.sends(); }
  std::optional<bool> isolates() const { return own_.isolates(); }
  /// For the policy's status; empty before the first look, and where there is nothing to say.
  std::optional<std::vector<reconcilers::scheduler_row>> rows();
  std::optional<controller::condition> state() { return status().state; }

  void join(controller::parts& parts);

 private:
  control_plane_status status();

  ground ground_;
  settings settings_;
  std::set<std::string, std::less<>> control_plane_;  ///< nodes, as the store has them
  control_plane_metric nodes_;
  control_plane_agents agents_;
  reconcilers::own_scheduler::scheduler own_;
};

}  // namespace cli
