#pragma once
// The values of kube-scheduler's flags as Go reads them.

#include <cstdint>
#include <optional>
#include <string_view>

namespace scheduler_config {

/// strconv.ParseBool: 1, t, T, true, True, TRUE and their opposites.
std::optional<bool> go_bool(std::string_view text);
/// strconv.ParseInt with base 0 and 64 bits: 0x10, 0o17, 017 and 1_000 too.
std::optional<std::int64_t> go_integer(std::string_view text);

}  // namespace scheduler_config
