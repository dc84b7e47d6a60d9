#include "scheduler_config/edit/placing.hpp"

#include <algorithm>

#include "text/text.hpp"
#include "text/yaml/writer.hpp"

namespace scheduler_config {

finding no_place(text::yaml::place place, std::string_view field) {
  return {.issue = code::no_safe_place, .location = place, .field = std::string(field)};
}

std::optional<nlohmann::json> tree_of(const document& document) {
  return document.root ? text::yaml::to_json(*document.root) : std::nullopt;
}

nlohmann::json tree_of(const nlohmann::ordered_json& object) {
  const auto read = text::yaml::parse(text::yaml::write(object));
  return *text::yaml::to_json(*read->documents.at(0));
}

std::expected<insertion, finding> below_key(const document& document, const text::yaml::node::entry& entry,
                                            std::string_view field, const nlohmann::ordered_json& lines) {
  const std::string_view text = document.text;
  const auto key = document.base + entry.key->offset;
  const auto end = text.find('\n', key);
  const auto line = text.substr(key, end == text.npos ? text.npos : end - key);
  const auto colon = line.find(':');
  const auto& value = *entry.value;
  const bool empty = value.is == text::yaml::node::shape::null;
  const bool below = !value.flow && (value.sequence() || value.mapping()) && document.base + value.offset > key;
  if (end == text.npos || colon == line.npos || !nothing_but_properties(line.substr(colon + 1)) || (!empty && !below))
    return std::unexpected(no_place(entry.key->location, field));
  auto margin = static_cast<std::size_t>(entry.key->location.column - 1);
  if (empty && lines.is_object()) margin += 2;
  if (!empty) {
    const auto first = first_word(text.substr(end + 1));
    if (!first || (value.sequence() && first->second != '-'))
      return std::unexpected(no_place(entry.key->location, field));
    margin = first->first;
  }
  return insertion{end + 1, marked(text::yaml::write(lines), margin, line_break_of(text), false)};
}

std::expected<insertion, finding> after_line(const document& document, const text::yaml::node& last, std::size_t margin,
                                             std::string_view field, const nlohmann::ordered_json& lines) {
  const std::string_view text = document.text;
  const auto end = text.find('\n', document.base + last.offset);
  if (end == text.npos) return std::unexpected(no_place(last.location, field));
  return insertion{end + 1, marked(text::yaml::write(lines), margin, line_break_of(text), false)};
}

std::expected<std::string, finding> without_marked(std::string_view text) {
  std::string out;
  text::yaml::place place;
  bool inside = false;
  std::size_t cuts = 0;
  for (auto rest = text; !rest.empty(); ++place.line) {
    const auto line = take_line(rest);
    const auto word = text::trimmed(line);
    if (!inside && (word == begin_mark || word == begin_mark_after_break)) {
      inside = true;
      ++cuts;
      const auto line_break = line_break_of(text).size();
      if (word == begin_mark_after_break) out.resize(out.size() - std::min(out.size(), line_break));
    } else if (inside && word == end_mark) {
      inside = false;
    } else if (!inside) {
      out += line;
    }
  }
  if (inside) return std::unexpected(finding{.issue = code::ours_was_edited, .location = {place.line - 1, 1}});
  if (cuts == 0) return std::unexpected(finding{.issue = code::nothing_of_ours});
  return out;
}

}  // namespace scheduler_config
