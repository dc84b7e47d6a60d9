#pragma once
// The words that people read, by key, in English and Chinese: text/messages.en.yaml and messages.zh.yaml. The build
// makes one table of the two (text/messages.cmake), so nothing is parsed when the program runs.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/message.hpp"

namespace text {

/// What {name} in a pattern stands for.
struct parameter {
  std::string_view name;
  std::string value;
  friend bool operator==(const parameter&, const parameter&) = default;
};

/// A row of the table, whose order is that of the keys.
struct catalogue_entry {
  std::string_view key;
  std::string_view words[2];  ///< by language
};
std::span<const catalogue_entry> catalogue() noexcept;

/// The pattern of a key such as "lint.not_a_mapping.wrong"; empty where there is none.
std::string_view pattern_of(std::string_view key, language locale) noexcept;

/// In one pass, so that what people wrote is never taken for a placeholder. A brace that opens no known name stands for
/// itself.
std::string filled(std::string_view pattern, std::span<const parameter> parameters);

/// Every {name} of a pattern. In a program that says keys `{` opens the list of parameters, too, which is no name.
std::vector<std::string_view> placeholders_of(std::string_view pattern);

/// "1 pod", "3 pods": the words of KEY.one or KEY.many, filled with {number}.
std::string counted(std::size_t number, std::string_view key, language locale);

/// The words of a key. A key without words is its own words: better than silence.
std::string message(std::string_view key, language locale, std::initializer_list<parameter> parameters = {});

/// "a, b, c and 4 more", as long as the list in text/list.hpp.
std::string some_of(const std::vector<std::string>& items, std::size_t most, language locale);

}  // namespace text
