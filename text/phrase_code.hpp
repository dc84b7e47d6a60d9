#pragma once
// A phrase as an object of the API carries it next to its English words, so that who reads the object says it in their
// own language: the key of the catalogue, and in one flat map what fills it. NAME is what {NAME} stands for, NAME:zh
// the same in Chinese where that differs; of a phrase inside, NAME:cause is its key and NAME.INNER what fills it.
// Programs of other versions read it: a key is never given another meaning.

#include <cstddef>
#include <map>
#include <string>

#include "text/phrase.hpp"

namespace text {

struct phrase_code {
  std::string cause;  ///< empty: there is none, and the English words are all there is
  std::map<std::string, std::string, std::less<>> parameters;

  bool empty() const noexcept { return cause.empty(); }
  friend bool operator==(const phrase_code&, const phrase_code&) = default;
};

/// Limits of the types, in characters; values are cut to them in bytes.
inline constexpr std::size_t longest_phrase_parameter = 4096, most_phrase_parameters = 128;

/// A message next to it, in characters, as metav1.Condition has it.
inline constexpr std::size_t longest_message = 32'768;

/// The message: the English words, cut to that in bytes.
std::string message_text(const phrase& phrase);
/// Empty where the catalogue has no such key, as of a sentence of someone else, and where there is more than fits.
phrase_code code_of(const phrase& phrase);
/// The phrase again. Where this program does not know its key, or not all that its words are about: `message`.
phrase phrase_of(const phrase_code& code, const std::string& message);
/// The same for people: a message without a code that is known here is a quotation in Chinese.
phrase quoted_phrase_of(const phrase_code& code, const std::string& message);

}  // namespace text
