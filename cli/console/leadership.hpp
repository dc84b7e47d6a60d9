#pragma once
// Whether an operator leads, as the console sees it: by the change of the lease, because clocks differ. Pure: looks go
// in with the time, the answer comes out. A look that fails says nothing about the operator: an operator cannot renew a
// lease of an API server that does not answer.

#include <cstdint>
#include <optional>

#include "controller/clock.hpp"
#include "kube/projections/lease.hpp"

namespace cli::console {

class leadership {
 public:
  /// A look comes every `period`.
  explicit leadership(controller::milliseconds period) : period_(period) {}

  /// What a look has found; empty: there is no lease. `wall_us`: microseconds since 1970, by our clock.
  void see(std::optional<kube::lease> lease, controller::milliseconds now, std::int64_t wall_us);
  /// A look has failed. The last answer stays.
  void lose(controller::milliseconds now) { lost_ = lost_.value_or(now); }

  /// For how long no one has led; empty: someone leads, or that is not known. The time is from the last renewal that
  /// was seen. Of a lease that has never changed while we looked, it is what the holder's clock says.
  std::optional<controller::milliseconds> leaderless(controller::milliseconds now) const;

 private:
  controller::milliseconds patience() const;
  bool is_over(controller::milliseconds now) const { return has_looked_ && now - changed_ > patience(); }

  controller::milliseconds period_, changed_{0}, stale_before_{0};
  std::optional<kube::lease> last_;
  std::optional<controller::milliseconds> lost_;  ///< the first look that failed since the last that did not
  bool has_looked_ = false;
};

}  // namespace cli::console
