#pragma once
// ConfigMaps and lists of them as the API server writes them, in protobuf (k8s.io/api/core/v1/generated.proto).

#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace kube_test {

struct config_map_source {
  std::string name, ns = "kube-public";
  std::map<std::string, std::string> labels, annotations, data;
};

inline std::string bytes_of(const config_map_source& source) {
  const auto add_all = [](protozero::pbf_writer& target, protozero::pbf_tag_type tag, const auto& entries) {
    for (const auto& [name, value] : entries) {
      std::string entry;
      protozero::pbf_writer fields(entry);
      fields.add_string(1, name);
      fields.add_string(2, value);
      target.add_message(tag, entry);
    }
  };
  std::string metadata, out;
  protozero::pbf_writer meta(metadata);
  meta.add_string(1, source.name);
  meta.add_string(3, source.ns);
  meta.add_string(5, "11111111-2222-3333-4444-555555555555");
  meta.add_string(6, "7");
  add_all(meta, 11, source.labels);
  add_all(meta, 12, source.annotations);
  protozero::pbf_writer object(out);
  object.add_message(1, metadata);
  add_all(object, 2, source.data);
  return out;
}

/// One page; `next`: the token of the next one, or empty.
inline std::string list_of(const std::vector<std::string>& objects, const std::string& next = "") {
  std::string meta, list, envelope;
  protozero::pbf_writer fields(meta);
  fields.add_string(2, "50");
  fields.add_string(3, next);
  protozero::pbf_writer writer(list);
  writer.add_message(1, meta);
  for (const auto& object : objects) writer.add_message(2, object);
  protozero::pbf_writer(envelope).add_message(2, list);
  return std::string("k8s\0", 4) + envelope;
}

}  // namespace kube_test
