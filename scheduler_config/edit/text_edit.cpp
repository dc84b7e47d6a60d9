#include "scheduler_config/edit/text_edit.hpp"

#include <algorithm>

#include "text/text.hpp"

namespace scheduler_config {

std::string with_insertions(std::string_view text, std::vector<insertion> all) {
  for (std::size_t i = 0; i < all.size(); ++i) all[i].order = i;
  std::ranges::sort(all, {}, [](const insertion& insertion) { return std::pair(insertion.offset, insertion.order); });
  std::string out;
  std::size_t done = 0;
  bool broken = false;  // the end of the file has its line break
  for (auto& entry : all) {
    out += text.substr(done, entry.offset - done);
    done = entry.offset;
    // Of two at the end of a file without a line break the first brings it.
    const auto line_break = line_break_of(text);
    if (broken && entry.text.starts_with(line_break)) {
      entry.text.erase(0, line_break.size());
      const auto long_mark = entry.text.find(begin_mark_after_break);
      entry.text.replace(long_mark, begin_mark_after_break.size(), begin_mark);
    }
    broken = broken || entry.text.contains(begin_mark_after_break);
    out += entry.text;
  }
  return out += text.substr(done);
}

std::string_view line_break_of(std::string_view text) {
  const auto end = text.find('\n');
  return end != text.npos && end > 0 && text[end - 1] == '\r' ? "\r\n" : "\n";
}

std::string_view take_line(std::string_view& rest) {
  const auto end = rest.find('\n');
  const auto line = rest.substr(0, end == rest.npos ? rest.size() : end + 1);
  rest.remove_prefix(line.size());
  return line;
}

std::string marked(std::string_view lines, std::size_t margin, std::string_view line_break, bool after_break) {
  const std::string before(margin, ' ');
  std::string out;
  const auto add = [&](std::string_view line) { out.append(before).append(line).append(line_break); };
  if (after_break) out += line_break;
  add(after_break ? begin_mark_after_break : begin_mark);
  while (!lines.empty()) {
    auto line = take_line(lines);
    if (line.ends_with('\n')) line.remove_suffix(1);
    add(line);
  }
  add(end_mark);
  return out;
}

bool nothing_but_properties(std::string_view rest) {
  for (;;) {
    const auto begin = std::min(rest.find_first_not_of(" \t\r"), rest.size());
    const bool apart = begin > 0;
    rest.remove_prefix(begin);
    if (rest.empty()) return true;
    if (!apart) return false;
    if (rest.front() == '#') return true;
    if (rest.front() != '&' && rest.front() != '!') return false;
    rest.remove_prefix(std::min(rest.find_first_of(" \t\r"), rest.size()));
  }
}

std::optional<std::pair<std::size_t, char>> first_word(std::string_view lines) {
  while (!lines.empty()) {
    const auto line = take_line(lines);
    const auto word = text::trimmed(line);
    if (!word.empty() && word.front() != '#') return std::pair(line.find_first_not_of(' '), word.front());
  }
  return std::nullopt;
}

std::size_t end_of_brackets(std::string_view text, std::size_t open) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t index = open; index < text.size(); ++index) {
    const char c = text[index];
    if (quoted) {
      if (c == '\\') ++index;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return index + 1;
    }
  }
  return text.npos;
}

}  // namespace scheduler_config
