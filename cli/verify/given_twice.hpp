#pragma once
// What someone gave out past the extender: cards of which more is given out than they have, and pods that the ledger
// cannot count. Of cards only what pods have on record counts. Where the ledger guesses which card a pod has, another
// guess might fit; `top cards` shows those.

#include <string>
#include <string_view>
#include <vector>

#include "cli/explain/answer_form.hpp"

namespace cli {

/// Each as "GPU-1 (team/a, team/b)": its UUID, or node and number where no agent reports it, and its pods.
std::vector<std::string> given_twice(const placements& placements, std::string_view node);

/// Pods on the node whose limits are allowed on no node of its mode: the kubelet has given them something, and the
/// ledger counts nothing. Each as "team/a (container main: ...)".
std::vector<std::string> uncounted_pods(const placements& placements, std::string_view node);

}  // namespace cli
