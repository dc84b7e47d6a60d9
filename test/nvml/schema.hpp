#pragma once
// What a fixture may contain. Every key is a row of a table with its type, so a misspelt key or a wrong value is found
// when the file is read, not when a program gets a strange answer.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nvml {

/// Empty when the node (its cards already merged with their models) is valid; otherwise the place, what is wrong, and
/// what is allowed: `/cards/0/compute_mode: "fast" is not allowed; allowed are default, prohibited, ...`.
std::string fault_in(const nlohmann::json& node);

}  // namespace nvml
