#pragma once
// Words in tests. A test compares facts: codes, parameters, fields, exit codes. Where it has only a text, it names the
// words by their key, as the program does, so it also passes in a build in which a message is its key
// (-DQM_WORDS=codes). Tests of the words themselves have "golden" in their names and do not run there.

#include <initializer_list>
#include <string>
#include <string_view>

#include "text/fact.hpp"

namespace words {

inline std::string english(std::string_view key, std::initializer_list<text::parameter> parameters = {}) {
  return text::message(key, text::language::en, parameters);
}
inline std::string chinese(std::string_view key, std::initializer_list<text::parameter> parameters = {}) {
  return text::message(key, text::language::zh, parameters);
}

/// The facts of a finding without its words: "flag_value{field=--secure-port,value=x,allowed=0 to 65535}". What is
/// empty is left out.
inline std::string line_of(const text::fact& fact) {
  std::string list;
  for (const auto& [name, value] : fact.parameters)
    if (!value.empty()) list.append(list.empty() ? "" : ",").append(name).append("=").append(value);
  return std::string(fact.code) + "{" + list + "}";
}

}  // namespace words
