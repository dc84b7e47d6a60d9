#pragma once
// Cards of a node of which the ledger has more given out than they have: someone placed a pod past the extender.

#include <string>
#include <string_view>
#include <vector>

#include "cli/explain/placements.hpp"

namespace cli {

/// Each as "GPU-1 (team/a, team/b)"; a pod whose card is a guess has a question mark.
std::vector<std::string> given_twice(const placements& placements, std::string_view node);

}  // namespace cli
