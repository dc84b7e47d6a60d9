#pragma once
// Numbers and lists as a sentence has them.

#include <cstddef>
#include <ranges>
#include <string>
#include <string_view>

namespace text {

/// "1 pod", "3 pods".
inline std::string counted(std::size_t number, std::string_view noun) {
  return std::to_string(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

/// "a, b, c". `items` are texts.
std::string joined(const auto& items, std::string_view separator = ", ") {
  std::string out;
  for (const auto& item : items) (out += out.empty() ? std::string_view() : separator) += item;
  return out;
}

/// The first `most` of them: "a, b, c and 4 more".
std::string some_of(const auto& items, std::size_t most = 3) {
  const auto number = static_cast<std::size_t>(std::ranges::distance(items));
  const auto out = joined(items | std::views::take(most));
  return number > most ? out + " and " + std::to_string(number - most) + " more" : out;
}

/// The same without words, for a parameter of a message: "a, b, c (+4)".
std::string abridged(const auto& items, std::size_t most = 3) {
  const auto number = static_cast<std::size_t>(std::ranges::distance(items));
  const auto out = joined(items | std::views::take(most));
  return number > most ? out + " (+" + std::to_string(number - most) + ")" : out;
}

}  // namespace text
