#pragma once
// What we keep of an AcceleratorNode: the controller's part of its status, which is also our memory of what the node
// went through (a phase and since when), so that a restart goes on where it was.

#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"

namespace reconcilers {

/// The controller's part of AcceleratorNode.status; crds/acceleratornodes.quartermaster.io.yaml says what each means.
struct mode_status {
  std::string requested_mode;
  std::string actual_mode;
  std::string phase;
  std::string reason;
  std::string message;
  std::string since;  ///< RFC 3339
  std::vector<std::string> blockers;
  friend bool operator==(const mode_status&, const mode_status&) = default;
};

struct accelerator_node : kube::object {
  mode_status mode;

  static const kube::resource& of() { return kube::resources::accelerator_nodes; }
  static constexpr kube::encoding wire = kube::encoding::json;
  static kube::result<accelerator_node> decode(std::string_view bytes);
  friend bool operator==(const accelerator_node&, const accelerator_node&) = default;
};

}  // namespace reconcilers
