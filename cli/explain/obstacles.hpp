#pragma once
// What keeps a pod from a node, or from running there, apart from cards and quotas: what its object says of itself. The
// projection that the stores keep leaves most of these fields out, so the whole object is read.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "text/message.hpp"

namespace cli {

struct obstacle {
  /// ended, deleted, native_resource, gated, not_looked_at, other_scheduler, scheduler_says, not_read or not_well
  std::string code;
  std::string text;  ///< a sentence in the language of the answer, safe to print
  /// No card and no node would help while it is there.
  bool decisive = false;
};

/// @param pod of the API, JSON; a null has no obstacles. What has not the form of the API is as if it were not there.
/// @param asking the scheduler that asks the operator which nodes have room; empty: none does
/// @return the decisive ones first
std::vector<obstacle> obstacles_of(const nlohmann::json& pod, std::string_view asking, text::language locale);

/// Names of the devices that a pod's spec asks for by ResourceClaims (DRA).
std::vector<std::string> claims_of(const nlohmann::json& spec);

}  // namespace cli
