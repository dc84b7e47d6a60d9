#pragma once
// AcceleratorUsage: the time of cards in one month, of one namespace or of the whole cluster. crds/ has the fields and
// docs/decisions/014 the rules; this is the object both ways.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kube/object.hpp"
#include "quota/usage.hpp"

namespace api {

struct accelerator_usage : kube::object {
  std::string month;       ///< "2026-11"
  std::string name_space;  ///< empty: the whole cluster
  quota::seconds since = 0;
  quota::seconds until = 0;
  quota::usage_rows rows;             ///< of a namespace
  quota::seconds before_through = 0;  ///< 0: there is no checkpoint before
  quota::usage_rows before_rows;
  quota::model_rows models;  ///< of the whole cluster

  static const kube::resource& of();
  static constexpr kube::encoding wire = kube::encoding::json;
  static kube::result<accelerator_usage> decode(std::string_view bytes);
  /// To be applied: name, apiVersion, kind and everything of `usage`.
  nlohmann::json encode() const;

  /// The newest numbers up to `committed`, the `through` of the whole cluster's object; null: there are none.
  const quota::usage_rows* rows_at(quota::seconds committed) const {
    if (until <= committed) return &rows;
    return before_through > 0 && before_through <= committed ? &before_rows : nullptr;
  }
  friend bool operator==(const accelerator_usage&, const accelerator_usage&) = default;
};

/// "2026-11.team-a", or "2026-11" for the whole cluster.
std::string usage_name(std::string_view month, std::string_view name_space);
/// "2026-11"
std::string month_of(quota::seconds time);
/// First second of the month, and the first after it. Nothing where it is no month as "2026-11".
struct month_bounds {
  quota::seconds begin = 0, end = 0;
};
std::optional<month_bounds> bounds_of(std::string_view month);

}  // namespace api
