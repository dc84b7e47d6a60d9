#pragma once
// The manifest of a static kube-scheduler told to read our file: the flag, the mount, and the checksum that replaces
// the pod when the file changes. As text, taken out again byte for byte.

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "scheduler_config/edit/static_pod.hpp"

namespace scheduler_config {

struct config_file {
  std::string path = "/etc/kubernetes/scheduler-config.yaml";  ///< on the node, and in the container
  std::string checksum;                                        ///< checksum_of what is in it
  std::int64_t generation = 0;  ///< counts the changes of a control-plane node; 0: not told
};

/// A manifest that has ours already gets the new one in its place. What it has itself (the same --config, a mount of
/// the file) is left as it is. code::config_flag_there where it reads another file; code::no_safe_place.
std::expected<std::string, finding> add_config_file(std::string_view manifest, const config_file& config_file);
/// The bytes from before.
std::expected<std::string, finding> remove_config_file(std::string_view manifest);

}  // namespace scheduler_config
