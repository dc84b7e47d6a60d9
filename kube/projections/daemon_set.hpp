#pragma once
// What we keep of a DaemonSet: how far its roll-out is, and which image it runs.

#include <cstdint>
#include <string>
#include <string_view>

#include "kube/object.hpp"

namespace kube {

struct daemon_set : object {
  // labels: all. annotations: quartermaster.io/ and state.quartermaster.io/.
  std::string image;                     ///< of the template's first container
  std::int64_t observed_generation = 0;  ///< the numbers below are about this generation
  std::int32_t desired = 0;
  std::int32_t current = 0;
  std::int32_t ready = 0;
  std::int32_t updated = 0;
  std::int32_t available = 0;
  std::int32_t misscheduled = 0;

  /// The controller has seen the newest spec and every pod of it is available.
  bool rolled_out() const {
    return observed_generation >= generation && updated == desired && available == desired && misscheduled == 0;
  }

  static const resource& of();
  static constexpr encoding wire = encoding::protobuf;
  static result<daemon_set> decode(std::string_view bytes);
  friend bool operator==(const daemon_set&, const daemon_set&) = default;
};

}  // namespace kube
