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

#include "reconcilers/declarations/enforcement.hpp"
#include "reconcilers/declarations/rule_set.hpp"

namespace reconcilers {

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

/// Fills in what the rules say is missing, and the name of our scheduler with the toleration of isolated nodes, as the
/// chart's policy dedicated-scheduler.quartermaster.io does. Refuses nothing: others may still change the pod.
review_answer mutate_pod(std::string_view review, const pod_admission& pod_admission);
}  // namespace reconcilers
