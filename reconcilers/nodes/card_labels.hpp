#pragma once
// The labels by which people select cards: those of GPU Feature Discovery and of other products, with the values that
// these programs would write. The node's agent reports the cards; it has no right on Nodes. Pure: what the labels are,
// and which of them are ours to write. card_labeler.hpp writes.
//
// A label belongs to the one who wrote it first. One of our annotations repeats what we wrote. A label that differs
// from it is someone else's from then on, and one that is gone was removed by someone: it stays away.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/accelerator_node.hpp"
#include "kube/projections/node.hpp"

namespace reconcilers {

/// On nodes: what we wrote, "key=value,key=value". The value "-", which no label can have: someone removed the label.
inline constexpr std::string_view card_labels_annotation = "state.quartermaster.io/card-labels";

/// Label values by key.
using label_values = std::map<std::string, std::string, std::less<>>;

/// @param families as spec.cardLabels of the policy names them
/// @return empty where the agent reports no cards. What the cards do not have in common is left out, as is what is no
///         label value.
label_values card_labels(const api::accelerator_node& report, const std::vector<std::string>& families);

struct card_label_step {
  label_values labels;                ///< ours from now on; the others that we have go
  std::vector<std::string> withheld;  ///< ours, and removed by someone
  label_values handed_over;           ///< ours until now, and Node Feature Discovery's from now on: they stay
  std::string record;                 ///< what the annotation says from now on; empty: it goes
  bool is_idle = true;                ///< all of that is so already
};

card_label_step next_card_labels(const kube::node& node, const label_values& wanted);

/// What the annotation says of these.
std::string record_of(const label_values& labels, const std::vector<std::string>& withheld);

}  // namespace reconcilers
