#include "reconcilers/modules/publish.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/declaration_names.hpp"

namespace reconcilers::modules {
namespace {

using nlohmann::json;

/// "nvidia.com/gpu.shared" as part of a name: "nvidia-com-gpu-shared".
std::string as_name(std::string_view key) {
  std::string out;
  for (const char c : key) {
    const bool upper = c >= 'A' && c <= 'Z', plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    out += upper ? static_cast<char>(c - 'A' + 'a') : plain ? c : '-';
  }
  return out;
}

json config_map(const std::string& name, json labels, json data) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", name}, {"labels", std::move(labels)}}},
          {"data", std::move(data)}};
}

}  // namespace

json declaration(const published& group, const resource_declaration& declared) {
  const std::string domain(api::declaration::cpaas);
  const json labels = {
      {domain + "type", api::declaration::type_value}, {domain + "group", group.id}, {domain + "enabled", "true"}};
  const json data = {
      {"key", declared.key},
      {"dataType", "integer"},
      {"defaultValue", declared.default_value},
      {"labelEn", declared.label_en},
      {"labelZh", declared.label_zh},
      {"descriptionEn", declared.description_en.empty() ? declared.label_en : declared.description_en},
      {"descriptionZh", declared.description_zh.empty() ? declared.label_zh : declared.description_zh},
      {"group", group.id},
      {"groupI18n", json({{"zh", group.name_zh}, {"en", group.name_en}}).dump()},
      {"limits", "optional"},
      {"requests", declared.requests},
      {"resourceUnit", declared.unit},
      {"relatedResources", declared.related},
      {"excludeResources", declared.excluded},
      {"runtimeClassName", ""},
      {"ignoreNodeCheck", declared.ignore_node_check ? "true" : "false"},
  };
  return config_map(
      declared.config_map.empty() ? "cf-crl-" + group.id + "-" + as_name(declared.key) : declared.config_map, labels,
      data);
}

json device_config(const published& group, std::string_view label_key, std::string_view label_value) {
  const json data = {
      {"deviceName", group.name_en},
      {"nodeLabelKey", label_key.empty() ? "nvidia-device-enable" : label_key},
      {"nodeLabelValue", label_key.empty() ? std::string_view(group.id) : label_value},
  };
  return config_map("cf-crl-" + group.id + "-config", {{api::declaration::device_label, "true"}}, data);
}

}  // namespace reconcilers::modules
