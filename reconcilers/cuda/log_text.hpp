#pragma once
// Makes the logs of all programs look alike, so that a pattern is written once: lower case, one blank for white space,
// one kind of quotation mark, no colours of a terminal, no escapes of JSON or of a quoted message.

#include <string>
#include <string_view>

namespace reconcilers::cuda {

/// Given a text in parts, which may end anywhere.
class log_text {
 public:
  /// Appends to `out`; white space with a line break in it becomes a line break. `out` may lose its front between
  /// calls, but not its last character.
  void append(std::string_view part, std::string& out);

 private:
  enum class place { plain, backslash, code_point, escape, control, quote_first, quote_second };
  void put(char character, std::string& out);
  void take(char character, std::string& out);

  place place_ = place::plain;
  std::string digits_;  ///< of \u001b
};

}  // namespace reconcilers::cuda
