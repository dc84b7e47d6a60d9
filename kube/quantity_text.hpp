#pragma once
// A quantity as people write it in YAML and JSON, before the API server has brought it into a form of its own.

#include <string_view>

namespace kube {

/// Without the blanks around it, which do not count in JSON: Quantity.UnmarshalJSON trims what Go takes for white space
/// in the bytes between the quotes. A tab or a line break stands there as an escape, so it is no blank.
std::string_view unpadded_quantity(std::string_view text);

}  // namespace kube
