#pragma once
// `quartermaster explain pod`: why a pod waits, or what it was given.

#include <optional>
#include <ostream>
#include <set>
#include <string>

#include "cli/explain/answer_form.hpp"
#include "cli/explain/resource_claims.hpp"
#include "kube/projections/described_pod.hpp"
#include "quota/explain.hpp"
#include "text/phrase.hpp"

namespace cli {

/// Why a node takes no pod with such a request, however empty it is.
struct node_refusal {
  std::string text;
  std::string mode;  ///< of the node; empty: it is in no mode, or every mode refuses the pod
  std::string key;   ///< what that mode does not offer; empty: the pod can be cured
};
std::optional<node_refusal> refusal_by(const quota::node_view& node, const reconcilers::extender::pod_request& request,
                                       const picture& picture, text::language locale);

/// Why a node takes no such pod at all, for a person. Where its mode is the reason, its own message. Empty: it might.
std::string refusal_of(const quota::node_view& node, const reconcilers::extender::pod_request& request,
                       const picture& picture, text::language locale);

/// The scheduler that asks the extender in this cluster; empty: none does.
std::string_view asking_scheduler(const picture& picture);

/// Why a pod that is not bound waits. Views are into the pod and the ledger: valid until either changes.
struct waiting_answer {
  std::string unknown;  ///< the sentence about keys that no one knows; not empty: there is nothing else
  reconcilers::extender::pod_request request;
  std::vector<quota::node_view> nodes;
  quota::explanation reason;
  std::optional<quota::exceeded_limit> limit;  ///< of its namespace
  std::vector<std::string> kept;               ///< nodes where it fits and another pod goes first
  std::vector<std::string> unserved;           ///< sentences about resources that no node has and a module offers
  bool is_kept_everywhere = false;             ///< all nodes where it fits are

  /// Cards are not what it waits for.
  bool fits() const { return unknown.empty() && reason.fitting > 0 && !limit && !is_kept_everywhere; }
};
/// `known` is what `resources_of` says of the same placements.
/// With `others::unnamed` pods of other namespaces have no names in it.
enum class others : std::uint8_t { named, unnamed };
waiting_answer why_waiting(const picture& picture, const known_resources& known, const kube::pod& pod,
                           text::language locale, others names = others::named);

/// Names limits of these namespaces on which the answer and the operator may differ.
void say_doubts(const picture& picture, const std::set<std::string>& namespaces, text::language locale,
                std::ostream& err);

/// @param whole the pod as the API has it; none: not read, so gates, selectors and messages are left out
/// @param claims what became of its ResourceClaims, as far as it was seen
/// @return exit code: 0 bound or would fit, 1 not there, 3 waits, is held back or has failed
int explain_pod(const picture& cluster, const kube::object_key& pod, const report_style& style, std::ostream& out,
                std::ostream& err, const std::optional<kube::described_pod>& whole = {}, others names = others::named,
                const claim_states& claims = {});

}  // namespace cli
