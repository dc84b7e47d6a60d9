#pragma once
// DeviceClasses of DRA: a driver of its own gives the devices of a class, also to pods that ask for them as a resource.
// Room for them is not judged here; what is known is that they are given so.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kube/client.hpp"

namespace cli {

// v1 from Kubernetes 1.34 on.
inline constexpr kube::resource device_classes{"resource.k8s.io", "v1", "deviceclasses", "DeviceClass", false},
    older_device_classes{"resource.k8s.io", "v1beta1", "deviceclasses", "DeviceClass", false};

/// Classes by the resource that they give (spec.extendedResourceName).
using classes_by_resource = std::map<std::string, std::string, std::less<>>;
void add_class(const nlohmann::json& device_class, classes_by_resource& classes);

/// Empty where the cluster has no DRA.
kube::task<classes_by_resource> read_device_classes(kube::transport& transport);

/// "CLASS" of the resource "deviceclass.resource.kubernetes.io/CLASS", which every class has; empty for any other.
std::string_view class_in_name(std::string_view resource);

}  // namespace cli
