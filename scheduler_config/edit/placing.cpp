#include "scheduler_config/edit/placing.hpp"

#include <algorithm>

#include "text/text.hpp"
#include "text/yaml/writer.hpp"

namespace reconcilers::scheduler_config {

finding no_place(yaml::place at, std::string_view field) {
  return {.what = code::no_safe_place, .at = at, .field = std::string(field)};
}

std::optional<nlohmann::json> tree_of(const document& of) { return of.root ? yaml::to_json(*of.root) : std::nullopt; }

nlohmann::json tree_of(const nlohmann::ordered_json& of) {
  const auto read = yaml::parse(yaml::write(of));
  return *yaml::to_json(*read->documents.at(0));
}

std::expected<insertion, finding> below_key(const document& of, const yaml::node::entry& entry, std::string_view field,
                                            const nlohmann::ordered_json& lines) {
  const std::string_view text = of.text;
  const auto key = of.base + entry.key->from;
  const auto end = text.find('\n', key);
  const auto line = text.substr(key, end == text.npos ? text.npos : end - key);
  const auto colon = line.find(':');
  const auto& value = *entry.value;
  const bool empty = value.is == yaml::node::shape::null;
  const bool below = !value.flow && (value.sequence() || value.mapping()) && of.base + value.from > key;
  if (end == text.npos || colon == line.npos || !nothing_but_properties(line.substr(colon + 1)) || (!empty && !below))
    return std::unexpected(no_place(entry.key->at, field));
  auto margin = static_cast<std::size_t>(entry.key->at.column - 1);
  if (empty && lines.is_object()) margin += 2;
  if (!empty) {
    const auto first = first_word(text.substr(end + 1));
    if (!first || (value.sequence() && first->second != '-')) return std::unexpected(no_place(entry.key->at, field));
    margin = first->first;
  }
  return insertion{end + 1, marked(yaml::write(lines), margin, line_break_of(text), false)};
}

std::expected<insertion, finding> after_line(const document& of, const yaml::node& last, std::size_t margin,
                                             std::string_view field, const nlohmann::ordered_json& lines) {
  const std::string_view text = of.text;
  const auto end = text.find('\n', of.base + last.from);
  if (end == text.npos) return std::unexpected(no_place(last.at, field));
  return insertion{end + 1, marked(yaml::write(lines), margin, line_break_of(text), false)};
}

std::expected<std::string, finding> without_marked(std::string_view text) {
  std::string out;
  yaml::place at;
  bool inside = false;
  std::size_t cuts = 0;
  for (auto rest = text; !rest.empty(); ++at.line) {
    const auto line = take_line(rest);
    const auto word = crl::trimmed(line);
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
  if (inside) return std::unexpected(finding{.what = code::ours_was_edited, .at = {at.line - 1, 1}});
  if (cuts == 0) return std::unexpected(finding{.what = code::nothing_of_ours});
  return out;
}

}  // namespace reconcilers::scheduler_config
