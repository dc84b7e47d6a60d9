#pragma once
// What an English text says without its sentence. The texts of usage errors, transports and files have no code; a test
// of one names the fields, values and commands that a reader acts on, so that the sentence round them can be improved.

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace words {

/// Matches a text that has all of these, in this order.
inline testing::Matcher<const std::string&> has_in_order(std::vector<std::string> parts) {
  const auto missing = [parts = std::move(parts)](const std::string& text) -> std::string {
    std::size_t end = 0;
    for (const auto& part : parts) {
      const auto begin = text.find(part, end);
      if (begin == std::string::npos) return part;
      end = begin + part.size();
    }
    return "";
  };
  return testing::ResultOf("what the text lacks", missing, testing::IsEmpty());
}

}  // namespace words
