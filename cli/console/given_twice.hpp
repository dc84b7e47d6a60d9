#pragma once
// Cards of a node of which more is given out than they have: someone placed a pod past the extender. Only what pods
// have on record counts. Where the ledger guesses which card a pod has, another guess might fit; `top cards` shows
// those.

#include <string>
#include <string_view>
#include <vector>

#include "cli/explain/answer_form.hpp"

namespace cli::console {

/// Each as "GPU-1 (team/a, team/b)": its UUID, or node and number where no agent reports it, and its pods.
std::vector<std::string> given_twice(const picture& picture, std::string_view node);

}  // namespace cli::console
