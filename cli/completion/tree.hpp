#pragma once
// The tree of verbs and options that CLI11 holds, as completion and the man page read it: without what is hidden.

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cli {

/// The verbs below this one that people see, in the order in which they were added.
std::vector<CLI::App*> shown_verbs(CLI::App& verb);

/// The options of the verb, which begin with a dash, and its arguments, which do not. lint's --file is both.
std::vector<const CLI::Option*> options_of(CLI::App& verb);
std::vector<const CLI::Option*> arguments_of(CLI::App& verb);

/// The values that the option allows, where it names all of them: "en" and "zh" of `--lang`.
std::vector<std::string> choices_of(const CLI::Option& option);

bool takes_value(const CLI::Option& option);
/// The option's type is FILE, as its help says.
bool takes_file(const CLI::Option& option);

/// "--output" of an option that is also "-o"; "-n" where there is no long name.
std::string long_name(const CLI::Option& option);

}  // namespace cli
