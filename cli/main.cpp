// The program: its verbs, one file each. `quartermaster VERB --help` teaches one. Exit codes: 0 done, 1 failed with one
// line that says why and what to do, 2 wrong usage, 3 found problems.

#include <CLI/CLI.hpp>
#include <exception>
#include <iostream>

#include "cli/verbs.hpp"

int main(int argc, char** argv) {
  CLI::App app{"Accelerators on Kubernetes: enrols nodes, rolls out device plugins, judges declarations.",
               "quartermaster"};
  app.set_version_flag("--version", cli::version_line());
  app.require_subcommand(1);
  app.fallthrough(false);
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong usage, 3 found problems.\nDocumentation: docs/operating.md");

  int rc = 0;
  cli::add_controller(app, rc);
  cli::add_inspect(app, rc);
  cli::add_lint(app, rc);
  cli::add_render(app, rc);
  cli::add_version(app, rc);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& wrong) {
    std::cerr << "quartermaster: " << wrong.what() << " (see quartermaster --help)\n";
    return 2;
  } catch (const std::exception& bug) {
    std::cerr << "quartermaster: internal error: " << bug.what() << "\n";
    return 1;
  }
  return rc;
}
