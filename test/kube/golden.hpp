#pragma once
// Fixtures of test/kube/golden: bytes written by the real Kubernetes serializers, and projections as JSON for
// comparing.

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"

namespace golden {

inline std::string read(const std::string& name) {
  std::ifstream file(std::string(TEST_DATA) + "/kube/golden/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no fixture " + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline nlohmann::json read_json(const std::string& name) { return nlohmann::json::parse(read(name)); }

/// Messages behind 4-byte lengths, by a reader of its own.
inline std::vector<std::string> split(const std::string& bytes) {
  std::vector<std::string> all;
  for (std::size_t index = 0; index + 4 <= bytes.size();) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes[index + i]);
    all.push_back(bytes.substr(index + 4, length));
    index += 4 + length;
  }
  return all;
}

inline nlohmann::json to_json(const kube::packed_map& map) {
  auto made = nlohmann::json::object();
  for (const auto [key, value] : map) made[std::string(key)] = value;
  return made;
}

inline nlohmann::json meta_to_json(const kube::object& object) {
  auto owners = nlohmann::json::array();
  for (const auto& owner : object.owners) {
    owners.push_back({{"kind", owner.kind}, {"name", owner.name}, {"controller", owner.controller}});
  }
  return {{"namespace", object.key.ns},
          {"name", object.key.name},
          {"uid", object.id.to_string()},
          {"resource_version", std::to_string(object.resource_version)},
          {"generation", object.generation},
          {"created", object.created},
          {"deleting", object.deleting},
          {"labels", to_json(object.labels)},
          {"annotations", to_json(object.annotations)},
          {"owners", std::move(owners)}};
}

}  // namespace golden
