#pragma once
// The mode of a node in every answer: one rule for where it is, and how a change is written.

#include <string>
#include <string_view>

#include "api/accelerator_node.hpp"
#include "kube/projections/node.hpp"

namespace reconcilers {

/// In which it is: as the operator has written it, else by the label that the operator keeps. Empty: in none.
/// @param status null: there is none
std::string_view current_mode(const kube::node& node, const api::mode_status* status);

/// For people: "vgpu", "none", or "pgpu -> vgpu" while it changes.
std::string shown_mode(const kube::node& node, const api::mode_status* status);

}  // namespace reconcilers
