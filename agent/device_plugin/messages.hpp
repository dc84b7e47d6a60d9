#pragma once
// The kubelet's device plugin API as bytes (v1beta1). Numbers of fields:
// k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1/api.proto. test/grpc reads them with the kubelet's own code.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kube/error.hpp"

namespace agent::device_plugin {

using device_ids = std::vector<std::string>;

struct device {
  std::string id;  ///< at most 63 characters
  bool is_healthy = true;

  friend bool operator==(const device&, const device&) = default;
};

/// ListAndWatchResponse. No device has a NUMA node: the kubelet would choose by it before it asks.
std::string list_of(const std::vector<device>& devices);

/// RegisterRequest of a plugin that is asked before each start of a container. `endpoint` is the socket's name.
std::string registration_of(std::string_view endpoint, std::string_view resource);
/// DevicePluginOptions of the same.
std::string options_message();

/// AllocateRequest, PreferredAllocationRequest: the IDs of each container. errc::decode.
kube::result<std::vector<device_ids>> allocations_in(std::string_view message);
/// PreStartContainerRequest.
kube::result<device_ids> started_devices_in(std::string_view message);
/// What Allocate answers for one container.
struct allocation_answer {
  std::vector<std::string> cdi_names;  ///< by which the runtime finds its devices
  /// For a runtime that skips CDI names it does not know: what they set is stronger.
  std::map<std::string, std::string> environment;
};
/// AllocateResponse.
std::string allocations_of(const std::vector<allocation_answer>& answers);

}  // namespace agent::device_plugin
