#pragma once
// Kubernetes objects in files: which they are, and where their parts stand. Everything that reads ConfigMaps or
// workloads from files goes through here, so that every verb takes them alike.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reconcilers/declarations/declaration.hpp"
#include "text/message.hpp"
#include "text/yaml/source.hpp"

namespace cli {

/// One object; lists are taken apart. Views into a source, which must outlive it.
struct manifest {
  const text::yaml::source* file = nullptr;
  const text::yaml::node* root = nullptr;
  std::string group, kind;  ///< of apiVersion "apps/v1" the group is "apps"; kind empty: not a Kubernetes object
  kube::object_key key;
};
std::vector<manifest> manifests_in(const text::yaml::source& file);

/// A ConfigMap as the API server would keep it: values that are no text are taken as they are written, and listed.
struct config_map_file {
  /// A value that Kubernetes refuses here because it wants text.
  struct not_text {
    std::string field;  ///< as in declarations::finding
    const text::yaml::node* key;
    const text::yaml::node* value;
  };

  kube::object_key key;
  std::vector<std::pair<std::string, std::string>> labels, data;
  std::size_t binary = 0;
  std::vector<not_text> refused;

  /// Valid as long as this is.
  reconcilers::declarations::config_map_view view() const;
};
config_map_file read_config_map(const manifest& manifest);
/// The values of a mapping that wants text, as read_config_map takes them: labels, annotations, a nodeSelector. `path`
/// is that of a value, with its key for "{}".
std::vector<config_map_file::not_text> values_not_text(const text::yaml::node* node, std::string_view path);

/// Where a field of a ConfigMap (declarations::finding) stands: its key; of one that is missing, what should hold it.
text::yaml::place place_of(const manifest& manifest, std::string_view field);

}  // namespace cli
