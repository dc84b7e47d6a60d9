#pragma once
// The kubelet's own record of which device IDs each container has: its file kubelet_internal_checkpoint in the folder
// of device plugins. It is there before a container is started, and it has the pod's UID, which pod-resources lacks,
// and init containers, which pod-resources leaves out. The format is private to the kubelet; it is the same in 1.30
// and 1.37.

#include <string>
#include <string_view>
#include <vector>

#include "kube/error.hpp"

namespace agent::kubelet {

/// Devices of one container and one resource.
struct recorded_devices {
  std::string pod_uid, container, resource;
  std::vector<std::string> ids;  ///< sorted

  friend bool operator==(const recorded_devices&, const recorded_devices&) = default;
};

/// errc::decode where the text has not this form; entries are in the order of the file.
kube::result<std::vector<recorded_devices>> devices_recorded_in(std::string_view checkpoint);

}  // namespace agent::kubelet
