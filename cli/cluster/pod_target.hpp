#pragma once
// Which pod is meant by the words of a person.

#include <expected>
#include <string>
#include <vector>

#include "cli/cluster/picture.hpp"
#include "text/phrase.hpp"

namespace cli {

/// A pod, or what makes pods.
struct pod_target {
  kube::object_key key;
  std::string kind;  ///< "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"; empty: a pod
};

/// "NAME", "pod/NAME", "deploy/NAME" and so on as kubectl has it, or "NAMESPACE/NAME". The namespace in the text counts
/// first, then `ns`, then `otherwise`.
std::expected<pod_target, text::phrase> pod_named(const std::string& text, const std::string& ns,
                                                  const std::string& otherwise = "default");

/// Where names are those of pods alone: each name in `names` loses its kind and its namespace. @return the one
/// namespace that is meant; empty: none was named, and `ns` is empty.
std::expected<std::string, text::phrase> plain_pod_names(std::vector<std::string>& names, const std::string& ns);

struct pod_choice {
  kube::object_key key;
  std::string note;  ///< which pod this is of how many; empty: the pod itself was named
};
/// Of several pods one that waits, where one does. The error: there is none.
std::expected<pod_choice, text::phrase> chosen_pod(const picture& picture, const pod_target& target,
                                                   text::language locale);

}  // namespace cli
