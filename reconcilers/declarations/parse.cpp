#include "reconcilers/declarations/parse.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "reconcilers/declarations/reader.hpp"
#include "reconcilers/declarations/vocabulary.hpp"
#include "text/resource_name.hpp"
#include "text/text.hpp"

namespace reconcilers::crl {
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

void read_key(reader& in, declaration& to) {
  const auto value = in.field("key");
  if (!value) {
    in.say(code::missing, "data.key").allowed = "<domain>/<name>";
    return;
  }
  switch (fault_of_extended_resource(*value)) {
    case resource_name_fault::none:
      to.key = *value;
      return;
    case resource_name_fault::no_domain:
      in.say(code::key_without_domain, "data.key", *value);
      return;
    case resource_name_fault::native_domain:
    case resource_name_fault::requests:
      in.say(code::key_native, "data.key", *value);
      return;
    case resource_name_fault::bad_domain:
    case resource_name_fault::bad_name:
      break;
  }
  auto& f = in.say(code::key_malformed, "data.key", *value);
  const auto start = value->substr(0, 320);
  const auto slash = start.find('/');
  const auto lower = lower_case(start.substr(0, slash)) + std::string(start.substr(slash));
  if (is_extended_resource(lower)) f.hint = shown(lower);
}

void read_group(reader& in, declaration& to) {
  std::string path;
  const auto label = in.label("group", path);
  const auto data = in.field("group");
  if (label && !label->empty() && data && *label != *data) {
    in.say(code::group_differs, "data.group", *data).other = shown(*label);
    in.drop(code::label_domains_differ, label_path(std::string(names::alauda) + "group"));
    return;
  }
  const bool has_label = label && !label->empty();
  if (!has_label && !data) {
    in.say(code::group_absent, "data.group");
    return;
  }
  if (!has_label)
    in.say(code::group_missing, path).other = shown(*data);
  else if (!data)
    in.say(code::group_missing, "data.group").other = shown(*label);
  const auto group = data ? *data : *label;
  if (is_label_value(group))
    to.group = group;
  else
    in.say(code::group_malformed, "data.group", group);
}

void read_enabled(reader& in, declaration& to) {
  std::string path;
  const auto value = in.label("enabled", path);
  if (!value) {
    in.say(code::enabled_missing, path);
    to.enabled = true;
    return;
  }
  const auto word = in.word(path, *value, booleans, code::not_in_vocabulary);
  if (!word) in.drop(code::label_domains_differ, label_path(std::string(names::alauda) + "enabled"));
  to.enabled = word == "true";
  to.switched_off = word == "false";
}

/// Limits and requests, alone and together.
void read_use(reader& in, declaration& to) {
  const auto limits_value = in.field("limits");
  const auto requests_value = in.field("requests");
  if (!limits_value) in.say(code::missing, "data.limits").allowed = "disabled, required, optional";
  if (!requests_value) in.say(code::missing, "data.requests").allowed = "disabled, required, optional, fromLimits";
  const auto limits = in.word("data.limits", limits_value, limits_words, code::not_in_vocabulary);
  const auto requests = in.word("data.requests", requests_value, requests_words, code::not_in_vocabulary);
  if (limits) to.limits = use_of(*limits);
  if (requests) to.requests = use_of(*requests);
  if (!limits || !requests || to.limits != use::disabled) return;
  if (to.requests == use::required) {
    in.say(code::impossible_requests, "data.requests", *requests);
  } else {
    in.say(code::unusable, "data.limits", *limits).other = *requests;
  }
}

void read_default(reader& in, declaration& to) {
  const auto value = in.field("defaultValue");
  if (!value) return;
  std::int64_t number = 0;
  const auto* const end = value->data() + value->size();
  const bool figure = value->front() >= '0' && value->front() <= '9';
  const auto [at, failed] = std::from_chars(value->data(), end, number);
  if (!figure || failed != std::errc{} || at != end) {
    auto& f = in.say(code::default_not_a_number, "data.defaultValue", *value);
    // "20Mi" means 20 of a unit; "0.5" and "1,000" mean nothing we could round to.
    const bool unit_follows = number > 0 && failed == std::errc{} && *at != '.' && *at != ',' && *at != '_';
    if (unit_follows) f.hint = std::to_string(number);
    return;
  }
  to.default_value = number;
  if (const auto* words = vocabulary_of(to.key);
      words && words->legal.limited() && (number == 0 ? words->legal.whole > 0 : !words->legal.allow(number))) {
    auto& f = in.say(code::default_not_legal, "data.defaultValue", *value);
    f.allowed = words->legal.words;
    f.hint = std::to_string(words->legal.nearest(std::max<std::int64_t>(number, 1)));
  }
  if (to.limits != use::disabled || to.requests == use::required) return;
  in.say(code::default_unused, "data.defaultValue", *value);
  in.drop(code::unusable, "data.limits");
}

void read_group_names(reader& in, declaration& to) {
  const auto value = in.field("groupI18n");
  if (!value) return;
  const auto text_of = [](const nlohmann::json& of, const char* name) {
    const auto at = of.find(name);
    return at != of.end() && at->is_string() ? shown(at->get_ref<const std::string&>(), 256) : std::string();
  };
  if (value->size() <= max_text_bytes) {
    const auto json = nlohmann::json::parse(*value, nullptr, false);
    if (json.is_object()) {
      to.group_en = text_of(json, "en");
      to.group_zh = text_of(json, "zh");
      if (!to.group_en.empty() && !to.group_zh.empty()) return;
    }
  }
  in.say(code::group_names_malformed, "data.groupI18n", *value);
}

void read_extras(reader& in, declaration& to) {
  if (const auto type = in.field("dataType"); type != "integer")
    in.say(code::data_type, "data.dataType", type.value_or(""));
  to.description_en = in.text("descriptionEn", max_text_bytes);
  to.description_zh = in.text("descriptionZh", max_text_bytes);
  to.label_en = in.text("labelEn", 256);
  to.label_zh = in.text("labelZh", 256);
  read_group_names(in, to);
  if (const auto unit = in.field("resourceUnit")) {
    const bool plain = unit->size() <= 16 && is_plain_text(*unit) && !has_cjk(*unit) &&
                       unit->find_first_of(" \t\n") == std::string_view::npos;
    if (plain)
      to.unit = *unit;
    else
      in.say(code::unit_not_plain, "data.resourceUnit", *unit);
  }
  to.related = in.resources("relatedResources", to.key);
  to.excluded = in.resources("excludeResources", to.key);
  std::size_t both = 0;
  for (const auto& key : to.excluded) {
    if (std::ranges::binary_search(to.related, key) && ++both <= max_unknown_fields) {
      in.say(code::related_and_excluded, "data.excludeResources", key);
    }
  }
  to.ignore_node_check = in.flag("ignoreNodeCheck");
  if (const auto runtime = in.field("runtimeClassName")) {
    if (is_dns_subdomain(*runtime)) {
      to.runtime_class = *runtime;
    } else {
      auto& f = in.say(code::runtime_class_malformed, "data.runtimeClassName", *runtime);
      if (const auto lower = lower_case(runtime->substr(0, 256)); is_dns_subdomain(lower)) f.hint = shown(lower);
    }
  }
}

dialect dialect_of(const config_map_view& from) {
  const auto is_type = [&](std::string_view domain) {
    return from.label(std::string(domain) + "type") == names::type_value;
  };
  if (!is_type(names::cpaas)) return dialect::alauda;
  return is_type(names::alauda) ? dialect::both : dialect::cpaas;
}

}  // namespace

