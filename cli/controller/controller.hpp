#pragma once
// Runs the operator with these options until a signal (0), a lost lease or something it cannot run without (1), or
// wrong usage (2).

#include "cli/controller/controller_options.hpp"

namespace cli {

int run_controller(controller_options options);

}  // namespace cli
