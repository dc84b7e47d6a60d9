#pragma once
// A Node as the quota engine sees it: which cards it has, what hands them out, and how many of each plain key. The
// cards are those of AcceleratorNode.status where an agent reports them; before that HAMi's register annotation, GPU
// Feature Discovery's labels and what the kubelet offers say which there are. A key the kubelet does not offer is not
// served, whatever the labels say.

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "kube/projections/node.hpp"
#include "quota/inventory.hpp"
#include "quota/ledger.hpp"
#include "reconcilers/accelerator_node.hpp"
#include "reconcilers/accelerator_policy.hpp"

namespace reconcilers::extender {

/// Node annotation, by people: cards that get nothing new, by name, comma separated.
inline constexpr std::string_view cordon_annotation = "quartermaster.io/cordon";

/// The names in such an annotation.
std::vector<std::string_view> cordoned_cards(std::string_view list);

/// True for a key that a declaration names: judged by count where the vocabularies do not know it.
using declared_keys = std::function<bool(std::string_view key)>;

/// @param policy null: none; the defaults of the modules count
/// Cards without an identity of their own are named "<node>/<index>", index from 0.
/// @param reported what the node's agent says of its cards; empty: nothing
quota::node node_of(const kube::node& of, const accelerator_policy* policy, const declared_keys& declared,
                    std::span<const reported_card> reported = {});

/// What was booked under such names before an agent told the cards' own: the cards they were.
void use_own_names(quota::holding& of, const quota::node& on);

}  // namespace reconcilers::extender
