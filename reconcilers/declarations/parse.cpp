#include "reconcilers/declarations/parse.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "kube/quantity.hpp"
#include "reconcilers/declarations/reader.hpp"
#include "reconcilers/declarations/vocabulary.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace reconcilers::declarations {
namespace {

constexpr std::array<std::string_view, 16> fields{"key",
                                                  "dataType",
                                                  "defaultValue",
                                                  "limits",
                                                  "requests",
                                                  "group",
                                                  "descriptionEn",
                                                  "descriptionZh",
                                                  "labelEn",
                                                  "labelZh",
                                                  "groupI18n",
                                                  "resourceUnit",
                                                  "relatedResources",
                                                  "excludeResources",
                                                  "ignoreNodeCheck",
                                                  "runtimeClassName"};
constexpr std::array<std::string_view, 3> device_fields{"deviceName", "nodeLabelKey", "nodeLabelValue"};

constexpr std::array<std::string_view, 3> limits_words{"disabled", "required", "optional"};
constexpr std::array<std::string_view, 4> requests_words{"disabled", "required", "optional", "fromLimits"};
constexpr std::array<std::string_view, 2> booleans{"true", "false"};

use use_of(std::string_view word) {
  if (word == "disabled") return use::disabled;
  if (word == "required") return use::required;
  return word == "fromLimits" ? use::from_limits : use::optional;
}

void read_key(reader& reader, declaration& declaration) {
  const auto value = reader.field("key");
  if (!value) {
    reader.say(error_code::missing, "data.key").allowed = "<domain>/<name>";
    return;
  }
  switch (text::fault_of_extended_resource(*value)) {
    case text::resource_name_fault::none:
      declaration.key = *value;
      return;
    case text::resource_name_fault::no_domain:
      reader.say(error_code::key_without_domain, "data.key", *value);
      return;
    case text::resource_name_fault::native_domain:
    case text::resource_name_fault::requests:
      reader.say(error_code::key_native, "data.key", *value);
      return;
    case text::resource_name_fault::bad_domain:
    case text::resource_name_fault::bad_name:
      break;
  }
  auto& f = reader.say(error_code::key_malformed, "data.key", *value);
  const auto start = value->substr(0, 320);
  const auto slash = start.find('/');
  const auto lower = text::lower_case(start.substr(0, slash)) + std::string(start.substr(slash));
  if (text::is_extended_resource(lower)) f.hint = text::shown(lower);
}

void read_group(reader& reader, declaration& declaration) {
  std::string path;
  const auto label = reader.label("group", path);
  const auto data = reader.field("group");
  if (label && !label->empty() && data && *label != *data) {
    reader.say(error_code::group_differs, "data.group", *data).other = text::shown(*label);
    reader.drop(error_code::label_domains_differ, label_path(std::string(names::alauda) + "group"));
    return;
  }
  const bool has_label = label && !label->empty();
  if (!has_label && !data) {
    reader.say(error_code::group_absent, "data.group");
    return;
  }
  if (!has_label)
    reader.say(error_code::group_missing, path).other = text::shown(*data);
  else if (!data)
    reader.say(error_code::group_missing, "data.group").other = text::shown(*label);
  const auto group = data ? *data : *label;
  if (text::is_label_value(group))
    declaration.group = group;
  else
    reader.say(error_code::group_malformed, "data.group", group);
}

void read_enabled(reader& reader, declaration& declaration) {
  std::string path;
  const auto value = reader.label("enabled", path);
  if (!value) {
    reader.say(error_code::enabled_missing, path);
    declaration.enabled = true;
    return;
  }
  const auto word = reader.word(path, *value, booleans, error_code::not_in_vocabulary);
  if (!word) reader.drop(error_code::label_domains_differ, label_path(std::string(names::alauda) + "enabled"));
  declaration.enabled = word == "true";
  declaration.switched_off = word == "false";
}

/// Limits and requests, alone and together.
void read_use(reader& reader, declaration& declaration) {
  const auto limits_value = reader.field("limits");
  const auto requests_value = reader.field("requests");
  if (!limits_value) reader.say(error_code::missing, "data.limits").allowed = "disabled, required, optional";
  if (!requests_value)
    reader.say(error_code::missing, "data.requests").allowed = "disabled, required, optional, fromLimits";
  const auto limits = reader.word("data.limits", limits_value, limits_words, error_code::not_in_vocabulary);
  const auto requests = reader.word("data.requests", requests_value, requests_words, error_code::not_in_vocabulary);
  if (limits) declaration.limits = use_of(*limits);
  if (requests) declaration.requests = use_of(*requests);
  if (!limits || !requests || declaration.limits != use::disabled) return;
  if (declaration.requests == use::required) {
    reader.say(error_code::impossible_requests, "data.requests", *requests);
  } else {
    reader.say(error_code::unusable, "data.limits", *limits).other = *requests;
  }
}

/// Bytes that "Mi" or "MiB" stands for; 0 for a text that is no unit of memory.
std::int64_t bytes_of(std::string_view unit) {
  if (unit.ends_with('B')) unit.remove_suffix(1);
  const auto bytes = unit.size() == 2 && unit.ends_with('i') ? kube::parse_quantity("1" + std::string(unit)) : 0;
  return bytes.value_or(0);
}

/// What "4k", "1e3" or "4Gi" is in the unit of the resource. "20Mi" of a resource whose unit is Mi, or no memory,
/// is 20.
/// @param unit bytes; 0: not memory, or not known
std::int64_t number_meant(std::string_view text, std::int64_t digits, std::int64_t unit) {
  const auto value = kube::parse_quantity(text);
  if (!value || *value <= 0) return digits;
  const auto suffix = text.substr(text.find_first_not_of("0123456789"));
  const bool thousands = suffix == "k" || suffix == "Ki" || std::string_view("eE").contains(suffix.front());
  if (thousands && suffix != "E" && suffix != "Ei") return *value;
  return unit == 0 ? digits : *value / unit + (*value % unit > 0 ? 1 : 0);
}

void read_default(reader& reader, declaration& declaration) {
  const auto value = reader.field("defaultValue");
  if (!value) return;
  std::int64_t number = 0;
  const auto* const end = value->data() + value->size();
  const bool figure = value->front() >= '0' && value->front() <= '9';
  const auto [position, failed] = std::from_chars(value->data(), end, number);
  if (!figure || failed != std::errc{} || position != end) {
    auto& f = reader.say(error_code::default_not_a_number, "data.defaultValue", *value);
    // "0.5" and "1,000" mean nothing we could round to.
    const bool unit_follows =
        number > 0 && failed == std::errc{} && *position != '.' && *position != ',' && *position != '_';
    const auto unit = reader.field("resourceUnit");
    const auto* known = quota::resource_key_of(declaration.key);
    const auto bytes = unit ? bytes_of(*unit) : known ? known->unit_mib << 20 : 0;
    if (unit_follows) f.hint = std::to_string(number_meant(*value, number, bytes));
    return;
  }
  declaration.default_value = number;
  if (const auto* words = vocabulary_of(declaration.key);
      words && words->legal.limited() && (number == 0 ? words->legal.whole > 0 : !words->legal.allow(number))) {
    auto& f = reader.say(error_code::default_not_legal, "data.defaultValue", *value);
    f.allowed = words->legal.words;
    f.hint = std::to_string(words->legal.nearest(std::max<std::int64_t>(number, 1)));
  }
  if (declaration.limits != use::disabled || declaration.requests == use::required) return;
  reader.say(error_code::default_unused, "data.defaultValue", *value);
  reader.drop(error_code::unusable, "data.limits");
}

void read_group_names(reader& reader, declaration& declaration) {
  const auto value = reader.field("groupI18n");
  if (!value) return;
  const auto text_of = [](const nlohmann::json& object, const char* name) {
    const auto match = object.find(name);
    return match != object.end() && match->is_string() ? text::shown(match->get_ref<const std::string&>(), 256)
                                                       : std::string();
  };
  if (value->size() <= max_text_bytes) {
    const auto json = nlohmann::json::parse(*value, nullptr, false);
    if (json.is_object()) {
      declaration.group_en = text_of(json, "en");
      declaration.group_zh = text_of(json, "zh");
      if (!declaration.group_en.empty() && !declaration.group_zh.empty()) return;
    }
  }
  reader.say(error_code::group_names_malformed, "data.groupI18n", *value);
}

void read_extras(reader& reader, declaration& declaration) {
  if (const auto type = reader.field("dataType"); type != "integer")
    reader.say(error_code::data_type, "data.dataType", type.value_or(""));
  declaration.description_en = reader.text("descriptionEn", max_text_bytes);
  declaration.description_zh = reader.text("descriptionZh", max_text_bytes);
  declaration.label_en = reader.text("labelEn", 256);
  declaration.label_zh = reader.text("labelZh", 256);
  read_group_names(reader, declaration);
  if (const auto unit = reader.field("resourceUnit")) {
    const bool plain = unit->size() <= 16 && text::is_plain_text(*unit) && !text::has_cjk(*unit) &&
                       unit->find_first_of(" \t\n") == std::string_view::npos;
    if (plain)
      declaration.unit = *unit;
    else
      reader.say(error_code::unit_not_plain, "data.resourceUnit", *unit);
  }
  declaration.related = reader.resources("relatedResources", declaration.key);
  declaration.excluded = reader.resources("excludeResources", declaration.key);
  std::size_t both = 0;
  for (const auto& key : declaration.excluded) {
    if (std::ranges::binary_search(declaration.related, key) && ++both <= max_unknown_fields) {
      reader.say(error_code::related_and_excluded, "data.excludeResources", key);
    }
  }
  declaration.ignore_node_check = reader.flag("ignoreNodeCheck");
  if (const auto runtime = reader.field("runtimeClassName")) {
    if (text::is_object_name(*runtime)) {
      declaration.runtime_class = *runtime;
    } else {
      auto& f = reader.say(error_code::runtime_class_malformed, "data.runtimeClassName", *runtime);
      if (const auto lower = text::lower_case(runtime->substr(0, 256)); text::is_object_name(lower))
        f.hint = text::shown(lower);
    }
  }
}

dialect dialect_of(const config_map_view& config_map) {
  const auto is_type = [&](std::string_view domain) {
    return config_map.label(std::string(domain) + "type") == names::type_value;
  };
  if (!is_type(names::cpaas)) return dialect::alauda;
  return is_type(names::alauda) ? dialect::both : dialect::cpaas;
}

}  // namespace

