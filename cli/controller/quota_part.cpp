#include "cli/controller/quota_part.hpp"

#include <chrono>
#include <set>
#include <string>

#include "api/names.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "reconcilers/quotas/quota_metrics.hpp"

namespace cli {
namespace {

/// A kube-scheduler that was set up by hand asks when a pod with cards waits.
constexpr controller::milliseconds patience_with_schedulers = std::chrono::hours(1);

}  // namespace

quota_part::quota_part(const ground& ground, scheduler_part& schedulers, const extender* extender)
    : ground_(ground),
      schedulers_(schedulers),
      extender_(extender),
      status_(reconcilers::quota_status::dependencies{
          ground.client, ground.stores.quotas, extender ? &extender->limits() : nullptr,
          [extender] { return extender ? extender->held_back() : reconcilers::held_back_by_namespace(); },
          [this] { return enforcement(); }, extender ? &extender->cards() : nullptr, ground.events}) {}

reconcilers::quota_enforcement quota_part::enforcement() {
  if (!extender_) return {false, "ExtenderOff", {"status.quota.extender_off"}};
  const auto* rules = ground_.stores.compiled_rules.find(api::compiled_rules::only());
  if (schedulers_.sends().value_or(rules && rules->sends_pods()))
    return {true, std::string(api::names::own_scheduler_asks), {"status.quota.own_scheduler"}};
  const auto on_control_plane = schedulers_.state();
  if (extender_->asked() || (on_control_plane && on_control_plane->status == "True"))
    return {true, std::string(reconcilers::scheduler_asks), {"status.quota.scheduler_asks"}};
  return {false,
          "NoSchedulerAsks",
          {"status.quota.no_scheduler"},
          controller::boot_now() - led_since_ < patience_with_schedulers};
}

kube::task<void> quota_part::keep() {
  for (;;) {
    const bool is_awake = co_await controller::sleep_for(std::chrono::seconds(2));
    if (!is_awake) co_return kube::result<void>();
    const auto outcome = co_await status_.turn();
    if (!outcome) controller::log::warn("the status of quotas cannot be written", {{"error", outcome.error().message}});
  }
}

void quota_part::join(controller::parts& parts) {
  parts.lead("quota_status", [this] {
    led_since_ = controller::boot_now();
    return keep();
  });
  parts.write([this](controller::metric_text& text, bool is_leader) {
    reconcilers::write_quota_metrics(is_leader && extender_ ? &extender_->limits() : nullptr, ground_.stores.quotas,
                                     text);
  });
}

}  // namespace cli
