#pragma once
// Every card of the cluster with those who hold a part of it: the ledger's entries, turned around. Pure; made for one
// answer, because its pointers are into the stores.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/explain/answer_form.hpp"

namespace cli::console {

struct held_share {
  const kube::pod* pod = nullptr;  ///< null: the pod has gone in this moment
  std::uint16_t container = 0;     ///< as in the ledger
  bool whole = false;
  std::int64_t cores = 0, memory_mib = 0;
  bool guessed = false;  ///< someone else placed the pod, and no one wrote which cards it has: see mark_guesses
};

struct card_shares {
  const quota::card* card = nullptr;
  quota::card_use used;
  bool is_sick = false;            ///< as its agent or its plugin reports it, whether or not new pods get it
  bool is_looked_at = false;       ///< an agent, or the register of a plugin, says how it is
  bool is_free = false;            ///< no pod has a part of it, and a new pod gets all of it right now
  std::vector<held_share> shares;  ///< by namespace and name of the pod

  std::int64_t cores() const { return used.cores + std::int64_t{used.wholes} * quota::whole_card; }
  /// So many nodes have sick cards that new pods get this one all the same (spec.health.maxWithdrawn of the policy).
  bool is_held_back() const { return is_sick && card->healthy; }
  /// "Healthy", "Unhealthy" or "Unknown", which is neither.
  std::string_view health() const;
  std::int64_t memory_mib() const { return used.memory_mib + used.wholes * card->memory_mib; }
};

struct node_shares {
  const kube::node* node = nullptr;
  const api::accelerator_node* report = nullptr;  ///< null: there is none
  const quota::node_inventory* inventory = nullptr;
  std::vector<card_shares> cards;  ///< in the node's order

  std::string_view mode() const;   ///< in which the node is; empty: none
  std::string shown_mode() const;  ///< for people, also of a change
  bool is_changing() const;        ///< a change of mode is in progress, or is stuck
  /// No new pod gets it, because someone said so of the node or of the card.
  bool is_cordoned(const card_shares& entry) const { return node->unschedulable || entry.card->cordoned; }
};

/// Nodes with cards, a mode, or an AcceleratorNode; in the order of their names. `only`: that one; empty: all.
std::vector<node_shares> shares_of(const picture& picture, std::string_view only = {});

/// The number of a card as its driver counts, where the agent says it; else its place.
int card_index(const node_shares& node, std::size_t place);

/// Sets held_share::guessed. It reads each pod again, so call it only where guesses are shown.
void mark_guesses(const picture& picture, std::vector<node_shares>& nodes);

/// The name of a container by its number in the ledger; empty: not known.
std::string container_name(const picture& picture, const kube::pod& pod, std::uint16_t number);

/// Where cards or quotas are in use: namespaces of pods that ask for cards, and those with an AcceleratorQuota.
std::vector<std::string> namespaces_of(const picture& picture);

}  // namespace cli::console
