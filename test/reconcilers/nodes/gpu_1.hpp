#pragma once
// The node of the tests, and where the API server keeps what belongs to it.

#include <string>

#include "kube/object.hpp"

namespace reconcilers {

inline const kube::object_key node_key{{}, "gpu-1"};
inline const std::string node_path = "/api/v1/nodes/gpu-1";
/// Of the AcceleratorNode of a node.
inline std::string object_path_of(const std::string& node) {
  return "/apis/quartermaster.io/v1alpha1/acceleratornodes/" + node;
}
inline const std::string object_path = object_path_of(node_key.name);

}  // namespace reconcilers
