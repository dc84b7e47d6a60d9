#pragma once
// Names of things in the API: which resource, which object. Constants for the built-in resources we touch.

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace kube {

/// Namespace and name of one object; `ns` is empty for cluster-scoped objects.
struct object_key {
  std::string ns;
  std::string name;

  friend auto operator<=>(const object_key&, const object_key&) = default;
  friend bool operator==(const object_key&, const object_key&) = default;
  std::string to_string() const { return ns.empty() ? name : ns + "/" + name; }
};

/// A resource type. All members point at static storage.
struct resource {
  std::string_view group;  ///< empty for the core group
  std::string_view version;
  std::string_view plural;
  std::string_view kind;
  bool namespaced = true;

  /// "v1" or "apps/v1".
  std::string api_version() const {
    return group.empty() ? std::string(version) : std::string(group) + "/" + std::string(version);
  }
};

namespace resources {
inline constexpr resource nodes{"", "v1", "nodes", "Node", false};
inline constexpr resource namespaces{"", "v1", "namespaces", "Namespace", false};
inline constexpr resource pods{"", "v1", "pods", "Pod", true};
inline constexpr resource config_maps{"", "v1", "configmaps", "ConfigMap", true};
inline constexpr resource secrets{"", "v1", "secrets", "Secret", true};
inline constexpr resource services{"", "v1", "services", "Service", true};
inline constexpr resource service_accounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
inline constexpr resource daemon_sets{"apps", "v1", "daemonsets", "DaemonSet", true};
inline constexpr resource deployments{"apps", "v1", "deployments", "Deployment", true};
inline constexpr resource endpoint_slices{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true};
inline constexpr resource leases{"coordination.k8s.io", "v1", "leases", "Lease", true};
inline constexpr resource events{"events.k8s.io", "v1", "events", "Event", true};
inline constexpr resource accelerator_policies{"quartermaster.io", "v1alpha1", "acceleratorpolicies",
                                               "AcceleratorPolicy", false};  // clang-format off
inline constexpr resource runtime_classes{"node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", false};
inline constexpr resource mutating_webhook_configurations{"admissionregistration.k8s.io", "v1",
                                                          "mutatingwebhookconfigurations",
                                                          "MutatingWebhookConfiguration", false};
inline constexpr resource validating_webhook_configurations{"admissionregistration.k8s.io", "v1",
                                                            "validatingwebhookconfigurations",
                                                            "ValidatingWebhookConfiguration", false};
inline constexpr resource validating_admission_policies{"admissionregistration.k8s.io", "v1",
                                                        "validatingadmissionpolicies", "ValidatingAdmissionPolicy",
                                                        false};  // clang-format on
inline constexpr resource resource_rules{"quartermaster.io", "v1alpha1", "resourcerules", "ResourceRules", false};
inline constexpr resource accelerator_nodes{"quartermaster.io", "v1alpha1", "acceleratornodes", "AcceleratorNode",
                                            false};
}  // namespace resources

/// "/api/v1/namespaces/ns/pods/name/status": the target without query. An empty name is the collection; an empty
/// namespace of a namespaced resource is all namespaces. Names are percent-encoded.
std::string path_of(const resource& type, std::string_view ns, std::string_view name = {},
                    std::string_view subresource = {});

}  // namespace kube

template <>
struct std::hash<kube::object_key> {
  std::size_t operator()(const kube::object_key& key) const noexcept {
    const std::size_t h = std::hash<std::string_view>{}(key.ns);
    return h ^ (std::hash<std::string_view>{}(key.name) + 0x9e3779b97f4a7c15ULL + (h << 6) + (h >> 2));
  }
};
