#pragma once
// Times as people, plugins and the API write them in JSON: "2026-07-01T10:20:30Z", with or without fraction and offset.

#include <cstdint>
#include <optional>
#include <string_view>

namespace kube {

/// Seconds since 1970; a fraction is cut. Empty for text that is no time.
std::optional<std::int64_t> parse_rfc3339(std::string_view text);
/// Microseconds since 1970; what is finer is cut.
std::optional<std::int64_t> parse_rfc3339_micros(std::string_view text);

}  // namespace kube