std::string_view to_string(use u) noexcept { return requests_words[static_cast<std::size_t>(u)]; }
std::span<const std::string_view> known_fields() noexcept { return fields; }
std::span<const std::string_view> known_device_fields() noexcept { return device_fields; }

kind kind_of(const config_map_view& config_map) {
  const auto is_type = [&](std::string_view domain) {
    return config_map.label(std::string(domain) + "type") == names::type_value;
  };
  if (is_type(names::alauda) || is_type(names::cpaas)) return kind::declaration;
  return config_map.label(names::device_label) == "true" ? kind::device_config : kind::none;
}

parsed parse(const config_map_view& config_map, const parse_settings& settings) {
  parsed out;
  auto& declaration = out.value;
  declaration.config_map = config_map.key;
  declaration.created = config_map.created;
  declaration.written_in = dialect_of(config_map);
  declaration.managed = config_map.label(api::names::managed_by_label) == api::names::managed_by;
  reader source(config_map);
  source.place(settings.ns);
  std::string unused;
  source.label("type", unused);
  read_enabled(source, declaration);
  if (config_map.left_out > 0) {
    source.say(error_code::too_large, "data").count = config_map.left_out;
    out.findings = source.findings();
    return out;
  }
  if (config_map.data.empty()) {
    source.say(error_code::missing, "data").allowed = "key, group, limits, requests";
    out.findings = source.findings();
    return out;
  }
  read_key(source, declaration);
  read_group(source, declaration);
  read_use(source, declaration);
  read_default(source, declaration);
  read_extras(source, declaration);
  source.unknown_fields(known_fields());
  out.findings = source.findings();
  declaration.sound = !has_error(out.findings);
  return out;
}

parsed_device parse_device(const config_map_view& config_map, const parse_settings& settings) {
  parsed_device out;
  out.value.config_map = config_map.key;
  out.value.created = config_map.created;
  reader source(config_map);
  source.place(settings.ns);
  if (config_map.left_out > 0) {
    source.say(error_code::too_large, "data").count = config_map.left_out;
    out.findings = source.findings();
    return out;
  }
  const auto required = [&](std::string_view name) {
    const auto value = source.field(name);
    if (!value) source.say(error_code::missing, data_path(name));
    return value;
  };
  if (required("deviceName")) out.value.name = source.text("deviceName", 256);
  if (const auto key = required("nodeLabelKey")) {
    if (text::is_label_key(*key))
      out.value.label_key = *key;
    else
      source.say(error_code::device_label_key_malformed, "data.nodeLabelKey", *key);
  }
  if (const auto value = required("nodeLabelValue")) {
    if (text::is_label_value(*value))
      out.value.label_value = *value;
    else
      source.say(error_code::device_label_value_malformed, "data.nodeLabelValue", *value);
  }
  source.unknown_fields(device_fields);
  out.findings = source.findings();
  out.value.sound = !has_error(out.findings);
  return out;
}

}  // namespace reconcilers::declarations
