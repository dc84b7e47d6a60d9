#pragma once
// A pod that is made to see what becomes of it, and removed whatever happens, on SIGINT, SIGTERM and SIGHUP too: what
// `verify --allocate` and `verify --scheduler` have in common. Its name is known before it is made, so that one whose
// creation was never answered can be found and removed.

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "kube/task.hpp"
#include "kube/transport.hpp"
#include "text/phrase.hpp"

namespace cli {

/// Runs as user `nobody`, without rights, once. The caller adds what it is tried with: `name`, `command` and
/// `resources` of the container, tolerations and affinity.
/// @param scheduler by which it is scheduled; empty: as people write pods
nlohmann::json test_pod(const std::string& image, const std::string& scheduler, std::chrono::seconds patience);

struct trial {
  std::string pod;                     ///< its name
  std::optional<kube::error> refused;  ///< the API server looked at it and would not have it
  bool finished = false;               ///< `look` has seen enough
  bool gone = false;                   ///< someone else removed it
  bool stopped = false;                ///< by a signal
};

/// True: enough was seen. The pod as it is now; it lives until the answer.
using pod_look = std::function<kube::task<bool>(const nlohmann::json& pod)>;

/// Makes the pod, looks at it until `look` has seen enough or patience ends, and removes it. An error where it could
/// not be made for reasons that are not the pod's (rights, namespace, connection, a signal), cannot be read any more,
/// or cannot be removed (the line ends with the command that does).
/// @param words set to the words of that error, where it is not the API server's alone
kube::task<trial> try_pod(kube::transport& transport, std::string ns, nlohmann::json pod, std::chrono::seconds patience,
                          std::chrono::milliseconds look_every, pod_look look, text::phrase* words = nullptr);

}  // namespace cli
