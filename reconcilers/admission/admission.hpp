#pragma once
// The admission webhook without a socket: the bytes of an AdmissionReview (admission.k8s.io/v1) in, the answer out. It
// does in C++ what the chart's admission policies do in CEL, from the same rules, for API servers that lack them. What
// is sent may be anything, of any size up to the limits below, with its members in any order: it is read once,
// forwards, and nothing is kept of it.
//
// A review that cannot be understood is a 400 with one line, which the API server takes for a failed call and, with the
// failurePolicy Ignore of the chart, lets the object through. Everything else is a 200 with the uid that was asked.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reconcilers/declarations/parse.hpp"
#include "reconcilers/declarations/rule_set.hpp"

namespace reconcilers {

/// How strictly pods are held to the rules (spec.customResources.enforcement).
enum class enforcement : std::uint8_t {
  off,   ///< pods are let through as they are
  warn,  ///< nothing is filled in; what would be refused is said
  deny,  ///< what is missing is filled in, what is wrong refused
};
/// "Off", "Warn", "Deny"; anything else is off.
enforcement enforcement_of(std::string_view text) noexcept;

/// Who holds pods to the rules.
enum class admission_form : std::uint8_t {
  policies,       ///< the API server, in CEL: fills and refuses
  webhook_fills,  ///< our webhook fills; the API server refuses
  webhook,        ///< our webhook does both; the policies stay out of it
};
std::string_view to_string(admission_form of) noexcept;

/// What the API server can do by itself.
struct admission_offers {
  bool validating_policies = false;  ///< ValidatingAdmissionPolicy v1: from Kubernetes 1.30
  bool mutating_policies = false;    ///< MutatingAdmissionPolicy v1: from Kubernetes 1.36

  friend bool operator==(const admission_offers&, const admission_offers&) = default;
};
/// From the APIResourceList of /apis/admissionregistration.k8s.io/v1; text that is none offers nothing.
admission_offers offers_of(std::string_view api_resource_list);
/// `forced`: --admission=webhook. The webhook answers alike in every form, so that a server that learns policies is
/// never without one of the two.
admission_form form_of(bool forced, const admission_offers& offers) noexcept;

// A 1 MiB ConfigMap is up to 6.3 MB of JSON, because Go writes <, >, & and control bytes as six characters, and an
// UPDATE carries the old object and the new. etcd takes objects of 1.5 MiB.
inline constexpr std::size_t max_pod_review = 10u << 20;         ///< bytes: one object
inline constexpr std::size_t max_config_map_review = 20u << 20;  ///< bytes: two objects

struct review_answer {
  int status = 200;
  std::string body;                        ///< an AdmissionReview; one line of text where the status is not 200
  std::string_view outcome = "malformed";  ///< allowed, warned, filled, refused, malformed: a metric label
};

struct pod_admission {
  const crl::rule_set& rules;
  enforcement mode = enforcement::off;
  std::string_view own_namespace;  ///< let through untouched, as kube-system, kube-public and kube-node-lease are
  bool sends = false;              ///< pods that ask for accelerators are sent to our scheduler
};

/// Where the routes are, by the name of the webhook in the chart's configuration.
struct webhook_route {
  std::string_view webhook, path;
};
inline constexpr webhook_route mutate_pods_route{"resource-defaults.quartermaster.io", "/mutate/pods"};
inline constexpr webhook_route validate_pods_route{"resource-rules.quartermaster.io", "/validate/pods"};
inline constexpr webhook_route validate_config_maps_route{"declarations.quartermaster.io", "/validate/configmaps"};
/// Judged by compat/admission.hpp.
inline constexpr webhook_route compatibility_route{"compatibility.quartermaster.io", "/mutate/compatibility"};

/// Fills in what the rules say is missing, and the name of our scheduler with the toleration of isolated nodes, as the
/// chart's policy dedicated-scheduler.quartermaster.io does. Refuses nothing: others may still change the pod.
review_answer mutate_pod(std::string_view review, const pod_admission& by);
/// Judges the pod as it is.
review_answer validate_pod(std::string_view review, const pod_admission& by);
/// Judges a declaration by itself. Deny refuses one with an error, Warn says so, Off is silent. What is switched off,
/// or was as broken before in what the policy declarations.quartermaster.io looks at, is never refused: an owner may
/// change the labels that are none of ours, and our own verdict is written that way.
review_answer validate_config_map(std::string_view review, const crl::parse_settings& settings, enforcement mode);

}  // namespace reconcilers
