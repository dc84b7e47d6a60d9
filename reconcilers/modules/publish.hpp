#pragma once
// What a module that is on tells the console and the people who write pods: one declaration (cf-crl ConfigMap) for each
// resource it advertises, and the node label that asks for it. In the form and with the values the platform documents
// (docs/declarations.md); a person's ConfigMap for the same key wins.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace reconcilers::modules {

/// A group of resources that are asked for together.
struct published {
  std::string id, name_en, name_zh;
};

struct resource_declaration {
  std::string config_map = {};  ///< its name; empty: cf-crl-<group>-<key>
  std::string key = {};
  std::string default_value = {};  ///< whole number; empty: none
  std::string unit = "count";
  std::string label_en = {}, label_zh = {};
  std::string description_en = {}, description_zh = {};
  std::string related = {}, excluded = {};  ///< keys by commas
  bool ignore_node_check = false;
  std::string_view requests = "disabled";
};

nlohmann::json declaration(const published& group, const resource_declaration& declared);
/// ConfigMap cf-crl-<group>-config: `label_key`=`label_value` asks for the module; nvidia-device-enable=<group> where
/// they are empty.
nlohmann::json device_config(const published& group, std::string_view label_key = {},
                             std::string_view label_value = {});

}  // namespace reconcilers::modules
