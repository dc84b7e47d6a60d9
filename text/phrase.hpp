#pragma once
// What is to be said, before it has a language: a key of the catalogue with what fills it, which may itself be phrases.
// A part that finds something out returns one; who prints it, or writes it to an object, chooses the language.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/message.hpp"

namespace text {

struct phrase_argument;

/// A key without words is its own words, so a sentence of someone else is a phrase, too.
struct phrase {
  std::string key;  ///< empty: there is nothing to say
  std::vector<phrase_argument> arguments;

  phrase();
  phrase(std::string name);
  phrase(std::string name, std::vector<phrase_argument> values);

  /// There is nothing to say.
  bool empty() const noexcept { return key.empty(); }
  friend bool operator==(const phrase& left, const phrase& right);
};

/// What {name} in the words of a phrase stands for.
struct phrase_argument {
  std::string name;
  std::array<std::string, 2> values;  ///< by language, where `inner` says nothing
  phrase inner;

  phrase_argument(std::string_view placeholder, const std::string& value) : name(placeholder), values{value, value} {}
  phrase_argument(std::string_view placeholder, phrase words) : name(placeholder), inner(std::move(words)) {}
  /// A value that has words of its own in each language.
  phrase_argument(std::string_view placeholder, std::string english, std::string chinese)
      : name(placeholder), values{std::move(english), std::move(chinese)} {}
  friend bool operator==(const phrase_argument&, const phrase_argument&) = default;
};

/// Empty where there is nothing to say.
std::string words_of(const phrase& phrase, language locale);

/// One after the other: "a, b, c" or "a; b; c". Of none there is nothing to say.
phrase joined_by_commas(std::vector<phrase> items);
phrase joined_by_semicolons(std::vector<phrase> items);
/// "1 pod", "3 pods": KEY.one or KEY.many, filled with {number}.
phrase counted_phrase(std::size_t number, std::string_view key);
/// The first `most` of a list, with "and 4 more" in each language.
phrase_argument some_of(std::string_view placeholder, const std::vector<std::string>& items, std::size_t most = 3);

}  // namespace text
