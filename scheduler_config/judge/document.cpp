#include "scheduler_config/judge/document.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/text.hpp"

namespace reconcilers::scheduler_config {
namespace {

std::string_view next_line(std::string_view& rest) {
  const auto end = rest.find('\n');
  const auto line = rest.substr(0, end == rest.npos ? rest.size() : end + 1);
  rest.remove_prefix(line.size());
  return line;
}

bool is_mark(std::string_view line, std::string_view mark) {
  return line.starts_with(mark) && (line.size() == 3 || std::string_view(" \t\r\n").contains(line[3]));
}

/// Where the first document ends: nothing but comments, directives and its own "---" may stand before its content.
std::pair<std::size_t, bool> end_of_first(std::string_view text) {
  bool begun = false;
  for (auto rest = text; !rest.empty();) {
    const auto at = text.size() - rest.size();
    const auto line = next_line(rest);
    const auto words = crl::trimmed(line);
    if (begun && is_mark(line, "---")) return {at, true};
    if (begun && is_mark(line, "...")) return {at, crl::trimmed(rest).size() > 0};
    if (is_mark(line, "---")) begun = true;
    if (!words.empty() && !words.starts_with('#') && !line.starts_with('%')) begun = true;
  }
  return {text.size(), false};
}

yaml::place place_of(std::string_view text, std::size_t at) {
  yaml::place out;
  for (const char c : text.substr(0, at)) {
    if (c == '\n')
      ++out.line, out.column = 1;
    else
      out.column += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }
  return out;
}

/// Go decides so which of its readers gets the bytes; apimachinery/pkg/util/yaml IsJSONBuffer.
bool is_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n\v\f");
  return first != text.npos && text[first] == '{';
}

std::optional<finding> not_json(std::string_view text) {
  try {
    static_cast<void>(nlohmann::json::parse(text, [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      if (depth > 200) throw std::length_error("nested too deep");
      return false;
    }));
  } catch (const nlohmann::json::parse_error& wrong) {
    const auto at = place_of(text, std::min(text.size(), wrong.byte > 0 ? wrong.byte - 1 : 0));
    std::string_view why = wrong.what();
    if (const auto begin = why.rfind(": "); begin != why.npos) why.remove_prefix(begin + 2);
    return finding{.what = code::not_json, .at = at, .other = std::string(why)};
  } catch (const nlohmann::json::out_of_range& wrong) {  // a number beyond every type; it does not say where
    std::string_view why = wrong.what();
    if (const auto begin = why.rfind("] "); begin != why.npos) why.remove_prefix(begin + 2);
    return finding{.what = code::not_json, .other = crl::shown(why)};
  } catch (const std::length_error& wrong) {
    return finding{.what = code::not_json, .other = wrong.what()};
  }
  return std::nullopt;
}

}  // namespace

std::expected<document, finding> parse_document(std::string_view text) {
  document out;
  out.text = text;
  out.base = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  const auto content = text.substr(out.base);
  out.json = is_json(content);
  if (out.json) {
    if (auto wrong = not_json(content)) return std::unexpected(std::move(*wrong));
  }
  const auto [end, more] = out.json ? std::pair(content.size(), false) : end_of_first(content);
  out.end = out.base + end;
  if (more) out.more = place_of(content, end);
  auto source = yaml::parse(std::string(content.substr(0, end)));
  if (!source)
    return std::unexpected(
        finding{.what = code::not_yaml, .at = source.error().at, .other = std::move(source.error().what)});
  out.source = std::move(*source);
  if (!out.source.documents.empty()) out.root = out.source.documents.front();
  return out;
}

json_type json_type_of(const yaml::node& of) {
  if (of.sequence()) return json_type::list;
  if (of.mapping()) return json_type::mapping;
  switch (yaml::type_of(of)) {
    case yaml::type::null:
      return json_type::null;
    case yaml::type::boolean:
      return json_type::boolean;
    case yaml::type::integer:
    case yaml::type::real:
      return json_type::number;
    case yaml::type::text:
      break;
  }
  return json_type::text;
}

std::optional<std::int64_t> integer_of(const yaml::node* of) {
  if (!of || json_type_of(*of) != json_type::number) return std::nullopt;
  const auto text = yaml::canonical(*of);
  std::int64_t whole = 0;
  const auto* const end = text.data() + text.size();
  if (const auto [stopped, wrong] = std::from_chars(text.data(), end, whole); wrong == std::errc{} && stopped == end)
    return whole;
  std::string digits = text;
  std::erase(digits, '_');
  const double real = std::strtod(digits.c_str(), nullptr);
  if (!std::isfinite(real) || real != std::floor(real) || std::abs(real) >= 9.2e18) return std::nullopt;
  return static_cast<std::int64_t>(real);
}

std::string shown_value(const yaml::node& of) {
  switch (json_type_of(of)) {
    case json_type::null:
      return "null";
    case json_type::list:
      return "a list";
    case json_type::mapping:
      return "a mapping";
    case json_type::text:
      return "\"" + crl::shown(of.text) + "\"";
    case json_type::boolean:
    case json_type::number:
      break;
  }
  return crl::shown(yaml::canonical(of));
}

std::string below(std::string_view path, std::string_view key) {
  return (path.empty() ? std::string() : std::string(path) + ".") + crl::shown(key, 64);
}
std::string below(std::string_view path, std::size_t index) {
  return std::string(path) + "[" + std::to_string(index) + "]";
}

}  // namespace reconcilers::scheduler_config
