#include "cli/console/walked_view.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "cli/cluster/declaration_registry.hpp"
#include "cli/cluster/fleet.hpp"
#include "cli/cluster/free_cards.hpp"
#include "cli/cluster/refusal.hpp"
#include "cli/console/given_twice.hpp"
#include "cli/console/shares.hpp"
#include "cli/explain/uncounted.hpp"

namespace cli::console {

reconcilers::verify::cluster_view walked_view(const picture& picture, std::string_view only_node) {
  auto out = view_of(fleet(picture), only_node);
  if (!out.ledger_unseen.empty()) return out;
  std::set<std::string> full;  // nodes on which more is given out than there is
  for (const auto& row : shares_of(picture, only_node))
    if (std::ranges::any_of(row.cards, [](const auto& card) { return quota::beyond(*card.card, card.used); }))
      full.insert(row.node->key.name);
  std::map<std::string, std::vector<text::phrase>> uncounted;  // by node
  for (const auto& pod : uncounted_pods(picture, only_node)) uncounted[pod.node].push_back(pod.text());
  for (auto& node : out.nodes) {
    const auto& name = node.node.key.name;
    if (full.contains(name)) {
      auto cards = given_twice(picture, name);
      node.given_twice = std::move(cards.certain);
      node.perhaps_given_twice = std::move(cards.guessed);
    }
    if (const auto view = picture.book->book().view(name)) node.withheld_cards = withheld_cards(node.node, *view);
    if (const auto match = uncounted.find(name); match != uncounted.end()) node.uncounted_pods = match->second;
  }
  return out;
}

kube::task<void> take_in_refused_declarations(kube::transport& transport, picture& picture) {
  auto refused = co_await read_refused_declarations(transport);
  picture.declarations_unseen = refused ? text::phrase() : phrase_of(refused.error());
  picture.refused_declarations.clear();
  if (refused) picture.refused_declarations = std::move(*refused);
  co_return kube::result<void>();
}

}  // namespace cli::console
