#pragma once
// Which devices the kubelet is offered. An ID is no card: which card a container gets is known at its start. So of a
// card that is sick as many devices are withdrawn as it is worth, and of those first the ones that its pods have, so
// that the kubelet's sums of what is free are right. Pure.

#include <vector>

#include "agent/allocation/start.hpp"
#include "agent/device_plugin/messages.hpp"

namespace agent::allocation {

/// A kubelet takes 4 MiB as one message (gRPC's default for a client), and a device is 26 bytes of it. With more than
/// these it would hear of none.
inline constexpr std::size_t most_devices = 150'000;

/// None where there would be more than a kubelet takes.
std::vector<device_plugin::device> offered_devices(const offered_resource& resource, const node_records& known);

}  // namespace agent::allocation
