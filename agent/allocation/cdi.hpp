#pragma once
// The specification by which a container runtime gives one container its card (Container Device Interface 0.6). A file
// has one device, and is there only while its container is made: a file that is left over would be the next one's.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace agent::allocation {

struct container_edits {
  std::map<std::string, std::string> environment;
  std::vector<std::string> device_nodes;                    ///< paths, the same inside
  std::vector<std::pair<std::string, std::string>> mounts;  ///< folder of the node, path inside; read-only
};

/// "d-" and 16 hexadecimal digits of the sorted IDs: the name that Allocate answers. The kubelet keeps it.
std::string device_name_of(std::vector<std::string> ids);
/// "quartermaster.io/share=d-0123456789abcdef".
std::string qualified_name(std::string_view kind, std::string_view device);
/// The text of the file. `pod` and `container` stand in it as annotations, for people who look there.
std::string specification(std::string_view kind, std::string_view device, const container_edits& edits,
                          std::string_view pod, std::string_view container);

}  // namespace agent::allocation
