#pragma once
// What an answer that is no success says, for readers who know what was asked.

#include <string>

#include "kube/transport.hpp"

namespace kube {

/// "503 ServiceUnavailable: no endpoints". As error_of(operation, answer) of kube/status.hpp has it after its
/// operation.
std::string reason_of(const response& answer);

}  // namespace kube
