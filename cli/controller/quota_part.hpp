#pragma once
// The AcceleratorQuotas as a part of the program: their status and their series. Also where no one counts: a quota says
// so then.

#include <functional>
#include <optional>

#include "cli/controller/extender.hpp"
#include "cli/controller/ground.hpp"
#include "cli/controller/scheduler_part.hpp"
#include "controller/parts.hpp"
#include "reconcilers/quotas/quota_status.hpp"

namespace cli {

class quota_part {
 public:
  /// @param extender null: no one counts
  quota_part(const ground& ground, scheduler_part& schedulers, const extender* extender);

  void join(controller::parts& parts);

 private:
  reconcilers::quota_enforcement enforcement();
  kube::task<void> keep();

  ground ground_;
  scheduler_part& schedulers_;
  const extender* extender_;
  reconcilers::quota_status status_;
  controller::milliseconds led_since_{};
};

}  // namespace cli
