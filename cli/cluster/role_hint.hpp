#pragma once
// The hint for a person who may not read: the role of the chart that lets people read it.

#include <string>

#include "kube/error.hpp"

namespace cli {

/// To be added to the error's line; empty for every error but a refused read.
std::string role_hint(const kube::error& refused);

}  // namespace cli
