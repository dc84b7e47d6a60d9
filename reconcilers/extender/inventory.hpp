#pragma once
// A Node as the quota engine sees it: which cards it has, what hands them out, and how many of each plain key. The
// cards are those of AcceleratorNode.status where an agent reports them; before that a register of the plugin, GPU
// Feature Discovery's labels and what the kubelet offers say which there are. A key the kubelet does not offer is not
// served, whatever the labels say.

#include <algorithm>
#include <concepts>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/accelerator_node.hpp"
#include "kube/projections/node.hpp"
#include "quota/inventory.hpp"
#include "quota/ledger.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"

namespace reconcilers::extender {

/// Node annotation, by people: cards that get nothing new, by name, comma separated.
inline constexpr std::string_view cordon_annotation = "quartermaster.io/cordon";

/// The names in such an annotation.
std::vector<std::string_view> cordoned_cards(std::string_view list);

using dialects::renamed_key;
std::vector<renamed_key> renamed_keys(const accelerator_policy* policy);

/// The keys that declarations name, judged by count where the vocabularies do not know them; and what keys are called
/// here.
class declared_keys {
 public:
  declared_keys() = default;
  /// @param renamed must outlive this
  template <class Known>
    requires(std::predicate<Known, std::string_view> && !std::same_as<std::remove_cvref_t<Known>, declared_keys>)
  declared_keys(Known known, std::span<const renamed_key> renamed = {}) : known_(std::move(known)), renamed_(renamed) {}

  bool operator()(std::string_view key) const { return known_ && known_(key); }
  std::string_view engine_name(std::string_view key) const {
    const auto match = std::ranges::find(renamed_, key, &renamed_key::here);
    return match == renamed_.end() ? key : match->engine;
  }

 private:
  std::function<bool(std::string_view key)> known_;
  std::span<const renamed_key> renamed_;
};

/// @param policy null: none; the defaults of the modules count
/// Cards without an identity of their own are named "<node>/<index>", index from 0.
/// @param reported what the node's agent says of its cards; empty: nothing
quota::node_inventory node_of(const kube::node& as_offered, const accelerator_policy* policy,
                              const declared_keys& declared, std::span<const api::reported_card> reported = {});

/// What was booked under such names before an agent told the cards' own: the cards they were.
void use_own_names(quota::holding& holding, const quota::node_inventory& node);

}  // namespace reconcilers::extender
