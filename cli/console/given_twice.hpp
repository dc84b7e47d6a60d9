#pragma once
// Cards of a node of which more is given out than they have: someone placed a pod past the extender. Certain
// is only what pods have on record: where the ledger guesses which card a pod has, another guess might fit.

#include <string>
#include <string_view>
#include <vector>

#include "cli/explain/answer_form.hpp"

namespace cli::console {

/// Each as "GPU-1 (team/a, team/b)": its UUID, or node and number where no agent reports it, and its pods.
struct given_twice_cards {
  std::vector<std::string> certain;
  std::vector<std::string> guessed;  ///< a pod of it may have another card
};
given_twice_cards given_twice(const picture& picture, std::string_view node);

}  // namespace cli::console
