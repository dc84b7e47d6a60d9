#include "cli/console/leadership.hpp"

#include <algorithm>
#include <chrono>

namespace cli::console {

using controller::milliseconds;

void leadership::see(std::optional<kube::lease> lease, milliseconds now, std::int64_t wall_us) {
  const bool is_first = !has_looked_;
  const bool is_same = !is_first && last_.has_value() == lease.has_value() &&
                       (!lease || (last_->renewed_us == lease->renewed_us && last_->holder == lease->holder));
  if (!is_same || (lost_ && !is_over(*lost_))) changed_ = now;
  if (!is_same) {
    stale_before_ = milliseconds(0);
    if (is_first && lease && lease->renewed_us > 0)
      stale_before_ = std::max(milliseconds(0), milliseconds((wall_us - lease->renewed_us) / 1000));
  }
  last_ = std::move(lease);
  has_looked_ = true;
  lost_.reset();
}

/// Where a lease was released, the next operator takes it at once.
milliseconds leadership::patience() const {
  if (!last_ || last_->holder.empty()) return period_;
  return std::chrono::seconds(last_->duration_seconds) + period_;
}

std::optional<milliseconds> leadership::leaderless(milliseconds now) const {
  if (!is_over(lost_.value_or(now))) return std::nullopt;
  return now - changed_ + stale_before_;
}

}  // namespace cli::console
