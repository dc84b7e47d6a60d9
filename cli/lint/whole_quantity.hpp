#pragma once
// Whether a quantity is a whole number, by the API server's own arithmetic.

#include <string_view>

namespace cli {

/// A whole number as the API server sees it; `quantity` is one (kube::parse_quantity takes it) and not negative.
bool is_whole(std::string_view quantity);

}  // namespace cli
