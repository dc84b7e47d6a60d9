#pragma once
// Words in tests. A test compares facts: codes, parameters, fields, exit codes. Where it has only a text, it names the
// words by their key, as the program does, so it also passes in a build in which a message is its key
// (-DQM_WORDS=codes). Tests of the words themselves have "golden" in their names and do not run there.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/fact.hpp"
#include "text/phrase.hpp"

namespace words {

inline std::string english(std::string_view key, std::initializer_list<text::parameter> parameters = {}) {
  return text::message(key, text::language::en, parameters);
}
inline std::string chinese(std::string_view key, std::initializer_list<text::parameter> parameters = {}) {
  return text::message(key, text::language::zh, parameters);
}

/// The words of a message up to what stands for {name} in them.
inline std::string begin_of(std::string_view key, std::string_view name) {
  const auto text = english(key, {{std::string(name), "|"}});
  return text.substr(0, text.find('|'));
}

/// The facts of a finding without its words: "flag_value{field=--secure-port,value=x,allowed=0 to 65535}". What is
/// empty is left out.
inline std::string line_of(const text::fact& fact) {
  std::string list;
  for (const auto& [name, value] : fact.parameters)
    if (!value.empty()) list.append(list.empty() ? "" : ",").append(name).append("=").append(value);
  return std::string(fact.code) + "{" + list + "}";
}

/// The same of a phrase, with those inside it: "status.rollout.rest.one{number=1}".
inline std::string line_of(const text::phrase& phrase) {
  std::string list;
  for (const auto& [name, values, inner] : phrase.arguments)
    if (const auto value = inner.empty() ? values[0] : line_of(inner); !value.empty())
      list.append(list.empty() ? "" : ",").append(name).append("=").append(value);
  return list.empty() ? phrase.key : phrase.key + "{" + list + "}";
}

/// A list of names as a phrase has it.
inline std::string listed(const std::vector<std::string>& names) { return text::some_of("", names).values[0]; }

}  // namespace words
