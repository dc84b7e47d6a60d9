#pragma once
// Columns that line up in a terminal, whatever script the words are in: an ideograph takes two cells.

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// Terminal cells of one line of UTF-8: two for East Asian wide characters and emoji, none for combining marks.
std::size_t width_of(std::string_view text);

class table {
 public:
  explicit table(std::vector<std::string> header) : columns_(header.size()) { add(std::move(header)); }

  /// As many cells as the header has; an empty one is shown as "-". What would move the cursor of a terminal or reorder
  /// its text is shown as its code: files of `inspect --save` come from other people.
  void add(std::vector<std::string> row);
  /// Two blanks between columns, none at the end of a line.
  void print(std::ostream& out, bool with_header = true) const;

 private:
  std::size_t columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace cli
