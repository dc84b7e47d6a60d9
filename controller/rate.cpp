#include "controller/rate.hpp"

#include <algorithm>
#include <cmath>

namespace controller {

std::optional<std::chrono::seconds> rate::ask(const std::string& name, milliseconds now) {
  if (!buckets_.contains(name) && buckets_.size() >= settings_.most) forget_the_idle(now);
  auto& bucket = buckets_.try_emplace(name, settings_.burst, now).first->second;
  const auto passed = std::chrono::duration<double>(now - bucket.since).count();
  bucket.left = std::min(settings_.burst, bucket.left + std::max(passed, 0.0) * settings_.per_second);
  bucket.since = now;
  if (bucket.left >= 1) {
    bucket.left -= 1;
    return std::nullopt;
  }
  return std::chrono::seconds(static_cast<int>(std::ceil((1 - bucket.left) / settings_.per_second)));
}

void rate::forget_the_idle(milliseconds now) {
  // A full bucket and one that is not there are the same.
  const auto full_after = std::chrono::duration<double>(settings_.burst / settings_.per_second);
  std::erase_if(buckets_, [&](const auto& entry) { return now - entry.second.since >= full_after; });
  if (buckets_.size() < settings_.most) return;
  const auto oldest = std::ranges::min_element(buckets_, {}, [](const auto& entry) { return entry.second.since; });
  buckets_.erase(oldest);
}

}  // namespace controller
