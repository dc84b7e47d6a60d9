#pragma once
// What we keep of an AcceleratorQuota, and the tenant it makes of its namespace. Several objects of a namespace all
// count: of two limits on one thing the smaller.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/object.hpp"
#include "quota/limits.hpp"

namespace api {

struct accelerator_quota : kube::object {
  std::string cohort;
  std::optional<quota::isolation> at_least;
  std::vector<quota::tenant::limit> hard;  ///< one unit each
  std::string status;                      ///< JSON; empty where there is none yet

  static const kube::resource& of();
  static constexpr kube::encoding wire = kube::encoding::json;
  static kube::result<accelerator_quota> decode(std::string_view bytes);
  /// Its spec decides; the status is ours.
  friend bool operator==(const accelerator_quota& a, const accelerator_quota& b) {
    return static_cast<const kube::object&>(a) == b && a.status == b.status;
  }
};

/// As it stands in `units`.
std::string_view unit_of(quota::resource resource);

/// Of all objects of one namespace, in the order of their names.
quota::tenant tenant_of(const std::string& name_space, std::vector<const accelerator_quota*> objects);
/// Both count: of two limits on one thing the smaller.
void add(quota::tenant& tenant, const quota::tenant& more);

}  // namespace api
