#pragma once
// The kubelet's pod-resources API (v1.PodResourcesLister/List): which device IDs it gave to which container.
// Numbers of fields: k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "kube/task.hpp"

namespace agent::kubelet {

/// The devices of one container. `ids` are as the plugin reported them, of all its resources.
struct given_devices {
  std::string ns, pod, container;
  std::vector<std::string> ids;
  friend bool operator==(const given_devices&, const given_devices&) = default;
};

/// The containers with devices of a ListPodResourcesResponse. errc::decode.
kube::result<std::vector<given_devices>> devices_in(std::string_view message);

/// Asks the kubelet. Every call has a connection of its own, so a kubelet that was started again is no matter.
/// errc::connect, timeout, too_many_requests, server or decode; one line that names the socket. Of all that ask it, a
/// kubelet answers ten at once and then a hundred a second, and refuses the others (kubelet/apis/podresources).
kube::task<std::vector<given_devices>> list_devices(boost::asio::any_io_executor executor, std::string socket,
                                                    std::chrono::milliseconds deadline);

}  // namespace agent::kubelet
