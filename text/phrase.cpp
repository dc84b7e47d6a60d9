#include "text/phrase.hpp"

#include "text/messages.hpp"

namespace text {

phrase::phrase() = default;
phrase::phrase(std::string name) : key(std::move(name)) {}
phrase::phrase(std::string name, std::vector<phrase_argument> values)
    : key(std::move(name)), arguments(std::move(values)) {}

bool operator==(const phrase& left, const phrase& right) {
  return left.key == right.key && left.arguments == right.arguments;
}

std::string words_of(const phrase& phrase, language locale) {
  const auto pattern = pattern_of(phrase.key, locale);
  if (pattern.empty()) return phrase.key;
  std::vector<parameter> parameters;
  for (const auto& [name, values, inner] : phrase.arguments)
    parameters.push_back({name, inner.empty() ? values[static_cast<std::size_t>(locale)] : words_of(inner, locale)});
  return filled(pattern, parameters);
}

}  // namespace text
