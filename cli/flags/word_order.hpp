#pragma once
// Flags where people are used to type them.

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace cli {

/// `-n a inspect -o wide pods p` as `inspect pods -n a -o wide p`, `help inspect` as `inspect --help`, and
/// `explain deploy/web` as `explain pod deploy/web`. What comes after the first argument stays as it is.
std::vector<std::string> verbs_first(const CLI::App& app, std::vector<std::string> words);

}  // namespace cli
