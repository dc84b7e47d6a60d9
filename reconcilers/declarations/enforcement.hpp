#pragma once
// How strictly pods are held to the declarations, and what an API server does about it by itself.

#include <cstdint>
#include <string_view>

namespace reconcilers {

/// How strictly pods are held to the rules (spec.customResources.enforcement).
enum class enforcement : std::uint8_t {
  disabled,  ///< pods are let through as they are
  warn,      ///< nothing is filled in; the API server warns of what it would refuse
  deny,      ///< what is missing is filled in; the API server refuses what is wrong
};
/// "Off", "Warn", "Deny"; anything else is off.
enforcement enforcement_of(std::string_view text) noexcept;

/// Whether the API server fills pods in by itself: MutatingAdmissionPolicy v1, from Kubernetes 1.36. From the
/// APIResourceList of /apis/admissionregistration.k8s.io/v1; invalid text offers nothing.
bool fills_pods(std::string_view api_resource_list);

/// Where the routes are, by the name of the webhook in the chart's configuration.
struct webhook_route {
  std::string_view webhook, path;
};
inline constexpr webhook_route mutate_pods_route{"resource-defaults.quartermaster.io", "/mutate/pods"};
/// Judged by reconcilers/admission/compatibility.hpp.
inline constexpr webhook_route compatibility_route{"compatibility.quartermaster.io", "/mutate/compatibility"};

}  // namespace reconcilers
