#include "cli/lint/field_names.hpp"

#include <algorithm>
#include <array>

#include "text/nearest.hpp"

namespace cli::field_names {
namespace {

// k8s.io/api 1.37; test/chart/server/lint_fields_test.go compares them with what API servers say (OpenAPI).
constexpr std::array<std::string_view, 15> metadata_names{"annotations",
                                                          "creationTimestamp",
                                                          "deletionGracePeriodSeconds",
                                                          "deletionTimestamp",
                                                          "finalizers",
                                                          "generateName",
                                                          "generation",
                                                          "labels",
                                                          "managedFields",
                                                          "name",
                                                          "namespace",
                                                          "ownerReferences",
                                                          "resourceVersion",
                                                          "selfLink",
                                                          "uid"};
constexpr std::array<std::string_view, 2> template_names{"metadata", "spec"};
constexpr std::array<std::string_view, 43> pod_spec_names{
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "ephemeralContainers",
    "evictionResponders",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "schedulingGroup",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
};
constexpr std::array<std::string_view, 26> container_names{"args",
                                                           "command",
                                                           "env",
                                                           "envFrom",
                                                           "image",
                                                           "imagePullPolicy",
                                                           "lifecycle",
                                                           "livenessProbe",
                                                           "name",
                                                           "ports",
                                                           "readinessProbe",
                                                           "resizePolicy",
                                                           "resources",
                                                           "restartPolicy",
                                                           "restartPolicyRules",
                                                           "securityContext",
                                                           "startupProbe",
                                                           "stdin",
                                                           "stdinOnce",
                                                           "targetContainerName",
                                                           "terminationMessagePath",
                                                           "terminationMessagePolicy",
                                                           "tty",
                                                           "volumeDevices",
                                                           "volumeMounts",
                                                           "workingDir"};
constexpr std::array<std::string_view, 3> resources_names{"claims", "limits", "requests"};

}  // namespace

std::span<const std::string_view> metadata() { return metadata_names; }
std::span<const std::string_view> pod_template() { return template_names; }
std::span<const std::string_view> pod_spec() { return pod_spec_names; }
std::span<const std::string_view> container() { return container_names; }
std::span<const std::string_view> resources() { return resources_names; }

std::string meant(std::string_view name, std::span<const std::string_view> legal) {
  if (legal.data() == container_names.data()) {
    if (const auto part = text::nearest(name, std::span(resources_names).subspan(1)); !part.empty())
      return "resources." + std::string(part);
    if (name.contains('/')) return "resources.limits[" + std::string(name) + "]";
  }
  if (legal.data() == resources_names.data() && name.contains('/')) return "limits[" + std::string(name) + "]";
  if (legal.data() == pod_spec_names.data()) {
    if (const auto part = text::nearest(name, std::span(resources_names).subspan(1)); !part.empty())
      return "resources." + std::string(part) + " of a container";
  }
  return std::string(text::nearest(name, legal));
}

}  // namespace cli::field_names
