#include "reconcilers/declarations/finding.hpp"

#include <algorithm>
#include <tuple>

#include "reconcilers/declarations/texts.hpp"

namespace reconcilers::declarations {
namespace {

/// {field} {value} {allowed} {hint} {other} {count}, in one pass: what people wrote is never taken for a placeholder.
std::string filled(std::string_view pattern, const finding& f, std::string_view allowed) {
  std::string out;
  while (!pattern.empty()) {
    const auto open = pattern.find('{');
    out += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = pattern.find('}', open);
    const auto name = pattern.substr(open + 1, close - open - 1);
    if (name == "field")
      out += f.field;
    else if (name == "value")
      out += f.value;
    else if (name == "allowed")
      out += allowed;
    else if (name == "hint")
      out += f.hint;
    else if (name == "other")
      out += f.other;
    else if (name == "count")
      out += std::to_string(f.count);
    pattern.remove_prefix(close + 1);
  }
  return out;
}

}  // namespace

void sort(std::vector<finding>& findings) {
  const auto rank = [](const finding& f) {
    return std::tuple(severity_of(f), f.kind, std::string_view(f.field), std::string_view(f.value),
                      std::string_view(f.other));
  };
  std::ranges::sort(findings, {}, rank);
}

std::string_view to_string(text::severity s) noexcept { return s == text::severity::error ? "error" : "warning"; }
std::string_view to_string(error_code c) noexcept { return texts_of(c).name; }
text::severity severity_of(error_code c) noexcept { return texts_of(c).level; }

bool has_error(std::span<const finding> findings) {
  return std::ranges::any_of(findings, [](const finding& f) { return severity_of(f) == text::severity::error; });
}

std::string allowed_of(const finding& f, text::language language) {
  return f.allowed.empty() ? std::string(texts_of(f.kind).in(language).allowed) : f.allowed;
}

std::string remedy_of(const finding& f, text::language language) {
  const auto& words = texts_of(f.kind).in(language);
  return filled(f.hint.empty() || words.remedy_with_hint.empty() ? words.remedy : words.remedy_with_hint, f,
                allowed_of(f, language));
}

std::string message_of(const finding& f, text::language locale) {
  const auto& words = texts_of(f.kind).in(locale);
  const auto allowed = allowed_of(f, locale);
  const bool chinese = locale == text::language::zh;
  std::string out = filled(words.wrong, f, allowed);
  if (!allowed.empty()) out += (chinese ? "；允许：" : "; allowed: ") + allowed;
  return out + (chinese ? "；" : "; ") + remedy_of(f, locale);
}

}  // namespace reconcilers::declarations
