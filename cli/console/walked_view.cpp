#include "cli/console/walked_view.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "cli/cluster/fleet.hpp"
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
    if (full.contains(name)) node.given_twice = given_twice(picture, name);
    if (const auto match = uncounted.find(name); match != uncounted.end()) node.uncounted_pods = match->second;
  }
  return out;
}

}  // namespace cli::console
