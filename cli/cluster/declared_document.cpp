#include "cli/cluster/declared_document.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "api/names.hpp"
#include "kube/json_text.hpp"
#include "reconcilers/declarations/parse.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using nlohmann::json;

bool is_label_of_declaration(std::string_view label) {
  return label.starts_with(declarations::names::alauda) || label.starts_with(declarations::names::cpaas) ||
         label == declarations::names::device_label || label == api::names::managed_by_label;
}

bool is_field_of_declaration(std::string_view field) {
  for (const auto fields : {declarations::known_fields(), declarations::known_device_fields()})
    if (std::ranges::find(fields, field) != fields.end()) return true;
  return false;
}

json entries_of(const kube::packed_map& map, bool (*counts)(std::string_view)) {
  auto out = json::object();
  for (const auto& [key, value] : map)
    if (counts(key)) out[std::string(key)] = std::string(value);
  return out;
}

kube::packed_map map_in(const json& object, const char* member) {
  std::vector<kube::packed_map::entry> entries;
  const auto match = object.find(member);
  if (match != object.end() && match->is_object())
    for (const auto& [key, value] : match->items())
      if (value.is_string()) entries.emplace_back(key, value.get_ref<const std::string&>());
  return kube::packed_map::of(entries);
}

std::int64_t number_in(const json& object, const char* member) {
  const auto match = object.find(member);
  return match != object.end() && match->is_number_integer() ? match->get<std::int64_t>() : 0;
}

}  // namespace

std::string document_of(const declared_resources& declared) {
  auto config_maps = json::array();
  for (const auto& config_map : declared.config_maps)
    config_maps.push_back({{"namespace", config_map.key.ns},
                           {"name", config_map.key.name},
                           {"created", config_map.created},
                           {"leftOut", config_map.left_out},
                           {"labels", entries_of(config_map.labels, is_label_of_declaration)},
                           {"data", entries_of(config_map.data, is_field_of_declaration)}});
  const json out{{"configMaps", std::move(config_maps)}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::optional<declared_resources> declared_in(std::string_view document) {
  const auto all = json::parse(document, nullptr, false);
  if (!all.is_object() || !all.contains("configMaps") || !all["configMaps"].is_array()) return std::nullopt;
  declared_resources out;
  for (const auto& entry : all["configMaps"]) {
    if (!entry.is_object()) return std::nullopt;
    kube::config_map config_map;
    config_map.key = {kube::text_in(entry, "namespace"), kube::text_in(entry, "name")};
    config_map.created = number_in(entry, "created");
    config_map.left_out = static_cast<std::uint64_t>(std::max<std::int64_t>(number_in(entry, "leftOut"), 0));
    config_map.labels = map_in(entry, "labels");
    config_map.data = map_in(entry, "data");
    out.config_maps.push_back(std::move(config_map));
  }
  return out;
}

}  // namespace cli
