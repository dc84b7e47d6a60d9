#include "cli/flags/subcommands.hpp"

#include <CLI/CLI.hpp>

namespace cli {

void refuse_flags_before_subcommands(CLI::App& verb) {
  verb.parse_complete_callback([&verb] {
    const auto used = verb.get_subcommands();
    if (used.empty()) return;
    for (const auto* option : verb.get_options()) {
      if (option->count() == 0 || option == verb.get_help_ptr()) continue;
      throw CLI::ValidationError(option->get_name(),
                                 "does not go with the subcommand " + used.front()->get_name() + ": leave one out");
    }
  });
}

}  // namespace cli
