#pragma once
// Two clocks, kept apart on purpose. Decisions use milliseconds since boot: they never jump, and they go on while the
// process is stopped or the machine sleeps, so a leader that was frozen sees that its time is over. Wall time is only
// written for people (renewTime, lastTransitionTime, log lines); it is compared only to take up a wait where an earlier
// process left it, where a wrong clock costs no more than a wait that is too short or too long.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace controller {

using milliseconds = std::chrono::milliseconds;

/// CLOCK_BOOTTIME. Machines (queue, lease, events) get it as an argument.
milliseconds boot_now();

using wall_time = std::chrono::system_clock::time_point;
/// Seconds since 1970.
std::int64_t wall_seconds();

/// "2026-01-31T12:00:00Z": metav1.Time.
std::string rfc3339_seconds(wall_time time);
/// Of seconds since 1970. A certificate may name the year 9999; the clock, which counts nanoseconds, ends in 2262.
std::string rfc3339_seconds(std::int64_t seconds);
/// What rfc3339_seconds wrote, as seconds since 1970; empty for anything else.
std::optional<std::int64_t> parse_rfc3339_seconds(std::string_view text);
/// "2026-01-31T12:00:00.123Z": log lines.
std::string rfc3339_millis(wall_time time);
/// "2026-01-31T12:00:00.123456Z", always six decimals: metav1.MicroTime.
std::string rfc3339_micros(wall_time time);

}  // namespace controller
