#pragma once
// A ConfigMap with all its data: select on the server, so that only those of interest are ever sent.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/object.hpp"

namespace kube {

struct config_map : object {
  // labels: all. annotations: quartermaster.io/ and state.quartermaster.io/.
  packed_map data;
  std::vector<std::pair<std::string, std::uint64_t>>
      binary;  ///< keys of binaryData with their sizes in bytes, sorted; never the bytes
  bool immutable = false;
  std::uint64_t left_out = 0;  ///< bytes of the object, where who read it did not keep its data; 0: it is all there

  static const resource& of();
  static constexpr encoding wire = encoding::protobuf;
  static result<config_map> decode(std::string_view bytes);
  friend bool operator==(const config_map&, const config_map&) = default;
};

}  // namespace kube
