#pragma once
// The settings by which a plugin serves one node: those of the node set whose plugin it has, else the policy's, else
// the catalogue's.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kube/projections/node.hpp"
#include "reconcilers/modules/accelerator_policy.hpp"
#include "reconcilers/modules/catalogue.hpp"

namespace reconcilers::dialects {

/// 0 where it is no number, or a negative one.
inline std::int64_t number_of(std::optional<std::string_view> text) {
  std::int64_t out = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), out);
  return std::max<std::int64_t>(out, 0);
}

/// What one of `cards` has of all of it.
constexpr std::int64_t share_of(std::int64_t all, std::int64_t cards) { return cards > 0 ? all / cards : 0; }

/// How many processes may use a card by MPS at once: 48 since Volta, 16 before (NVIDIA, MPS documentation).
inline std::int32_t clients_of_mps(const kube::node& node) {
  const auto major = number_of(node.labels.find("nvidia.com/gpu.compute.major"));
  const auto minor = number_of(node.labels.find("nvidia.com/gpu.compute.minor"));
  return major * 10 + minor >= 75 ? 48 : 16;
}

class module_settings {
 public:
  module_settings(const kube::node& node, const accelerator_policy* policy, std::string_view module);
  std::string text(std::string_view name) const;
  std::int64_t number(std::string_view name) const { return number_of(text(name)); }

 private:
  const modules::module_type* row_;
  module_spec spec_;
};

}  // namespace reconcilers::dialects
