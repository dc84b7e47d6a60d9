#pragma once
// What would place a pod that waits, in the order in which people should try it: what only has to be used again, then
// what an administrator gives, then what the pod itself asks for, and last a card that someone has. Each was tried by
// the engine, as the cluster would be then.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/explain/explain_pod.hpp"
#include "cli/explain/node_rules.hpp"
#include "text/phrase.hpp"

namespace cli {

struct proposal {
  /// In their order.
  enum class kind : std::uint8_t {
    uncordon,  ///< a node or a card
    label,     ///< an idle node in no mode
    mode,      ///< another mode of an idle node
    quota,     ///< one limit of the namespace raised
    pod,       ///< one amount of the pod, or its annotations
    key,       ///< other keys of the same meaning
    card,      ///< part of a card that someone has, or one more
  };
  kind action{};
  text::phrase text;
  std::string command = {};  ///< empty: no one command does it
};
std::string_view to_string(proposal::kind kind);

/// The sentence with what is changed: "Smallest change of the pod: ...".
text::phrase line_of(const proposal& proposal);

/// Empty where cards and limits are not what it waits for.
/// @param rules of the pod; null: not known
/// @param nodes_named false: nothing that names a node
std::vector<proposal> proposals_of(const picture& picture, const kube::pod& pod, const waiting_answer& answer,
                                   const node_rules* rules, bool nodes_named = true);

}  // namespace cli
