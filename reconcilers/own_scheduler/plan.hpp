#pragma once
// When what of the scheduler next to the cluster's own is there, and when pods are sent to it. Pure; a step is taken
// from what the API shows alone, so that the next leader goes on after a crash.
//
//   on:  objects -> a replica is available -> pods are sent (the label on ResourceRules) -> nodes are isolated
//   off: no pod is sent -> nodes are free again -> the last pod that waits for it is gone -> objects are removed
//
// Once pods are sent they stay sent while no replica is available: they wait, and do not slip by to a scheduler that
// does not count cards. A pod keeps the scheduler it was made with, so ours stays as long as one waits for it.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kube/resource.hpp"
#include "text/phrase.hpp"

namespace reconcilers::own_scheduler {

/// Its Deployment, as far as it is ours.
struct running {
  std::int32_t desired = 0, ready = 0, available = 0;
  bool rolled_out = false;
  std::string version;  ///< of the server it was made for
  std::string problem;  ///< why it gets no further
};

struct situation {
  bool wanted = false;        ///< the policy says Dedicated
  bool isolated = true;       ///< and that nodes are to be isolated
  bool extender = false;      ///< we answer a kube-scheduler at all
  bool certificates = false;  ///< it has what it shows us
  bool version = false;       ///< of the server, known
  std::optional<running> deployment;
  bool objects = false;                    ///< anything of it is there
  bool sent = false;                       ///< the API server sends pods to it
  int tainted = 0;                         ///< nodes that are isolated
  int free = 0;                            ///< nodes without a module
  std::string problem;                     ///< what came of the last writes; empty: all is as wanted
  text::phrase message;                    ///< of the same
  std::vector<kube::object_key> waiting;   ///< pods of its name without a node, in order
  std::chrono::milliseconds quiet_for{0};  ///< how long no pod has been sent and none has waited
};

struct plan {
  enum class objects { as_wanted, as_they_are, none };
  objects keep = objects::as_they_are;
  bool send = false;
  bool isolate = false;
  bool visible = true;  ///< there is something to say of it in the status
  bool good = false;
  std::string reason;  ///< CamelCase
  text::phrase message;
  std::optional<std::chrono::milliseconds> again_in;
};

/// API servers learn within seconds that no pod is to be sent any more.
inline constexpr std::chrono::seconds quiet_needed{10};

plan plan_of(const situation& is);

/// The version to run, as images are tagged: `answered` by an API server that has said nothing lower for `since`.
/// During an upgrade several servers answer differently, and kube-scheduler must not be newer than any: a lower version
/// counts at once, a higher one when it has been alone for a while. `present` may be empty.
std::string version_to_run(const std::string& present, const std::string& answered, std::chrono::milliseconds since);
inline constexpr std::chrono::minutes upgrade_settles{5};

}  // namespace reconcilers::own_scheduler
