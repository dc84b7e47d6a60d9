#include "cli/controller/ledger_part.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "reconcilers/usage/allocation_metrics.hpp"

namespace cli {

reconcilers::extender::account::stores ledger_stores(stores& stores) {
  return {stores.pods,   stores.nodes,      stores.policies,         stores.compiled_rules,
          stores.quotas, stores.old_quotas, stores.accelerator_nodes};
}

ledger_part::ledger_part(const ground& ground, settings settings)
    : ground_(ground),
      account_(ledger_stores(ground.stores), ground.metrics, ground.options.ns),
      recorder_({ground.stores.pods, ground.stores.nodes, ground.stores.accelerator_nodes, ground.stores.name_spaces,
                 ground.stores.policies, account_, std::move(settings.now), std::move(settings.watching)}),
      keeper_(ground.client, recorder_, ground.metrics,
              {.period = std::chrono::seconds(ground.options.usage_checkpoint_seconds)}) {}

kube::task<void> ledger_part::audit() {
  for (;;) {
    const bool is_awake = co_await controller::sleep_for(std::chrono::seconds(60));
    if (!is_awake) co_return kube::result<void>();
    if (const auto repaired = account_.audit(); repaired > 0)
      controller::log::warn("the ledger differed from the API and was repaired",
                            {{"entries", std::to_string(repaired)}});
  }
}

void ledger_part::join(controller::parts& parts) {
  parts.lead("ledger", [this] { return audit(); });
  // Replicas that do not lead watch, too.
  parts.phases().add_always("usage", [this] { return keeper_.watch(ground_.stores.usages); });
  parts.lead("usage", [this] { return keeper_.lead(); });
  parts.phases().before_release([this] { return keeper_.flush(); });
  parts.write([this](controller::metric_text& text, bool is_leader) {
    const auto* policy = ground_.stores.policies.find(reconcilers::policy_key);
    reconcilers::usage::write_allocation_metrics(
        is_leader, account_, ground_.stores.pods, [this](std::string_view ns) { return recorder_.organization(ns); },
        policy ? &policy->chargeback : nullptr, text);
  });
}

}  // namespace cli
