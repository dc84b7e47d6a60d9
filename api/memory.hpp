#pragma once
// Reads what the operator remembers in annotations (state.quartermaster.io/). Earlier versions wrote the same keys
// without "state.", and their pods, records and certificates outlive an upgrade. So the former key counts where the
// present one is absent. Who writes the present key removes the former one.

#include <optional>
#include <string_view>

#include "kube/packed_map.hpp"

namespace api {

/// "quartermaster.io/x" of "state.quartermaster.io/x".
constexpr std::string_view former_key(std::string_view key) { return key.substr(std::string_view("state.").size()); }

/// The annotation under its key, or under the former one; empty: neither is there. Valid as long as `annotations`.
inline std::optional<std::string_view> remembered(const kube::packed_map& annotations, std::string_view key) {
  const auto present = annotations.find(key);
  return present ? present : annotations.find(former_key(key));
}

}  // namespace api
