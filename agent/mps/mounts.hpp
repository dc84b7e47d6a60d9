#pragma once
// Whether a container has a card's folder of pipes: from /proc/PID/mountinfo of the node's processes. A program may
// change its environment, and leaves a folder mounted that it was given. It takes the node's process namespace.

#include <string>
#include <string_view>

namespace agent::mps {

/// @param proc where /proc of the node is
/// @param folder_end how the path of the folder ends on the node, "/GPU-.../pipe"
bool is_mounted(const std::string& proc, std::string_view folder_end);

}  // namespace agent::mps
