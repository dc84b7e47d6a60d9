#pragma once
// Faults of YAML as keys of the catalogue. The parser of the library has words of its own, which are a fixed list.

#include <string>
#include <string_view>

#include "text/phrase.hpp"

namespace text::yaml {

/// "yaml.fault.map_end" of what the library says; words that are not known stay as they are.
std::string fault_of_library(std::string_view words);

/// Why a file is not read, as `read` and `read_file` say it: "NAME:LINE:COLUMN: FAULT". Words that are no key of the
/// catalogue are a quotation.
phrase unreadable(const std::string& error);

}  // namespace text::yaml
