#pragma once
// Percent-encoding of path segments and query values (RFC 3986): everything but unreserved characters.

#include <string>
#include <string_view>

namespace kube {

/// Appends `text` encoded to `output`.
void append_percent_encoded(std::string& output, std::string_view text);

}  // namespace kube
