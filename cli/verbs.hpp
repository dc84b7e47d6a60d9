#pragma once
// The verbs of the program. Each adds its flags and its callback to the command line; the callback leaves the exit code
// in `rc`.

#include <string>

namespace CLI {
class App;
}

namespace cli {

/// "quartermaster 0.1.0".
std::string version_line();

/// `quartermaster controller`: the operator itself, until a signal or a lost lease.
void add_controller(CLI::App& app, int& rc);
/// `quartermaster version [-o json]`.
void add_version(CLI::App& app, int& rc);

}  // namespace cli
