#include "cli/controller/policy_part.hpp"

#include <utility>

#include "api/names.hpp"
#include "controller/log.hpp"

namespace cli {
namespace {

kube::object_key policy_object() { return {{}, std::string(api::names::policy)}; }

}  // namespace

policy_part::policy_part(const ground& ground, const reconcilers::node_pods& on_nodes, scheduler_source schedulers)
    : ground_(ground),
      policy_({ground.stores.policies,
               ground.stores.nodes,
               {ground.stores.daemon_sets,
                ground.stores.services,
                ground.stores.service_accounts,
                ground.stores.config_maps,
                {&ground.stores.declared_alauda, &ground.stores.declared_cpaas, &ground.stores.device_configs}}},
              ground.client, ground.events,
              {.ns = ground.options.ns,
               .own_image = ground.options.image,
               .declarations = ground.options.declarations,
               .conditions = [this] { return conditions(); },
               .rollout = [this](const std::string& module) { return rollouts_.look(module); },
               .schedulers = std::move(schedulers),
               .image_registry = ground.options.image_registry}),
      rollouts_({ground.stores.policies, ground.stores.daemon_sets, ground.stores.nodes, ground.stores.pods,
                 ground.stores.accelerator_nodes, on_nodes},
                ground.client, ground.events, {.ns = ground.options.ns, .on_news = [this] { report(); }}) {}

void policy_part::report() { queue_->add(policy_object()); }

void policy_part::report_soon() {
  queue_->add_after(policy_object(), controller::milliseconds(300), parts_->priority());
}

void policy_part::report_trouble(const kube::error& error) {
  const auto* policy = ground_.stores.policies.find(reconcilers::policy_key);
  if (!policy || !parts_->leading()) return;
  const bool is_refused = error.code == kube::errc::forbidden;
  ground_.events.record(
      {kube::resources::accelerator_policies, *policy}, controller::event_type::warning,
      is_refused ? "Forbidden" : "WatchBroken", "Watch",
      is_refused ? error.message + ". Grant the right again (helm upgrade restores the chart's); no restart is needed."
                 : error.message +
                       ". Lists work, so what is known may be minutes old: look for a proxy between here "
                       "and the API server that cuts or holds back streams.");
}

std::optional<controller::condition> policy_part::rights(const std::vector<std::string>& refused) const {
  const auto* policy = ground_.stores.policies.find(reconcilers::policy_key);
  if (!policy || refused.empty()) return std::nullopt;
  return reconcilers::refused_condition(refused, policy->generation);
}

std::vector<controller::condition> policy_part::conditions() const {
  std::vector<controller::condition> out;
  for (const auto& source : conditions_)
    if (auto condition = source()) out.push_back(std::move(*condition));
  return out;
}

void policy_part::join(controller::parts& parts) {
  auto& stores = ground_.stores;
  parts_ = &parts;
  queue_ = &parts.run(policy_)
                .wake(stores.policies, stores.daemon_sets, stores.services, stores.service_accounts, stores.config_maps,
                      stores.declared_alauda, stores.declared_cpaas, stores.device_configs)
                .wake_soon(stores.nodes)
                .queue();
  parts.run(rollouts_, 1)
      .wake(stores.policies, stores.daemon_sets, stores.nodes, stores.pods, stores.accelerator_nodes);
  parts.phases().on_leading([this] {
    if (!ground_.stores.policies.find(reconcilers::policy_key))
      controller::log::info("there is no AcceleratorPolicy named default: nothing is enrolled until one is created");
  });
}

}  // namespace cli
