#include "controller/clock.hpp"

#include <fmt/format.h>
#include <algorithm>

#include <ctime>

#include "kube/rfc3339.hpp"

namespace controller {

milliseconds boot_now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::duration_cast<milliseconds>(std::chrono::seconds(now.tv_sec) +
                                                  std::chrono::nanoseconds(now.tv_nsec));
}

namespace {

struct parts {
  std::tm date{};
  long micros = 0;
};

parts split(wall_time time) {
  const auto since = std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch());
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const std::time_t whole = seconds.count();
  parts out;
  gmtime_r(&whole, &out.date);
  out.micros = (since - seconds).count();
  return out;
}

std::string text(const parts& p, std::string_view fraction) {
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", p.date.tm_year + 1900, p.date.tm_mon + 1, p.date.tm_mday,
                     p.date.tm_hour, p.date.tm_min, p.date.tm_sec, fraction);
}

}  // namespace

std::string rfc3339_seconds(wall_time time) { return text(split(time), ""); }

std::optional<std::int64_t> parse_rfc3339_seconds(std::string_view text) { return kube::parse_rfc3339(text); }

std::string rfc3339_millis(wall_time time) {
  const auto p = split(time);
  return text(p, fmt::format(".{:03}", p.micros / 1000));
}

std::string rfc3339_micros(wall_time time) {
  const auto p = split(time);
  return text(p, fmt::format(".{:06}", p.micros));
}

std::int64_t wall_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string rfc3339_seconds(std::int64_t seconds) {
  return rfc3339_seconds(wall_time(std::chrono::seconds(std::min<std::int64_t>(seconds, INT64_MAX / 1'000'000'000))));
}

}  // namespace controller
