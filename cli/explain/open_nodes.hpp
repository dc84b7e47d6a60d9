#pragma once
// Why a pod waits, with what its own spec says of nodes: `explain pod` and the console answer by it, so that their
// reasons agree.

#include <string>
#include <vector>

#include "cli/explain/explain_pod.hpp"
#include "cli/explain/node_rules.hpp"
#include "kube/projections/described_pod.hpp"
#include "text/phrase.hpp"

namespace cli {

/// Of the nodes where the cards of a pod fit, those that are closed to it for one reason.
struct closed_nodes {
  text::phrase reason;
  std::size_t nodes = 0;
};

/// Views are into the pod and the ledger: valid until either changes.
struct open_answer {
  /// About all nodes; where the cards fit on closed ones alone, about those that are open to the pod: they are too
  /// full.
  waiting_answer about;
  std::vector<quota::node_view> nodes;  ///< all that were looked at
  std::vector<closed_nodes> closed;     ///< in the order of their English words
  std::size_t open = 0;                 ///< nodes where its cards fit, and that are open to it

  bool fits_on_closed_alone() const { return open == 0 && !closed.empty(); }
  /// Neither cards nor nodes are what it waits for.
  bool fits() const { return about.fits() && !fits_on_closed_alone(); }
};

/// @param rules of the pod; null: not known, and no node is closed to it
open_answer why_waiting_with_rules(const picture& picture, const known_resources& known, const kube::pod& pod,
                                   const node_rules* rules, text::language locale, others names = others::named);

/// The key for want of which kube-scheduler refused a pod that fits now, when it last looked (refused_key); empty:
/// cards are not what it waits for, or it does not fit.
/// @param whole null: not read
std::string refused_before(const open_answer& judged, const kube::described_pod* whole, bool is_held_back);

}  // namespace cli
