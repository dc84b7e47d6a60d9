#pragma once
// The one ResourceRules object as a cache holds it: what resource_rules writes and others read.

#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"
#include "kube/resource.hpp"

namespace api {

/// What we keep of a ResourceRules object.
struct compiled_rules : kube::object {
  // labels: all. annotations: none.
  std::string spec;  ///< JSON

  /// The chart's policies send pods that ask for accelerators to our scheduler.
  bool sends_pods() const;
  /// The keys that are declared, in order.
  std::vector<std::string> keys() const;

  /// The one that counts.
  static kube::object_key only() { return {{}, "default"}; }
  static const kube::resource& of() { return kube::resources::resource_rules; }
  static constexpr kube::encoding wire = kube::encoding::json;
  static kube::result<compiled_rules> decode(std::string_view bytes);
  friend bool operator==(const compiled_rules&, const compiled_rules&) = default;
};

}  // namespace api
