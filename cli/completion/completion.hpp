#pragma once
// Shell completion. The scripts of `quartermaster completion` ask the program itself, with the words typed so far, so
// they know no verb. The answer has the form of cobra's `__complete`, which is also what kubectl reads from a program
// named kubectl_complete-quartermaster.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

/// The first word by which scripts ask. It is no verb: the words after it are no command line yet.
inline constexpr const char* completion_request = "__complete";

/// `words`: those after the program's name; the last one is the word under the cursor and may be empty. One candidate
/// per line, with a tab and what it is for where that is known. The last line is ":0" where files fit too, or ":4".
/// Source: cobra's shell_completions.md and kubectl's pkg/cmd/plugin_completion.go.
std::string completions(CLI::App& app, const std::vector<std::string>& words);

}  // namespace cli
