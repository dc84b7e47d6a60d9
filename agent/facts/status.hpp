#pragma once
// What files of the node say, as the agent applies it to AcceleratorNode.status: the rows of preflight, the condition
// PreflightPassed, and the cards of other vendors. It has a field owner of its own, so that neither the cards nor the
// rows wait for each other. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/facts/judge.hpp"
#include "api/accelerator_node.hpp"
#include "api/other_card.hpp"

namespace agent::facts {

inline constexpr std::string_view field_owner = "quartermaster-agent-preflight";

/// An AcceleratorNode with what an agent has written so.
struct reported_node : api::accelerator_node {
  std::vector<row> rows;
  std::vector<api::other_card> other_cards;
  std::string passed, passed_since;  ///< condition PreflightPassed; RFC 3339

  static kube::result<reported_node> decode(std::string_view bytes);
  friend bool operator==(const reported_node&, const reported_node&) = default;
};

/// @param now RFC 3339; a condition that stays the same keeps its time
nlohmann::json status_of(const std::vector<row>& rows, const std::vector<api::other_card>& other_cards,
                         const reported_node& before, const std::string& now);
/// The object says all of that already.
bool says(const reported_node& node, const std::vector<row>& rows, const std::vector<api::other_card>& other_cards);

}  // namespace agent::facts
