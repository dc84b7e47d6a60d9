#pragma once
// Runs the operator with these options until a signal (0), a lost lease or something it cannot run without (1), or
// wrong usage (2).

#include <string>

#include "cli/controller/controller_options.hpp"

namespace cli {

int run_controller(controller_options options);

/// /metrics of an operator that was made and not started. It has every metric that there is with these options.
std::string metrics_page(controller_options options);

}  // namespace cli
