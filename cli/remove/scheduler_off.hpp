#pragma once
// `quartermaster scheduler off`: spec.scheduler.mode None, and who still waits for the scheduler that goes. The
// operator does it (reconcilers/own_scheduler/plan.hpp); here it is asked for, watched, and, with --recreate-owned,
// helped: pods that wait are deleted where an owner recreates them. May be stopped at any point and called again.

#include <chrono>
#include <iosfwd>
#include <string>

#include "cli/cluster/cluster.hpp"

namespace cli {

/// API servers learn within seconds that no pod is to be sent any more; a pod made before that would wait again.
inline constexpr std::chrono::seconds api_servers_learn{10};

struct scheduler_off_options {
  cluster_options cluster;
  bool recreate_owned = false;
  bool yes = false;                 ///< do not ask
  std::chrono::seconds timeout{0};  ///< until nothing of it is left; 0: as long as it takes
  std::chrono::seconds lease_patience{60};
  std::chrono::milliseconds learn = api_servers_learn, look_every{1000};
};

/// The exit code of the verb: 0 it is off, 1 failed, 3 it is not off yet, or pods still wait for it.
int run_scheduler_off(const scheduler_off_options& options, std::ostream& out, std::ostream& err);
/// The same over a connection; the code goes to `rc`.
kube::task<void> switch_scheduler_off(kube::transport& transport, const scheduler_off_options& options,
                                      std::ostream& out, int& rc);

/// Asks on the terminal, where there is one; `yes`: does not ask. False: says so, nothing is to be done.
bool agreed(bool yes, std::ostream& out);

}  // namespace cli
