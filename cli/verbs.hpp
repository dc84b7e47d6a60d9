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
/// `quartermaster explain error` and `explain compat`: what an error means, and whether an image runs on a node.
void add_explain(CLI::App& app, int& rc);
/// `quartermaster inspect resources`: what is declared in a cluster, and which pods the rules would refuse.
void add_inspect(CLI::App& app, int& rc);
/// `quartermaster lint FILE...`: declarations and workloads in files, judged without a cluster.
void add_lint(CLI::App& app, int& rc);
/// `quartermaster render declaration`: a correct ConfigMap.
void add_render(CLI::App& app, int& rc);
/// `quartermaster version [-o json]`.
void add_version(CLI::App& app, int& rc);

}  // namespace cli
