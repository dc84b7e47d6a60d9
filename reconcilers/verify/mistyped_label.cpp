#include "reconcilers/verify/mistyped_label.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "api/names.hpp"
#include "reconcilers/modules/catalogue.hpp"
#include "text/nearest.hpp"
#include "text/text.hpp"

namespace reconcilers::verify {
namespace {

/// nvidia-device-plugin and quartermaster.io/pool are further away, and are labels for other purposes.
constexpr std::size_t most_mistakes = 2;

}  // namespace

std::optional<mistyped_label> mistyped_label_of(const kube::node& node, const accelerator_policy* policy,
                                                std::span<const label_alias> declared) {
  std::vector<std::string_view> keys{"nvidia-device-enable", "quartermaster.io/mode"};
  for (const auto& alias : declared) keys.push_back(alias.key);
  if (policy)
    for (const auto& alias : policy->enrolment.aliases) keys.push_back(alias.key);
  const auto& offered = modules::offered_by(policy);
  const auto is_mode = [&](std::string_view value) {
    return std::ranges::any_of(offered.rows(), [&](const modules::module_type& row) {
      return row.name == value || std::ranges::find(row.label_values, value) != row.label_values.end();
    });
  };
  for (const auto& [key, value] : node.labels) {
    if (key == api::names::module_label || std::ranges::find(keys, key) != keys.end()) continue;
    if (!is_mode(text::lower_case(value))) continue;
    if (const auto meant = text::nearest(key, keys); !meant.empty() && text::distance(key, meant) <= most_mistakes)
      return mistyped_label{std::string(key) + "=" + std::string(value), std::string(meant) + "=" + std::string(value)};
  }
  return std::nullopt;
}

}  // namespace reconcilers::verify
