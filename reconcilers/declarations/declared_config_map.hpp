#pragma once
// A ConfigMap with the label of declarations, as operator and verbs take it from the API server. Anyone who may write
// in its namespace can give this label to any number of ConfigMaps of 1 MiB, so the content of a large one is not kept.

#include <cstddef>
#include <string_view>

#include "kube/projections/config_map.hpp"

namespace reconcilers::declarations {

struct declared_config_map : kube::config_map {
  /// Above that many bytes of the whole object, labels that are not ours and data stay away, and `left_out` has the
  /// number.
  static constexpr std::size_t most_bytes = 64u << 10;
  /// Of a list: a page of the largest ConfigMaps has 50 MiB.
  static constexpr int page = 50;

  static kube::result<declared_config_map> decode(std::string_view bytes);
  friend bool operator==(const declared_config_map&, const declared_config_map&) = default;
};

}  // namespace reconcilers::declarations
