#include "reconcilers/cuda/error_pattern.hpp"

#include <algorithm>

#include "reconcilers/cuda/error_signs.hpp"

namespace reconcilers::cuda {
namespace {

constexpr std::size_t longest_gap = 200;

error_index::pattern parsed(std::string_view line, std::size_t section) {
  error_index::pattern out;
  out.section = section;
  out.begins_line = line.starts_with('^');
  if (out.begins_line) line.remove_prefix(1);
  out.ends_line = line.ends_with('$');
  if (out.ends_line) line.remove_suffix(1);
  for (std::size_t star = 0; (star = line.find('*')) != line.npos; line.remove_prefix(star + 1))
    out.parts.push_back(line.substr(0, star));
  out.parts.push_back(line);
  return out;
}

error_index read_signs() {
  error_index out;
  const auto signs = all_error_signs();
  for (std::size_t section = 0; section < signs.size(); ++section) {
    const auto& row = signs[section];
    each_part(row.patterns, "\n", [&](std::string_view line) {
      const auto word = word_at(line, line.starts_with('^'));
      const auto rest = line.substr(word.size());
      const bool is_open = rest.starts_with('*') || rest.starts_with('#');
      auto& list = is_open ? out.open[static_cast<unsigned char>(word.front())] : out.patterns[word];
      list.push_back(parsed(line, section));
      // CUDA_ERROR_INVALID_IMAGE is typed without its prefix, too; a single word like UNKNOWN says nothing.
      constexpr std::string_view prefix = "cuda_error_";
      if (!line.starts_with(prefix) || word != line) return;
      if (const auto name = line.substr(prefix.size()); name.contains('_')) out.names.emplace(name, section);
    });
    each_part(row.aliases, "\n", [&](std::string_view alias) { out.names.emplace(alias, section); });
    each_part(row.codes, " ", [&](std::string_view code) { out.codes.emplace(code, section); });
    each_part(row.exits, " ", [&](std::string_view code) { out.exits.emplace(code, section); });
    out.names.emplace(row.id, section);
  }
  return out;
}

/// The end of `part` in `text` from `begin` on; npos: it does not stand there.
std::size_t end_of_part(std::string_view part, std::string_view text, std::size_t begin) {
  for (const auto wanted : part) {
    if (begin >= text.size()) return text.npos;
    if (wanted == '#') {
      if (!is_digit(text[begin])) return text.npos;
      while (begin < text.size() && is_digit(text[begin])) ++begin;
      if (begin + 1 < text.size() && text[begin] == '.' && is_digit(text[begin + 1]))
        for (++begin; begin < text.size() && is_digit(text[begin]);) ++begin;
      continue;
    }
    if (text[begin] != wanted && (wanted != ' ' || text[begin] != '\n')) return text.npos;
    ++begin;
  }
  return begin;
}

/// The same, up to `longest_gap` characters further on in the line.
std::size_t end_after_gap(std::string_view part, std::string_view text, std::size_t begin) {
  const auto last = std::min(begin + longest_gap, text.size());
  for (; begin <= last; ++begin) {
    if (const auto end = end_of_part(part, text, begin); end != text.npos) return end;
    if (begin < text.size() && text[begin] == '\n') break;
  }
  return text.npos;
}

bool is_line_begin(std::string_view text, std::size_t begin) {
  while (begin > 0 && text[begin - 1] == ' ') --begin;
  return begin == 0 || text[begin - 1] == '\n';
}

/// One error, not the end of a line and what happens to follow: at most one break, and not behind the first word.
bool is_joined(std::string_view match) {
  const auto first = match.find('\n');
  return first == match.npos || (first != word_at(match, 0).size() && match.find('\n', first + 1) == match.npos);
}

}  // namespace

bool is_digit(char character) { return character >= '0' && character <= '9'; }
bool is_word_character(char character) {
  return is_digit(character) || (character >= 'a' && character <= 'z') || character == '_';
}

std::string_view word_at(std::string_view text, std::size_t begin) {
  auto end = begin;
  while (end < text.size() && is_word_character(text[end])) ++end;
  return text.substr(begin, end - begin);
}

const error_index& signs_by_word() {
  static const auto index = read_signs();
  return index;
}

bool stands_at(const error_index::pattern& pattern, std::string_view text, std::size_t begin) {
  auto end = end_of_part(pattern.parts.front(), text, begin);
  for (std::size_t i = 1; i < pattern.parts.size() && end != text.npos; ++i)
    end = end_after_gap(pattern.parts[i], text, end);
  if (pattern.begins_line && !is_line_begin(text, begin)) return false;
  if (end == text.npos || !is_joined(text.substr(begin, end - begin))) return false;
  const auto& last = pattern.parts.back();
  if (last.empty()) return true;
  if (end < text.size() && is_word_character(last.back()) && is_word_character(text[end])) return false;
  if (!pattern.ends_line) return true;
  const auto rest = text.find_first_not_of(".!' ", end);
  return rest == text.npos || text[rest] == '\n';
}

}  // namespace reconcilers::cuda
