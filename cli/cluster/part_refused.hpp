#pragma once
// Of an answer that goes without a part: which part, and why it could not be seen.

#include <string>

#include "text/phrase.hpp"

namespace cli {

/// "KEY: {problem}" of a refusal (cli/cluster/refusal.hpp), with its commands.
text::phrase part_refused(std::string key, text::phrase refused);

}  // namespace cli
