#include "cli/flags/subcommands.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "cli/flags/usage.hpp"

namespace cli {
namespace {

bool is_of_environment(const CLI::Option& option) {
  const auto* value = option.get_envname().empty() ? nullptr : std::getenv(option.get_envname().c_str());
  return value && option.results() == std::vector<std::string>{value};
}

}  // namespace

void refuse_flags_before_subcommands(CLI::App& verb) {
  verb.parse_complete_callback([&verb] {
    const auto used = verb.get_subcommands();
    if (used.empty()) return;
    for (const auto* option : verb.get_options()) {
      if (option->count() == 0 || option == verb.get_help_ptr() || is_of_environment(*option)) continue;
      throw CLI::ValidationError(option->get_name(), refusal("usage.with_subcommand", used.front()->get_name()));
    }
  });
}

}  // namespace cli
