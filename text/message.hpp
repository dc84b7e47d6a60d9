#pragma once
// What messages to people are made of: the language, how bad it is, and the words of one finding in one language.

#include <cstdint>
#include <string_view>

namespace text {

enum class severity : std::uint8_t { error, warning };
enum class language : std::uint8_t { en, zh };

/// Patterns; their placeholders are those of the table that has them.
struct message_pattern {
  std::string_view wrong;             ///< what is wrong, with field and value
  std::string_view allowed;           ///< what may stand there, when the finding itself does not say
  std::string_view remedy;            ///< what to do
  std::string_view remedy_with_hint;  ///< what to do when we can guess what was meant; empty: `remedy`
};

}  // namespace text
