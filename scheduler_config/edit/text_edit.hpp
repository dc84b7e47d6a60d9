#pragma once
// Text put into a file without touching the rest of it, in whole lines between two comment lines, by which it is found
// again.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace scheduler_config {

inline constexpr std::string_view begin_mark = "# quartermaster: begin";
/// The file ended without a line break; the one before this line is ours.
inline constexpr std::string_view begin_mark_after_break = "# quartermaster: begin, and the line break before it";
inline constexpr std::string_view end_mark = "# quartermaster: end";

struct insertion {
  std::size_t offset = 0;
  std::string text;
  std::size_t order = 0;  ///< of those at one place; with_insertions numbers them
};
/// Those at one place in their order.
std::string with_insertions(std::string_view text, std::vector<insertion> all);

/// "\r\n" where the first line ends so.
std::string_view line_break_of(std::string_view text);
/// The first line with its end, taken off.
std::string_view take_line(std::string_view& rest);

/// `lines` at this margin between the marks.
std::string marked(std::string_view lines, std::size_t margin, std::string_view line_break, bool after_break);

/// What may follow the colon of a key whose value stands below it: an anchor, a tag, a comment.
bool nothing_but_properties(std::string_view rest_of_line);
/// Margin and first character of the first line that is no comment; nothing where there is none.
std::optional<std::pair<std::size_t, char>> first_word(std::string_view lines);
/// Behind the bracket that closes the one at `open`; npos: none does. Quotes as JSON has them.
std::size_t end_of_brackets(std::string_view text, std::size_t open);

}  // namespace scheduler_config
