#pragma once
// What files of the node say, as the agent applies it to AcceleratorNode.status: the rows of preflight, the condition
// PreflightPassed, and the cards of other vendors. It has a field owner of its own, so that neither the cards nor the
// rows wait for each other. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/facts/judge.hpp"
#include "api/accelerator_node.hpp"

namespace agent::facts {

inline constexpr std::string_view field_owner = "quartermaster-agent-preflight";

/// @param now RFC 3339; a condition that stays the same keeps its time
nlohmann::json status_of(const std::vector<row>& rows, const std::vector<api::other_card>& other_cards,
                         const api::reported_node& before, const std::string& now);
/// The object says all of that already.
bool says(const api::reported_node& node, const std::vector<row>& rows,
          const std::vector<api::other_card>& other_cards);

}  // namespace agent::facts
