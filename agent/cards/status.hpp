#pragma once
// The agent's part of AcceleratorNode.status, as it is applied: cards, driver and the condition CardsHealthy. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/cards/inventory.hpp"
#include "api/accelerator_node.hpp"

namespace agent::cards {

/// @param boot the boot of the machine that the report is about (/proc/sys/kernel/random/boot_id)
/// @param before the object as it is: a condition that stays the same keeps its time
/// @param now RFC 3339
nlohmann::json status_of(const inventory& report, const std::string& boot, const api::accelerator_node& before,
                         const std::string& now);
/// The cards of an earlier report, in the order of their numbers.
std::vector<card> cards_in(const api::accelerator_node& object);
/// Does the object say all of that already?
bool says(const api::accelerator_node& object, const inventory& report, const std::string& boot);

}  // namespace agent::cards
