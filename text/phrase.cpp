#include "text/phrase.hpp"

#include <ranges>

#include "text/messages.hpp"

namespace text {

phrase::phrase() = default;
phrase::phrase(std::string name) : key(std::move(name)) {}
phrase::phrase(std::string name, std::vector<phrase_argument> values)
    : key(std::move(name)), arguments(std::move(values)) {}

bool operator==(const phrase& left, const phrase& right) {
  return left.key == right.key && left.arguments == right.arguments;
}

namespace {

phrase joined_by(std::string_view key, std::vector<phrase> items) {
  std::erase_if(items, [](const phrase& item) { return item.empty(); });
  phrase out;
  for (auto& item : items | std::views::reverse)
    out = out.empty() ? std::move(item)
                      : phrase{std::string(key), {{"first", std::move(item)}, {"rest", std::move(out)}}};
  return out;
}

}  // namespace

phrase joined_by_commas(std::vector<phrase> items) { return joined_by("list.commas", std::move(items)); }
phrase joined_by_semicolons(std::vector<phrase> items) { return joined_by("list.semicolons", std::move(items)); }

phrase counted_phrase(std::size_t number, std::string_view key) {
  return {std::string(key) + (number == 1 ? ".one" : ".many"), {{"number", std::to_string(number)}}};
}

phrase_argument some_of(std::string_view placeholder, const std::vector<std::string>& items, std::size_t most) {
  return {placeholder, some_of(items, most, language::en), some_of(items, most, language::zh)};
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
