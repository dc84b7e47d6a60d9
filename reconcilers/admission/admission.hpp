#pragma once
// The admission webhook without a socket: the bytes of an AdmissionReview (admission.k8s.io/v1) in, the answer out. It
// fills pods in, from the same rules by which the API server refuses them, where the API server cannot fill in itself.
// What is sent may be anything, of any size up to the limits below, with its members in any order: it is read once,
// forwards, and nothing is kept of it.
//
// A review that cannot be understood is a 400 with one line, which the API server takes for a failed call and, with the
// failurePolicy Ignore of the chart, lets the object through. Everything else is a 200 with the uid that was asked.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reconcilers/declarations/rule_set.hpp"

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

inline constexpr std::size_t max_pod_review = 10u << 20;  ///< bytes; etcd takes objects of 1.5 MiB

struct review_answer {
  int status = 200;
  std::string body;                        ///< an AdmissionReview; one line of text where the status is not 200
  std::string_view outcome = "malformed";  ///< allowed, warned, filled, refused, malformed: a metric label
};

struct pod_admission {
  const declarations::rule_set& rules;
  enforcement mode = enforcement::disabled;
  std::string_view own_namespace;  ///< let through untouched, as kube-system, kube-public and kube-node-lease are
  bool sends = false;              ///< pods that ask for accelerators are sent to our scheduler
};

/// Where the routes are, by the name of the webhook in the chart's configuration.
struct webhook_route {
  std::string_view webhook, path;
};
inline constexpr webhook_route mutate_pods_route{"resource-defaults.quartermaster.io", "/mutate/pods"};
/// Judged by compat/admission.hpp.
inline constexpr webhook_route compatibility_route{"compatibility.quartermaster.io", "/mutate/compatibility"};

/// Fills in what the rules say is missing, and the name of our scheduler with the toleration of isolated nodes, as the
/// chart's policy dedicated-scheduler.quartermaster.io does. Refuses nothing: others may still change the pod.
review_answer mutate_pod(std::string_view review, const pod_admission& pod_admission);
}  // namespace reconcilers
