#pragma once
// Compares what a pod with accelerators says it needs with the nodes that offer them. The result is a node affinity, or
// a refusal that lists the nodes with what they have. Some mistakes show in the pod alone: an affinity that compares
// each part of a version by itself, a share of a card for a runtime its library does not know, a share of a card that
// is cut by MIG, Paddle's allocator on a share.
//
// Off: nothing. Warn: what one of our annotations asks for is written as affinity, everything else is only reported.
// Deny: what CUDA_VERSION and NVIDIA_REQUIRE_* ask for is written as well, and a pod that can run nowhere is refused.
// Nodes may be added later, so nothing is refused while no node offers what the pod asks for, or one does of which
// nothing is known.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kube/projections/node.hpp"
#include "reconcilers/admission/admission.hpp"
#include "text/message.hpp"

namespace reconcilers::cuda {

struct admission_settings {
  enforcement mode = enforcement::disabled;
  bool paddle_allocator = false;  ///< write FLAGS_allocator_strategy into pods that need it
  /// Of refusal and warnings. An AdmissionReview does not say which its reader has: it is answered in English.
  text::language language = text::language::en;
};

struct admission {
  std::string refusal;  ///< empty: allowed
  std::vector<std::string> warnings;
  nlohmann::json patch = nlohmann::json::array();  ///< JSON patch of the pod; nothing where it is refused
};

/// Any JSON may be given as `pod`: what has not the shape of one says nothing. `nodes`: all there are.
admission admit(const nlohmann::json& pod, std::span<const kube::node* const> nodes,
                const admission_settings& settings);

/// The same of an AdmissionReview, with the exceptions of reconcilers/admission/admission.hpp: only CREATE, no mirror
/// pods, not in system namespaces nor in `own_namespace`.
review_answer admit_review(std::string_view review, std::span<const kube::node* const> nodes,
                           const admission_settings& settings, std::string_view own_namespace);

}  // namespace reconcilers::cuda
