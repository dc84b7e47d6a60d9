#pragma once
// What people wrote, made safe to repeat: in an annotation, an event, a log line, a terminal. ConfigMaps hold anything
// up to 1 MiB.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace text {

/// Valid UTF-8 of at most `max_bytes`, cut on a character edge with "…". Bytes that are not UTF-8 become \xNN; control
/// characters, line separators, and the ones that reorder text (bidi) or are not seen become \u{N}; newline and tab
/// become a blank.
std::string shown(std::string_view text, std::size_t max_bytes = 80);

/// UTF-8 without control characters (newline and tab are allowed) and without the characters that reorder text.
bool is_plain_text(std::string_view text);

/// Holds a character from the CJK blocks (ideographs, kana, hangul, full-width forms).
bool has_cjk(std::string_view text);

/// Takes one character off the front of a text that is not empty; of bytes that are not UTF-8 (overlong forms,
/// surrogates and values above U+10FFFF too) one byte, as `not_utf8`.
char32_t take_character(std::string_view& text);
inline constexpr char32_t not_utf8 = 0xffffffff;

std::string_view trimmed(std::string_view text);
/// A-Z to a-z, everything else as it is.
std::string lower_case(std::string_view text);

/// The texts that stand in quotes: ["a", 'b'] has two.
std::vector<std::string> quoted_in(std::string_view array);

}  // namespace text
