#include "text/phrase_code.hpp"

#include <algorithm>
#include <optional>

#include "text/escape.hpp"
#include "text/messages.hpp"
#include "text/quotation.hpp"

namespace text {
namespace {

constexpr std::string_view key_mark = ":cause", chinese_mark = ":zh";

bool is_known(std::string_view key) { return !pattern_of(key, language::en).empty(); }

std::string within_limits(const std::string& value) { return utf8_clean(value, longest_phrase_parameter); }

void add(const phrase& phrase, const std::string& prefix, phrase_code& out) {
  for (const auto& [name, values, inner] : phrase.arguments) {
    const auto path = prefix + name;
    if (is_known(inner.key)) {
      out.parameters[path + std::string(key_mark)] = inner.key;
      add(inner, path + ".", out);
      continue;
    }
    const auto& english = inner.empty() ? values[0] : inner.key;
    const auto& chinese = inner.empty() ? values[1] : inner.key;
    out.parameters[path] = within_limits(english);
    if (chinese != english) out.parameters[path + std::string(chinese_mark)] = within_limits(chinese);
  }
}

/// Every level has longer names than the one before, so it ends.
std::optional<phrase> phrase_at(const phrase_code& code, std::string_view key, const std::string& prefix) {
  if (!is_known(key)) return std::nullopt;
  phrase out{std::string(key)};
  const auto value_at = [&](const std::string& path) -> const std::string* {
    const auto match = code.parameters.find(path);
    return match == code.parameters.end() ? nullptr : &match->second;
  };
  for (const auto name : placeholders_of(pattern_of(key, language::en))) {
    if (std::ranges::find(out.arguments, name, &phrase_argument::name) != out.arguments.end()) continue;
    const auto path = prefix + std::string(name);
    if (const auto* inner_key = value_at(path + std::string(key_mark))) {
      auto inner = phrase_at(code, *inner_key, path + ".");
      if (!inner) return std::nullopt;
      out.arguments.push_back({name, *std::move(inner)});
      continue;
    }
    const auto* english = value_at(path);
    if (!english) return std::nullopt;
    const auto* chinese = value_at(path + std::string(chinese_mark));
    out.arguments.push_back({name, *english, chinese ? *chinese : *english});
  }
  return out;
}

}  // namespace

std::string message_text(const phrase& phrase) { return utf8_clean(words_of(phrase, language::en), longest_message); }

phrase_code code_of(const phrase& phrase) {
  phrase_code out;
  if (!is_known(phrase.key)) return out;
  out.cause = phrase.key;
  add(phrase, {}, out);
  return out.parameters.size() > most_phrase_parameters ? phrase_code() : out;
}

phrase phrase_of(const phrase_code& code, const std::string& message) {
  if (code.empty()) return message;
  auto out = phrase_at(code, code.cause, {});
  return out ? *std::move(out) : phrase(message);
}

phrase quotation_of(const phrase& message) {
  return message.empty() || is_known(message.key) ? message : phrase{"list.quotation", {{"text", message.key}}};
}

phrase quoted_phrase_of(const phrase_code& code, const std::string& message) {
  return quotation_of(phrase_of(code, message));
}

}  // namespace text
