#include "kube/label_selector.hpp"

#include <algorithm>
#include <optional>

namespace kube {
namespace {

constexpr std::string_view blanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const auto begin = std::min(text.find_first_not_of(blanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

bool is_letter_or_figure(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

/// At most 63 letters, figures, '-', '_' and '.', with a letter or figure at both ends.
bool is_name(std::string_view text) {
  const auto allowed = [](char c) { return is_letter_or_figure(c) || c == '-' || c == '_' || c == '.'; };
  return !text.empty() && text.size() <= 63 && is_letter_or_figure(text.front()) && is_letter_or_figure(text.back()) &&
         std::ranges::all_of(text, allowed);
}

bool is_key(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return is_name(text);
  const auto domain = text.substr(0, slash);
  const auto allowed = [](char c) { return is_letter_or_figure(c) || c == '-' || c == '.'; };
  return !domain.empty() && domain.size() <= 253 && std::ranges::all_of(domain, allowed) &&
         is_name(text.substr(slash + 1));
}

/// The parts between commas that are not in brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (text[i] != ',' || depth > 0) continue;
    out.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  out.push_back(trimmed(text.substr(begin)));
  return out;
}

/// "x, y" of "(x, y)"; empty optional where it is no list.
std::optional<std::vector<std::string>> list_in(std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  std::vector<std::string> out;
  for (const auto value : parts_of(text.substr(1, text.size() - 2))) out.emplace_back(value);
  return out;
}

}  // namespace

std::expected<label_selector, std::string> label_selector::parse(std::string_view text) {
  label_selector out;
  if (trimmed(text).empty()) return out;
  for (const auto part : parts_of(text)) {
    const auto wrong = [&] {
      return std::unexpected("\"" + std::string(part) +
                             "\" is no part of a label selector: KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (A,B) or "
                             "KEY notin (A,B)");
    };
    requirement made;
    if (const auto sign = part.find('='); sign != std::string_view::npos) {
      const bool is_not = sign > 0 && part[sign - 1] == '!';
      const auto value = part.substr(part.substr(sign).starts_with("==") ? sign + 2 : sign + 1);
      made = {
          std::string(trimmed(part.substr(0, is_not ? sign - 1 : sign))), !is_not, true, {std::string(trimmed(value))}};
    } else if (part.starts_with('!')) {
      made = {std::string(trimmed(part.substr(1))), false, false, {}};
    } else if (const auto blank = part.find_first_of(blanks); blank != std::string_view::npos) {
      const auto rest = trimmed(part.substr(blank));
      const bool is_not = rest.starts_with("notin");
      if (!is_not && !rest.starts_with("in")) return wrong();
      const auto values = list_in(rest.substr(is_not ? 5 : 2));
      if (!values) return wrong();
      made = {std::string(part.substr(0, blank)), !is_not, true, *values};
    } else {
      made = {std::string(part), true, false, {}};
    }
    const auto is_value = [](const std::string& value) { return value.empty() || is_name(value); };
    if (!is_key(made.key) || !std::ranges::all_of(made.values, is_value)) return wrong();
    out.all_.push_back(std::move(made));
  }
  return out;
}

bool label_selector::selects(const packed_map& labels) const {
  return std::ranges::all_of(all_, [&](const requirement& wanted) {
    const auto value = labels.find(wanted.key);
    const bool has = value && (!wanted.has_values || std::ranges::find(wanted.values, *value) != wanted.values.end());
    return has == wanted.is_in;
  });
}

}  // namespace kube
