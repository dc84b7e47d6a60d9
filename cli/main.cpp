// The program: its verbs, one file each. `quartermaster VERB --help` teaches one. Exit codes: 0 done, 1 failed with one
// line that says why and what to do, 2 wrong usage, 3 found problems.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <iostream>

#include "cli/config_file.hpp"
#include "cli/verbs.hpp"

namespace {

/// How far the words of the command line name verbs: "quartermaster inspect", and the word that is none, if there is
/// one.
struct named {
  std::string path = "quartermaster";
  std::string unknown;  ///< with what there is instead
};

named verbs_of(CLI::App& app, const std::vector<std::string>& command) {
  named out;
  auto* at = &app;
  for (const auto& word : command) {
    const auto choices = at->get_subcommands([](CLI::App*) { return true; });
    if (choices.empty() || word.starts_with("-")) break;
    const auto named_so = std::ranges::find_if(choices, [&](const auto* one) { return one->get_name() == word; });
    if (named_so != choices.end()) {
      at = *named_so;
      out.path += " " + word;
      continue;
    }
    // What takes arguments of its own beside its verbs judges the word itself.
    if (!at->get_options([](const CLI::Option* one) { return one->get_positional(); }).empty()) break;
    for (const auto* one : choices) out.unknown += (out.unknown.empty() ? "" : ", ") + one->get_name();
    out.unknown = "no verb '" + word + "'; there are " + out.unknown;
    break;
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Accelerators on Kubernetes: enrols nodes, rolls out device plugins, judges declarations.",
               "quartermaster"};
  app.set_version_flag("--version", cli::version_line());
  app.require_subcommand(1);
  app.fallthrough(false);
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong usage, 3 found problems.\nDocumentation: docs/operating.md");

  int rc = 0;
  cli::add_agent(app, rc);
  cli::add_controller(app, rc);
  cli::add_explain(app, rc);
  cli::add_inspect(app, rc);
  cli::add_lint(app, rc);
  cli::add_render(app, rc);
  cli::add_scheduler(app, rc);
  cli::add_simulate(app, rc);
  cli::add_uninstall(app, rc);
  cli::add_verify(app, rc);
  cli::add_version(app, rc);
  auto command = cli::command_of(argc > 0 ? argv[0] : "", {argv + std::min(argc, 1), argv + argc});
  const auto words = verbs_of(app, command);
  if (!words.unknown.empty()) {
    std::cerr << "quartermaster: " << words.unknown << " (see " << words.path << " --help)\n";
    return 2;
  }
  if (!command.empty() && command[0] == "controller") {
    std::vector<std::string> known;
    for (const auto* option : app.get_subcommand("controller")->get_options())
      known.push_back("--" + option->get_single_name());
    auto whole = cli::with_config_file(std::move(command), known);
    if (!whole) {
      std::cerr << "quartermaster: " << whole.error().what << "\n";
      return 2;
    }
    command = std::move(*whole);
  }
  try {
    std::ranges::reverse(command);  // CLI11 takes them last first
    app.parse(std::move(command));
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& wrong) {
    std::cerr << "quartermaster: " << wrong.what() << " (see " << words.path << " --help)\n";
    return 2;
  } catch (const std::exception& bug) {
    std::cerr << "quartermaster: internal error: " << bug.what() << "\n";
    return 1;
  }
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "quartermaster: the standard output could not be written\n";
    return 1;
  }
  return rc;
}
