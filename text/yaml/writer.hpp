#pragma once
// JSON values as YAML that people read and every YAML reader takes for the same: text is quoted wherever kubectl would
// take it for something else.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace text::yaml {

/// A scalar of one line: plain where that is safe, otherwise in double quotes. Bytes that are not UTF-8 are replaced.
std::string plain_or_quoted(std::string_view text);

/// Block style, two blanks a level, ends with a line end.
std::string write(const nlohmann::ordered_json& value);

}  // namespace text::yaml
