#pragma once
// `--config FILE`: more flags, one a line, as flag=value without the dashes; blank lines and lines that begin with #
// are skipped. They are put before those of the command line, which win.

#include <expected>
#include <string>
#include <vector>

#include "text/phrase.hpp"

namespace cli {

/// "--flag=value" for each line of the file; or the file, the line, and what is wrong. A flag that
/// is not among `known` ("--log-level", ...) or in `overrides` twice is wrong, one that is in `overrides` is left out.
std::expected<std::vector<std::string>, text::phrase> flags_of_file(const std::string& file,
                                                                    const std::vector<std::string>& known,
                                                                    const std::vector<std::string>& overrides);

/// The words of a command line with those of its --config FILE put in behind the verb; the words as they are where
/// there is none.
std::expected<std::vector<std::string>, text::phrase> with_config_file(std::vector<std::string> words,
                                                                       const std::vector<std::string>& known);

}  // namespace cli
