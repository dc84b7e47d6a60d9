#pragma once
// Strings of strangers made harmless: names, annotations and messages of others end up in logs, events, conditions and
// metric labels.

#include <cstddef>
#include <string>
#include <string_view>

namespace text {

/// Valid UTF-8 of at most `max_bytes`, cut on a character edge; what is not UTF-8 becomes U+FFFD.
std::string utf8_clean(std::string_view text, std::size_t max_bytes = std::string_view::npos);

/// Appends `text` as the inside of a JSON string. Control characters and the invisible ones that change how a line
/// reads (bidirectional overrides, line separators, zero width) are escaped as \uXXXX; invalid UTF-8 becomes \ufffd.
/// Good for log lines of any format.
void append_escaped(std::string& out, std::string_view text);

}  // namespace text
