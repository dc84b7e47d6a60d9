#pragma once
// Kubernetes quantities ("2", "4Gi", "100m", "1e3") as whole numbers, the way resource.Quantity.Value() of apimachinery
// gives them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kube {

/// Resource name and amount, sorted by name. Amounts are whole units: cards, shares, bytes.
using quantities = std::vector<std::pair<std::string, std::int64_t>>;

/// Rounded away from zero to a whole number ("100m" is 1), capped at 2^63-1. Empty for text that Go's ParseQuantity
/// refuses.
std::optional<std::int64_t> parse_quantity(std::string_view text);

/// The amount of `name`, 0 where it is not listed.
std::int64_t amount(const quantities& quantities, std::string_view name);

/// Names with a domain that is not Kubernetes' own: what device plugins advertise ("nvidia.com/gpu"). "cpu",
/// "hugepages-2Mi" and "kubernetes.io/x" are not. (Rule: IsExtendedResourceName of component-helpers.)
bool is_extended_resource(std::string_view name);

}  // namespace kube
