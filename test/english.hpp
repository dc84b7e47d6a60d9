#pragma once
// Is there an English sentence in a Chinese answer?

#include <algorithm>
#include <string>
#include <string_view>

namespace words {

/// Whether a text has four English words in a row, as an English sentence in a Chinese answer does. Commands up to the
/// next Chinese character, flags, paths, names with capitals, dots or figures and what stands in quotes are the same in
/// both languages.
inline bool has_english_sentence(std::string_view text) {
  std::size_t words = 0;
  bool is_command = false, is_quoted = false;
  std::string token;
  const auto end_token = [&] {
    const bool is_word = !token.empty() && std::ranges::all_of(token, [](char c) { return c >= 'a' && c <= 'z'; });
    for (const auto* program : {"kubectl", "quartermaster", "helm", "nvidia", "dmesg"})
      is_command = is_command || token == program;
    words = is_word && !is_command && !is_quoted ? words + 1 : token.empty() ? words : 0;
    token.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.substr(i).starts_with("“")) is_quoted = true;
    const bool is_chinese = static_cast<unsigned char>(c) >= 0x80;
    if (c == ' ' || c == ',' || c == '\n' || is_chinese) end_token();
    if (words >= 4) return true;
    if (is_chinese) is_command = false, words = 0;
    if (c == '"') is_quoted = !is_quoted;
    if (text.substr(i).starts_with("”")) is_quoted = false;
    if (c != ' ' && c != ',' && c != '\n' && !is_chinese) token += c;
  }
  end_token();
  return words >= 4;
}

}  // namespace words
