#include "text/fact.hpp"

#include <algorithm>

namespace text {

std::string_view pattern_of(const fact& fact, std::string_view part, language locale) {
  std::string key(fact.table);
  key.append(".").append(fact.code).append(".").append(part);
  return pattern_of(key, locale);
}

std::string_view value_of(const fact& fact, std::string_view name) {
  const auto match = std::ranges::find(fact.parameters, name, &parameter::name);
  return match == fact.parameters.end() ? std::string_view() : std::string_view(match->value);
}

std::string wrong_of(const fact& fact, language locale) {
  return filled(pattern_of(fact, "wrong", locale), fact.parameters);
}

std::string allowed_of(const fact& fact, language locale) {
  return fact.allowed.empty() ? filled(pattern_of(fact, "allowed", locale), fact.parameters) : fact.allowed;
}

std::string remedy_of(const fact& fact, language locale) {
  const auto guessed =
      value_of(fact, "hint").empty() ? std::string_view() : pattern_of(fact, "remedy_with_hint", locale);
  return filled(guessed.empty() ? pattern_of(fact, "remedy", locale) : guessed, fact.parameters);
}

std::string message_of(const fact& fact, language locale) {
  return message_of(wrong_of(fact, locale), allowed_of(fact, locale), remedy_of(fact, locale), locale);
}

std::string message_of(std::string_view wrong, std::string_view allowed, std::string_view remedy, language locale) {
  std::string out(wrong);
  if (!allowed.empty()) out += message("finding.allowed", locale) + std::string(allowed);
  return out + message("finding.remedy", locale) + std::string(remedy);
}

}  // namespace text
