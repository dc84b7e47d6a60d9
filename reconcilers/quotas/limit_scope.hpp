#pragma once
// Which pods and cards a limit of a namespace counts, as people read it.

#include <string>

#include "quota/limits.hpp"

namespace reconcilers {

/// " in pool a from priority 5 up to priority 9". Empty: all.
std::string scope_of(const quota::scope& only);

}  // namespace reconcilers
