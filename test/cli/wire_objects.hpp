#pragma once
// ConfigMaps and lists as an API server sends them in protobuf, by the numbers of generated.proto.

#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

namespace cli_test {

using texts = std::map<std::string, std::string>;

inline std::string entry(const std::string& key, const std::string& value) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_string(1, key);
  writer.add_string(2, value);
  return out;
}

inline std::string metadata(const std::string& ns, const std::string& name, const texts& labels = {},
                            const texts& annotations = {}) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_string(1, name);
  writer.add_string(3, ns);
  writer.add_string(6, "7");
  for (const auto& [key, value] : labels) writer.add_message(11, entry(key, value));
  for (const auto& [key, value] : annotations) writer.add_message(12, entry(key, value));
  return out;
}

/// In namespace kube-public.
inline std::string config_map(const std::string& name, const texts& labels, const texts& data) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_message(1, metadata("kube-public", name, labels));
  for (const auto& [key, value] : data) writer.add_message(2, entry(key, value));
  return out;
}

/// `next`: of the page after this one; empty: there is none.
inline std::string list_body(const std::vector<std::string>& items, const std::string& next = "") {
  std::string meta, body;
  protozero::pbf_writer(meta).add_string(2, "100");
  if (!next.empty()) protozero::pbf_writer(meta).add_string(3, next);
  protozero::pbf_writer writer(body);
  writer.add_message(1, meta);
  for (const auto& item : items) writer.add_message(2, item);
  return body;
}

}  // namespace cli_test
