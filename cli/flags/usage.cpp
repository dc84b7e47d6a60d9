#include "cli/flags/usage.hpp"

#include <cstdlib>
#include <optional>

#include "cli/flags/flags.hpp"
#include "cli/flags/subcommands.hpp"
#include "text/messages.hpp"

namespace cli {
namespace {

using text::language;

/// A message of CLI11: what stands before, between and after its values.
struct usage_form {
  std::string_view key, before, middle, after;
};
constexpr usage_form usage_forms[] = {
    {"usage.no_month", "", ": ", " is no month such as 2026-11"},
    {"usage.value_missing", "", ": 1 required ", " missing"},
    {"usage.not_decimal", "", ": Value ", not_decimal},
    {"usage.not_in_range", "", ": Value ", ""},
    {"usage.not_a_namespace", "", ": \"", not_a_namespace},
    {"usage.with_subcommand", "", without_subcommand, leave_one_out},
    {"usage.not_convertible", "Could not convert: ", " = ", ""},
    {"usage.not_in", "", " not in {", "}"},
    {"usage.excludes", "", " excludes ", ""},
    {"usage.requires", "", " requires ", ""},
    {"usage.required", "", "", " is required"},
};

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

std::string usage_problem(std::string_view message, language locale) {
  if (locale == language::en) return std::string(message);
  for (const auto& form : usage_forms)
    if (const auto values = values_in(message, form))
      return text::message(form.key, locale, {{"name", values->first}, {"value", values->second}});
  return std::string(message);
}

}  // namespace cli
