#pragma once
// Projections as a watch would hand them over, made from the JSON of the fake server.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kube/object.hpp"
#include "kube/packed_map.hpp"

namespace reconcilers {

/// Labels, annotations or data, from a map or a list of pairs of texts.
template <class Texts>
kube::packed_map packed(const Texts& texts) {
  std::vector<kube::packed_map::entry> entries(texts.begin(), texts.end());
  return kube::packed_map::of(entries);
}
inline kube::packed_map packed(const nlohmann::json& map) {
  return packed(map.get<std::map<std::string, std::string>>());
}

/// What every projection has of its object's metadata.
inline void read_metadata(const nlohmann::json& object, kube::object& target) {
  const auto& metadata = object.at("metadata");
  target.key = {metadata.value("namespace", ""), metadata.at("name")};
  target.id = kube::uid::parse(metadata.value("uid", ""));
  target.resource_version = std::stoull(metadata.value("resourceVersion", "0"));
  target.generation = metadata.value("generation", 0);
  target.labels = packed(metadata.value("labels", nlohmann::json::object()));
  target.annotations = packed(metadata.value("annotations", nlohmann::json::object()));
}

}  // namespace reconcilers
