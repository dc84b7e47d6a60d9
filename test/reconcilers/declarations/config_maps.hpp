#pragma once
// ConfigMaps for the tests of crl: owned text, made in one line, changed field by field, read from golden files.

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "reconcilers/declarations/registry.hpp"

namespace reconcilers::declarations {

struct config_map_text {
  kube::object_key key{"kube-public", "cf-crl-lab-fpga"};
  std::int64_t created = 0;
  std::map<std::string, std::string> labels, data;

  config_map_view view() const {
    config_map_view out;
    out.key = key;
    out.created = created;
    out.labels.assign(labels.begin(), labels.end());
    out.data.assign(data.begin(), data.end());
    return out;
  }
  config_map_text with(const std::string& field, const std::string& value) const {
    auto out = *this;
    out.data[field] = value;
    return out;
  }
  config_map_text without(const std::string& field) const {
    auto out = *this;
    out.data.erase(field);
    return out;
  }
  config_map_text labelled(const std::string& name, const std::string& value) const {
    auto out = *this;
    out.labels[name] = value;
    return out;
  }
  config_map_text unlabelled(const std::string& name) const {
    auto out = *this;
    out.labels.erase(name);
    return out;
  }
  config_map_text named(const std::string& name) const {
    auto out = *this;
    out.key.name = name;
    return out;
  }
};

/// A declaration with nothing to say of it.
inline config_map_text sound(const std::string& resource = "example.com/fpga", const std::string& group = "lab",
                             const std::string& domain = "features.cpaas.io/") {
  config_map_text out;
  out.key.name = "cf-crl-" + group + "-" + resource.substr(resource.find('/') + 1);
  out.labels = {{domain + "type", "CustomResourceLimitation"}, {domain + "group", group}, {domain + "enabled", "true"}};
  out.data = {{"key", resource},      {"dataType", "integer"},  {"defaultValue", "1"},      {"group", group},
              {"limits", "optional"}, {"requests", "disabled"}, {"descriptionEn", "Cards"}, {"descriptionZh", "卡"}};
  return out;
}

inline config_map_text device(const std::string& name = "HAMi", const std::string& label_key = "gpu",
                              const std::string& label_value = "on") {
  config_map_text out;
  out.key.name = "cf-crl-" + name + "-config";
  out.labels = {{"device-plugin.cpaas.io/config", "true"}};
  out.data = {{"deviceName", name}, {"nodeLabelKey", label_key}, {"nodeLabelValue", label_value}};
  return out;
}

inline std::vector<config_map_text> read_config_maps(const std::filesystem::path& file) {
  std::vector<config_map_text> out;
  const auto map_of = [](const YAML::Node& node) {
    std::map<std::string, std::string> entries;
    for (const auto& entry : node) entries[entry.first.as<std::string>()] = entry.second.as<std::string>();
    return entries;
  };
  for (const auto& document : YAML::LoadAllFromFile(file.string())) {
    auto& text = out.emplace_back();
    const auto metadata = document["metadata"];
    text.key = {metadata["namespace"].as<std::string>(), metadata["name"].as<std::string>()};
    text.labels = map_of(metadata["labels"]);
    text.data = map_of(document["data"]);
  }
  return out;
}

inline std::vector<judgement> judge_together(const std::vector<config_map_text>& config_maps) {
  std::vector<config_map_view> views;
  for (const auto& config_map : config_maps) views.push_back(config_map.view());
  return judge_all(views);
}

inline std::vector<finding> findings_of(const config_map_text& config_map_text) {
  return parse(config_map_text.view()).findings;
}

}  // namespace reconcilers::declarations
