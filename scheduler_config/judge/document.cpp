#include "scheduler_config/judge/document.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "text/quotation.hpp"
#include "text/text.hpp"

namespace scheduler_config {
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
    const auto position = text.size() - rest.size();
    const auto line = next_line(rest);
    const auto words = text::trimmed(line);
    if (begun && is_mark(line, "---")) return {position, true};
    if (begun && is_mark(line, "...")) return {position, text::trimmed(rest).size() > 0};
    if (is_mark(line, "---")) begun = true;
    if (!words.empty() && !words.starts_with('#') && !line.starts_with('%')) begun = true;
  }
  return {text.size(), false};
}

text::yaml::place place_of(std::string_view text, std::size_t index) {
  text::yaml::place out;
  for (const char c : text.substr(0, index)) {
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

/// Faults that are limits of this program: kube-scheduler may read such a file.
bool is_limit(std::string_view fault) {
  constexpr std::array<std::string_view, 3> limits{"yaml.fault.too_large", "yaml.fault.too_deep", "yaml.fault.merges"};
  return std::ranges::find(limits, fault) != limits.end();
}

std::optional<finding> not_json(std::string_view text) {
  try {
    static_cast<void>(nlohmann::json::parse(text, [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      if (depth > 200) throw std::length_error("nested too deep");
      return false;
    }));
  } catch (const nlohmann::json::parse_error& wrong) {
    const auto place = place_of(text, std::min(text.size(), wrong.byte > 0 ? wrong.byte - 1 : 0));
    std::string_view reason = wrong.what();
    if (const auto begin = reason.rfind(": "); begin != reason.npos) reason.remove_prefix(begin + 2);
    return finding{.issue = code::not_json, .location = place, .other = std::string(reason)};
  } catch (const nlohmann::json::out_of_range& wrong) {  // a number beyond every type; it does not say where
    std::string_view reason = wrong.what();
    if (const auto begin = reason.rfind("] "); begin != reason.npos) reason.remove_prefix(begin + 2);
    return finding{.issue = code::not_json, .other = text::shown(reason)};
  } catch (const std::length_error&) {
    return finding{.issue = code::beyond_limits, .terms = {{"other", phrase_of(term::nested_too_deep)}}};
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
  auto source = text::yaml::parse(std::string(content.substr(0, end)));
  if (!source)
    return std::unexpected(finding{.issue = is_limit(source.error().message) ? code::beyond_limits : code::not_yaml,
                                   .location = source.error().location,
                                   .terms = {{"other", text::quotation_of(text::phrase(source.error().message))}}});
  out.source = std::move(*source);
  if (!out.source.documents.empty()) out.root = out.source.documents.front();
  return out;
}

json_type json_type_of(const text::yaml::node& node) {
  if (node.sequence()) return json_type::list;
  if (node.mapping()) return json_type::mapping;
  switch (text::yaml::type_of(node)) {
    case text::yaml::type::null:
      return json_type::null;
    case text::yaml::type::boolean:
      return json_type::boolean;
    case text::yaml::type::integer:
    case text::yaml::type::real:
      return json_type::number;
    case text::yaml::type::text:
      break;
  }
  return json_type::text;
}

std::optional<std::int64_t> integer_of(const text::yaml::node* node) {
  if (!node || json_type_of(*node) != json_type::number) return std::nullopt;
  const auto text = text::yaml::canonical(*node);
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

std::string shown_value(const text::yaml::node& node) {
  switch (json_type_of(node)) {
    case json_type::null:
      return "null";
    case json_type::list:
    case json_type::mapping:
      return {};
    case json_type::text:
      return "\"" + text::shown(node.text) + "\"";
    case json_type::boolean:
    case json_type::number:
      break;
  }
  return text::shown(text::yaml::canonical(node));
}

std::vector<text::phrase_argument> terms_of(const text::yaml::node& node) {
  const auto is = json_type_of(node);
  if (is != json_type::list && is != json_type::mapping) return {};
  return {{"value", phrase_of(is == json_type::list ? term::list : term::mapping)}};
}

std::string below(std::string_view path, std::string_view key) {
  return (path.empty() ? std::string() : std::string(path) + ".") + text::shown(key, 64);
}
std::string below(std::string_view path, std::size_t index) {
  return std::string(path) + "[" + std::to_string(index) + "]";
}

}  // namespace scheduler_config
