#include "cli/lint/kubernetes_fields.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "text/nearest.hpp"

namespace cli::kubernetes_fields {
namespace {

constexpr std::string_view table_text =
#include "kubernetes_fields.txt.inc"
    ;

using types = std::map<std::string_view, object_type>;

form form_named(std::string_view word) {
  using enum form;
  constexpr std::array<std::pair<std::string_view, form>, 8> named{{{"text", text},
                                                                    {"time", time},
                                                                    {"flag", flag},
                                                                    {"int32", int32},
                                                                    {"int64", int64},
                                                                    {"quantity", quantity},
                                                                    {"int_or_text", int_or_text},
                                                                    {"object", object}}};
  const auto match = std::ranges::find(named, word, &std::pair<std::string_view, form>::first);
  return match == named.end() ? of_type : match->second;
}

/// The next word of the line, which is cut off.
std::string_view word_of(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const auto out = line.substr(0, end);
  line.remove_prefix(std::min(line.size(), end + 1));
  return out;
}

/// The name of its type is left in `of_name`, because that may stand further below.
known_field field_in(std::string_view line, std::string_view& of_name) {
  known_field out;
  out.name = word_of(line);
  out.required = out.name.ends_with('!');
  if (out.required) out.name.remove_suffix(1);
  auto word = word_of(line);
  if (word.starts_with("[]")) out.is_in = arrangement::list;
  if (word.starts_with("{}")) out.is_in = arrangement::mapping;
  if (out.is_in != arrangement::single) word.remove_prefix(2);
  out.is = form_named(word);
  if (out.is == form::of_type) of_name = word;
  while (!line.empty()) out.words.push_back(word_of(line));
  return out;
}

types read_table() {
  types out;
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> names;  // types of the fields, in their order
  object_type* current = nullptr;
  for (auto rest = table_text; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size());
    auto line = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    if (line.empty() || line.starts_with('#')) continue;
    if (!line.starts_with(' ')) {
      current = &out[line];
      current->name = line;
      names.emplace_back(line, std::vector<std::string_view>());
      continue;
    }
    std::string_view of_name;
    current->fields.push_back(field_in(line.substr(1), of_name));
    names.back().second.push_back(of_name);
  }
  for (const auto& [name, of_names] : names) {
    auto& fields = out.at(name).fields;
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (!of_names[i].empty()) fields[i].parts = &out.at(of_names[i]);
    std::ranges::sort(fields, {}, &known_field::name);
  }
  return out;
}

}  // namespace

const known_field* object_type::find(std::string_view field_name) const {
  const auto match = std::ranges::lower_bound(fields, field_name, {}, &known_field::name);
  return match != fields.end() && match->name == field_name ? &*match : nullptr;
}

const object_type* find(std::string_view name) {
  static const types table = read_table();
  const auto match = table.find(name);
  return match == table.end() ? nullptr : &match->second;
}

std::string meant(std::string_view name, const object_type& type) {
  constexpr std::array<std::string_view, 2> parts{"limits", "requests"};
  const bool is_container = type.name == "Container" || type.name == "EphemeralContainer";
  if (is_container || type.name == "PodSpec") {
    if (const auto part = text::nearest(name, parts); !part.empty())
      return "resources." + std::string(part) + (is_container ? "" : " of a container");
  }
  if (is_container && name.contains('/')) return "resources.limits[" + std::string(name) + "]";
  if (type.name == "ResourceRequirements" && name.contains('/')) return "limits[" + std::string(name) + "]";
  std::vector<std::string_view> legal;
  for (const auto& field : type.fields) legal.push_back(field.name);
  return std::string(text::nearest(name, legal));
}

}  // namespace cli::kubernetes_fields
