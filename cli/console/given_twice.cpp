#include "cli/console/given_twice.hpp"

#include <algorithm>

#include "cli/console/shares.hpp"

namespace cli::console {

given_twice_cards given_twice(const picture& picture, std::string_view node) {
  given_twice_cards out;
  auto nodes = shares_of(picture, node);
  mark_guesses(picture, nodes);
  for (const auto& entry : nodes)
    for (const auto& card : entry.cards) {
      if (!quota::beyond(*card.card, card.used)) continue;
      // Another guess might fit, unless one share is larger than each card of the node.
      const auto fits_nowhere = [&](const held_share& share) {
        return std::ranges::all_of(entry.cards,
                                   [&](const auto& each) { return share.memory_mib > each.card->lendable_mib(); });
      };
      const bool is_guess =
          std::ranges::any_of(card.shares, &held_share::guessed) && std::ranges::none_of(card.shares, fits_nowhere);
      std::string pods;
      for (const auto& share : card.shares)
        if (share.pod) pods += (pods.empty() ? "" : ", ") + share.pod->key.ns + "/" + share.pod->key.name;
      (is_guess ? out.guessed : out.certain).push_back(card.card->uuid + " (" + pods + ")");
    }
  return out;
}

}  // namespace cli::console
