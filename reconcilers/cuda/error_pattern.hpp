#pragma once
// The patterns of reconcilers/cuda/error_signs.hpp, found by their first word. Texts are those of log_text.

#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reconcilers::cuda {

bool is_digit(char character);
/// Of a word: a letter, a digit, an underscore.
bool is_word_character(char character);
/// The characters of a word from `begin` on; empty where there is none.
std::string_view word_at(std::string_view text, std::size_t begin);

/// Calls `each` for the parts of `text` between `separators` that are not empty.
template <class Each>
void each_part(std::string_view text, std::string_view separators, Each each) {
  while (!text.empty()) {
    const auto end = text.find_first_of(separators);
    if (const auto part = text.substr(0, end); !part.empty()) each(part);
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

/// All signs, read once.
struct error_index {
  struct pattern {
    std::vector<std::string_view> parts;  ///< between the asterisks
    bool begins_line = false, ends_line = false;
    std::size_t section;  ///< place in all_error_signs()
  };
  std::unordered_map<std::string_view, std::vector<pattern>> patterns;  ///< by their first word
  /// Their first word is the begin of one; by its first character.
  std::array<std::vector<pattern>, 128> open;
  std::unordered_map<std::string_view, std::size_t> codes;  ///< "700" -> its section
  std::unordered_map<std::string_view, std::size_t> exits;  ///< "137", "-9" -> its section
  std::unordered_map<std::string_view, std::size_t> names;  ///< all that may be typed alone
};
const error_index& signs_by_word();

/// Whether `pattern` stands in `text` from `begin` on. `begin` is where a word begins.
bool stands_at(const error_index::pattern& pattern, std::string_view text, std::size_t begin);

/// How far behind its begin a pattern may reach.
inline constexpr std::size_t longest_match = 4096;

}  // namespace reconcilers::cuda
