#pragma once
// The preflight part of AcceleratorNode.status, as the agent applies it: the rows and the condition PreflightPassed.
// It has a field owner of its own, so that neither the cards nor the rows wait for each other. Pure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/facts/judge.hpp"
#include "api/accelerator_node.hpp"

namespace agent::facts {

inline constexpr std::string_view field_owner = "quartermaster-agent-preflight";

/// An AcceleratorNode with the rows that an agent has written.
struct reported_node : api::accelerator_node {
  std::vector<row> rows;
  std::string passed, passed_since;  ///< condition PreflightPassed; RFC 3339

  static kube::result<reported_node> decode(std::string_view bytes);
  friend bool operator==(const reported_node&, const reported_node&) = default;
};

/// @param now RFC 3339; a condition that stays the same keeps its time
nlohmann::json status_of(const std::vector<row>& rows, const reported_node& before, const std::string& now);
/// The object says all of that already.
bool says(const reported_node& node, const std::vector<row>& rows);

}  // namespace agent::facts
