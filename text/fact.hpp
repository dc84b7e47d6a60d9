#pragma once
// The one form in which a finding reaches people. A part of the product has its own type of finding, with an
// enumeration of its codes; what it has to say of one is this: facts, whose words are those of the catalogue
// (text/messages.hpp).

#include <string>
#include <vector>

#include "text/messages.hpp"
#include "text/yaml/source.hpp"

namespace text {

struct fact {
  std::string_view table;  ///< where its words are in the catalogue: "lint"
  std::string_view code;   ///< "not_a_mapping"
  severity level{};
  yaml::place location = {};
  std::vector<parameter> parameters;
  std::string allowed = {};  ///< what may stand there, where the finding itself knows; empty: the catalogue's words
};

/// The pattern of one part of its words: wrong, allowed, remedy, remedy_with_hint. Empty where there is none.
std::string_view pattern_of(const fact& fact, std::string_view part, language locale);
/// What a parameter stands for; empty where there is none of that name.
std::string_view value_of(const fact& fact, std::string_view name);

/// What is wrong, with field and value.
std::string wrong_of(const fact& fact, language locale);
/// What may stand there.
std::string allowed_of(const fact& fact, language locale);
/// What to do: `remedy_with_hint` where the parameter "hint" says what was meant, and there are such words.
std::string remedy_of(const fact& fact, language locale);

/// "What is wrong; allowed: what may stand there; what to do".
std::string message_of(const fact& fact, language locale);
std::string message_of(std::string_view wrong, std::string_view allowed, std::string_view remedy, language locale);

}  // namespace text
