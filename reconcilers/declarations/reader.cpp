#include "reconcilers/declarations/reader.hpp"

#include <algorithm>
#include <array>

#include "reconcilers/declarations/parse.hpp"
#include "text/list.hpp"
#include "text/nearest.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace reconcilers::declarations {
namespace {

constexpr std::array<std::string_view, 2> booleans{"true", "false"};

/// "yes", "on" and "1" are too far from "true" for an edit distance, and yet everyone means it.
std::string_view meant(std::string_view value, std::span<const std::string_view> allowed) {
  if (allowed.size() == booleans.size() && std::ranges::equal(allowed, booleans)) {
    static constexpr std::array<std::string_view, 6> yes{"yes", "on", "1", "y", "enabled", "enable"};
    static constexpr std::array<std::string_view, 6> no{"no", "off", "0", "n", "disabled", "disable"};
    const auto is = [&](std::string_view word) {
      return word.size() == value.size() && text::distance(word, value) == 0;
    };
    if (std::ranges::any_of(yes, is)) return "true";
    if (std::ranges::any_of(no, is)) return "false";
  }
  return text::nearest(value, allowed);
}

}  // namespace

std::string data_path(std::string_view field) { return "data." + text::shown(field, 64); }
std::string label_path(std::string_view label) { return "metadata.labels[" + text::shown(label, 64) + "]"; }

finding& reader::say(error_code code, std::string field, std::string_view value) {
  auto& f = findings_.emplace_back();
  f.kind = code;
  f.config_map = config_map_.key;
  f.field = std::move(field);
  f.value = text::shown(value);
  return f;
}

void reader::drop(error_code code, std::string_view field) {
  std::erase_if(findings_, [&](const finding& f) { return f.kind == code && f.field == field; });
}

std::vector<finding> reader::findings() {
  sort(findings_);
  return std::move(findings_);
}

std::optional<std::string_view> reader::field(std::string_view name) const {
  const auto found = config_map_.field(name);
  if (!found) return std::nullopt;
  const auto value = text::trimmed(*found);
  return value.empty() ? std::nullopt : std::optional(value);
}

std::optional<std::string_view> reader::label(std::string_view name, std::string& path) {
  const auto old_name = std::string(names::alauda) + std::string(name);
  const auto new_name = std::string(names::cpaas) + std::string(name);
  const auto old_value = config_map_.label(old_name);
  const auto new_value = config_map_.label(new_name);
  if (old_value && new_value && *old_value != *new_value) {
    say(error_code::label_domains_differ, label_path(old_name), *old_value).other = text::shown(*new_value);
  }
  const bool mostly_new = new_value || (!old_value && config_map_.label(std::string(names::cpaas) + "type"));
  path = label_path(mostly_new ? new_name : old_name);
  return new_value ? new_value : old_value;
}

std::string reader::text(std::string_view name, std::size_t max_bytes) {
  const auto value = field(name);
  if (!value) return {};
  const auto looked_at = value->substr(0, max_bytes);
  if (value->size() > max_bytes) {
    auto& f = say(error_code::too_long, data_path(name));
    f.count = value->size();
    f.other = std::to_string(max_bytes);
    f.allowed = "<= " + f.other;
  } else if (!text::is_plain_text(looked_at)) {
    say(error_code::not_text, data_path(name), looked_at);
  }
  return text::shown(looked_at, max_bytes);
}

std::optional<std::string_view> reader::word(std::string path, std::optional<std::string_view> value,
                                             std::span<const std::string_view> allowed, error_code otherwise) {
  if (!value) return std::nullopt;
  const auto found = std::ranges::find(allowed, *value);
  if (found != allowed.end()) return *found;
  auto& f = say(otherwise, std::move(path), *value);
  f.allowed = text::joined(allowed);
  f.hint = meant(*value, allowed);
  return std::nullopt;
}

bool reader::flag(std::string_view name) {
  return word(data_path(name), field(name), booleans, error_code::flag_not_boolean) == "true";
}

std::vector<std::string> reader::resources(std::string_view name, std::string_view own_key) {
  std::vector<std::string> out;
  const auto value = field(name);
  if (!value) return out;
  std::size_t count = 0;
  std::size_t bad = 0;
  for (std::size_t begin = 0; begin <= value->size();) {
    const auto end = std::min(value->find(',', begin), value->size());
    const auto item = text::trimmed(value->substr(begin, end - begin));
    begin = end + 1;
    if (item.empty() || ++count > max_list_items) continue;
    if (text::is_extended_resource(item)) {
      if (item == own_key)
        say(error_code::list_names_itself, data_path(name), item);
      else
        out.emplace_back(item);
    } else if (++bad <= max_unknown_fields) {
      auto& f = say(error_code::list_item_malformed, data_path(name), item);
      if (const auto lower = text::lower_case(item.substr(0, 320)); text::is_extended_resource(lower)) f.hint = lower;
    }
  }
  if (count > max_list_items) say(error_code::list_too_long, data_path(name)).count = count;
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

void reader::unknown_fields(std::span<const std::string_view> known) {
  // In the order of the names, so that which of them are named does not depend on the order of the wire.
  std::vector<std::string_view> unknown;
  std::size_t more = 0;
  for (const auto& [name, value] : config_map_.data) {
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto match = std::ranges::lower_bound(unknown, name);
    unknown.insert(match, name);
    if (unknown.size() > max_unknown_fields) unknown.pop_back(), ++more;
  }
  for (const auto name : unknown) {
    const auto near = text::nearest(name, known);
    // "limit" where "limits" is missing is one mistake, not two.
    const auto absent = [&](const finding& f) {
      return f.field == data_path(near) && f.value.empty() && f.hint.empty();
    };
    const auto match = near.empty() || field(near) ? findings_.end() : std::ranges::find_if(findings_, absent);
    if (match != findings_.end() && match->kind == error_code::missing) {
      match->hint = data_path(name);
      continue;
    }
    if (match != findings_.end()) findings_.erase(match);
    auto& f = say(error_code::unknown_field, data_path(name));
    if (!near.empty()) f.hint = data_path(near);
  }
  if (more > 0) say(error_code::more_unknown_fields, "data").count = more;
  if (config_map_.binary > 0) say(error_code::binary_data, "binaryData").count = config_map_.binary;
}

void reader::place(std::string_view ns) {
  if (config_map_.key.ns != ns) {
    auto& f = say(error_code::wrong_namespace, "metadata.namespace", config_map_.key.ns);
    f.hint = f.allowed = std::string(ns);
  }
  if (!config_map_.key.name.starts_with("cf-crl-"))
    say(error_code::name_without_prefix, "metadata.name", config_map_.key.name);
}

}  // namespace reconcilers::declarations
