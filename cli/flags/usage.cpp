#include "cli/flags/usage.hpp"

#include <cstdlib>
#include <optional>

#include "text/messages.hpp"

namespace cli {
namespace {

using text::language;

/// A message of CLI11: what stands before, between and after its values.
struct usage_form {
  std::string_view key, before, middle, after;
};
constexpr usage_form usage_forms[] = {
    {"usage.value_missing", "", ": 1 required ", " missing"},
    {"usage.not_in_range", "", ": Value ", ""},
    {"usage.not_convertible", "Could not convert: ", " = ", ""},
    {"usage.not_in", "", " not in {", "}"},
    {"usage.excludes", "", " excludes ", ""},
    {"usage.requires", "", " requires ", ""},
    {"usage.required", "", "", " is required"},
};

/// Begins a refusal and ends its key. No one types it, and no words have it.
constexpr char refusal_mark = '\x1f';

/// NAME: MARK KEY MARK VALUE
std::optional<std::string> refused_words(std::string_view message, language locale) {
  const auto begin = message.find(refusal_mark);
  const auto end = begin == message.npos ? begin : message.find(refusal_mark, begin + 1);
  if (end == message.npos) return std::nullopt;
  auto name = message.substr(0, begin);
  if (name.ends_with(": ")) name.remove_suffix(2);
  return text::message(message.substr(begin + 1, end - begin - 1), locale,
                       {{"name", std::string(name)}, {"value", std::string(message.substr(end + 1))}});
}

/// The values of a message of this form.
std::optional<std::pair<std::string, std::string>> values_in(std::string_view message, const usage_form& form) {
  if (!message.starts_with(form.before) || !message.ends_with(form.after)) return std::nullopt;
  message.remove_prefix(form.before.size());
  message.remove_suffix(std::min(form.after.size(), message.size()));
  const auto place = message.find(form.middle);
  if (place == message.npos) return std::nullopt;
  if (form.middle.empty()) return std::pair(std::string(message), std::string());
  return std::pair(std::string(message.substr(0, place)), std::string(message.substr(place + form.middle.size())));
}

}  // namespace

language language_asked(const std::vector<std::string>& words) {
  constexpr std::string_view flag = "--lang";
  std::optional<std::string_view> named;
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == flag && i + 1 < words.size()) named = words[i + 1];
    if (words[i].starts_with("--lang=")) named = std::string_view(words[i]).substr(flag.size() + 1);
  }
  if (named) return *named == "zh" ? language::zh : language::en;
  for (const auto* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
    const auto* value = std::getenv(name);
    if (value && *value != 0) return std::string_view(value).starts_with("zh") ? language::zh : language::en;
  }
  return language::en;
}

std::string language_of_environment() { return language_asked({}) == language::zh ? "zh" : "en"; }

language language_of_refusal(const std::string& named) {
  return named.empty() ? language_asked({}) : named == "zh" ? language::zh : language::en;
}

std::string refusal(std::string_view key, std::string_view value) {
  return refusal_mark + std::string(key) + refusal_mark + std::string(value);
}

std::string usage_problem(std::string_view message, language locale) {
  if (auto words = refused_words(message, locale)) return *std::move(words);
  if (locale == language::en) return std::string(message);
  for (const auto& form : usage_forms)
    if (const auto values = values_in(message, form))
      return text::message(form.key, locale, {{"name", values->first}, {"value", values->second}});
  return std::string(message);
}

}  // namespace cli
