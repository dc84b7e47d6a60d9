#pragma once
// Verbs that do something themselves and have subcommands, too.

#include <string_view>

namespace CLI {
class App;
}  // namespace CLI

namespace cli {

/// Flags and arguments of `verb` itself are refused next to one of its subcommands, before that runs: it would not read
/// them. What the environment says is no flag. Call this after all of them were added.
void refuse_flags_before_subcommands(CLI::App& verb);

}  // namespace cli
