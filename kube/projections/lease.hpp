#pragma once
// A Lease: who leads, and when it last said so. Times are the holder's clock: they are compared for change, never with
// our clock.

#include <cstdint>
#include <string>
#include <string_view>

#include "kube/object.hpp"

namespace kube {

struct lease : object {
  // labels: all. annotations: quartermaster.io/ and state.quartermaster.io/.
  std::string holder;  ///< empty: released
  std::int32_t duration_seconds = 0;
  std::int32_t transitions = 0;
  std::int64_t acquired_us = 0;  ///< microseconds since 1970, 0 when missing
  std::int64_t renewed_us = 0;   ///< microseconds since 1970, 0 when missing

  static const resource& of();
  static constexpr encoding wire = encoding::protobuf;
  static result<lease> decode(std::string_view bytes);
  friend bool operator==(const lease&, const lease&) = default;
};

}  // namespace kube
