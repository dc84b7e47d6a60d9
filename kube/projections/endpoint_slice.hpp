#pragma once
// What we keep of an EndpointSlice: who stands behind a Service, and whether it is ready.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"

namespace kube {

struct endpoint {
  std::vector<std::string> addresses;
  bool ready = true;  ///< missing means ready (EndpointConditions)
  object_key pod;     ///< targetRef when its kind is Pod; empty otherwise
  friend bool operator==(const endpoint&, const endpoint&) = default;
};

struct endpoint_port {
  std::string name;
  std::int32_t port = 0;
  friend bool operator==(const endpoint_port&, const endpoint_port&) = default;
};

struct endpoint_slice : object {
  // labels: kubernetes.io/service-name, endpointslice.kubernetes.io/. annotations: none.
  std::vector<endpoint> endpoints;
  std::vector<endpoint_port> ports;

  std::string_view service() const { return labels.value_or("kubernetes.io/service-name", {}); }

  static const resource& of();
  static constexpr encoding wire = encoding::protobuf;
  static result<endpoint_slice> decode(std::string_view bytes);
  friend bool operator==(const endpoint_slice&, const endpoint_slice&) = default;
};

}  // namespace kube
