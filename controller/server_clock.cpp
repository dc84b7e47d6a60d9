#include "controller/server_clock.hpp"

#include <algorithm>

namespace controller {
namespace {

constexpr milliseconds window{60'000};
constexpr std::int64_t last_date = 253'402'300'799;  // of the year 9999

}  // namespace

void server_clock::saw(std::int64_t date, milliseconds steady) {
  if (date <= 0 || date > last_date) return;
  const milliseconds ahead = std::chrono::seconds(date) - steady;
  if (!samples_.empty()) reached_ = std::max(reached_, samples_.front().ahead + steady);
  while (!samples_.empty() && samples_.back().ahead <= ahead) samples_.pop_back();
  samples_.push_back({steady, ahead});
  while (samples_.front().taken < steady - window) samples_.pop_front();
}

std::optional<std::int64_t> server_clock::now(milliseconds steady) const {
  if (samples_.empty()) return std::nullopt;
  return std::chrono::floor<std::chrono::seconds>(std::max(reached_, samples_.front().ahead + steady)).count();
}

}  // namespace controller