std::string_view to_string(use u) noexcept { return requests_words[static_cast<std::size_t>(u)]; }
std::span<const std::string_view> known_fields() noexcept { return fields; }
std::span<const std::string_view> known_device_fields() noexcept { return device_fields; }

kind kind_of(const config_map_view& of) {
  const auto is_type = [&](std::string_view domain) {
    return of.label(std::string(domain) + "type") == names::type_value;
  };
  if (is_type(names::alauda) || is_type(names::cpaas)) return kind::declaration;
  return of.label(names::device_label) == "true" ? kind::device_config : kind::none;
}

parsed parse(const config_map_view& from, const parse_settings& settings) {
  parsed out;
  auto& to = out.what;
  to.config_map = from.key;
  to.created = from.created;
  to.written_in = dialect_of(from);
  to.ours = from.label(reconcilers::names::managed_by_label) == reconcilers::names::managed_by;
  reader in(from);
  in.place(settings.ns);
  std::string unused;
  in.label("type", unused);
  read_enabled(in, to);
  if (from.data.empty()) {
    in.say(code::missing, "data").allowed = "key, group, limits, requests";
    out.findings = in.findings();
    return out;
  }
  read_key(in, to);
  read_group(in, to);
  read_use(in, to);
  read_default(in, to);
  read_extras(in, to);
  in.unknown_fields(known_fields());
  out.findings = in.findings();
  to.sound = !has_error(out.findings);
  return out;
}

parsed_device parse_device(const config_map_view& from, const parse_settings& settings) {
  parsed_device out;
  out.what.config_map = from.key;
  out.what.created = from.created;
  reader in(from);
  in.place(settings.ns);
  const auto required = [&](std::string_view name) {
    const auto value = in.field(name);
    if (!value) in.say(code::missing, data_path(name));
    return value;
  };
  if (required("deviceName")) out.what.name = in.text("deviceName", 256);
  if (const auto key = required("nodeLabelKey")) {
    if (is_label_key(*key))
      out.what.label_key = *key;
    else
      in.say(code::device_label_key_malformed, "data.nodeLabelKey", *key);
  }
  if (const auto value = required("nodeLabelValue")) {
    if (is_label_value(*value))
      out.what.label_value = *value;
    else
      in.say(code::device_label_value_malformed, "data.nodeLabelValue", *value);
  }
  in.unknown_fields(device_fields);
  out.findings = in.findings();
  out.what.sound = !has_error(out.findings);
  return out;
}

}  // namespace reconcilers::crl
