#pragma once
// Does an object, as the server has it, say everything we want it to? What others added next to our fields does not
// matter. Used to write nothing when nothing is missing; a wrong "no" costs one apply that changes nothing.

#include <nlohmann/json_fwd.hpp>

namespace reconcilers {

/// Members of `want` must be in `is`, recursively. Lists of objects with a mountPath, uid or name are compared by it,
/// as the API server merges them; any other list must be equal.
bool covers(const nlohmann::json& is, const nlohmann::json& want);

}  // namespace reconcilers
