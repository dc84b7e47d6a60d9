#pragma once
// What we keep of a Deployment: how far its roll-out is, and why it gets no further.

#include <cstdint>
#include <string>
#include <string_view>

#include "kube/object.hpp"

namespace kube {

struct deployment : object {
  // labels: all. annotations: quartermaster.io/ and state.quartermaster.io/.
  std::int32_t desired = 1;              ///< spec.replicas
  std::int64_t observed_generation = 0;  ///< the numbers below are about this generation
  std::int32_t replicas = 0;             ///< of every version
  std::int32_t updated = 0;
  std::int32_t ready = 0;
  std::int32_t available = 0;
  std::string problem;  ///< why pods cannot be made, or do not get ready in time; empty: nothing known

  /// The controller has seen the newest spec, and every pod is of it and available.
  bool rolled_out() const {
    return observed_generation >= generation && replicas == desired && updated == desired && available == desired;
  }

  static const resource& of();
  static constexpr encoding wire = encoding::protobuf;
  static result<deployment> decode(std::string_view bytes);
  friend bool operator==(const deployment&, const deployment&) = default;
};

}  // namespace kube
