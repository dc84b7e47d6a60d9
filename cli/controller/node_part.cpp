#include "cli/controller/node_part.hpp"

#include <chrono>
#include <utility>

namespace cli {

node_part::node_part(const ground& ground, settings settings)
    : ground_(ground),
      enrolment_({ground.stores.policies, ground.stores.nodes, ground.stores.pods, ground.stores.accelerator_nodes},
                 ground.client, ground.events,
                 {.ns = ground.options.ns,
                  .wake = [this](const kube::object_key& node) { queue_->add(node); },
                  .isolates = std::move(settings.isolates),
                  .awaits_policy = std::move(settings.awaits_policy)}),
      restore_(ground.stores.nodes, ground.stores.accelerator_nodes, ground.client, ground.events),
      runtime_fixer_(
          {ground.stores.policies, ground.stores.nodes, ground.stores.pods, ground.stores.accelerator_nodes},
          ground.client, ground.events,
          {.ns = ground.options.ns, .own_image = ground.options.image, .on_state = std::move(settings.on_state)}),
      report_age_({ground.stores.nodes, ground.stores.pods, ground.stores.accelerator_nodes}, ground.client,
                  ground.events,
                  {.ns = ground.options.ns, .grace = std::chrono::seconds(ground.options.agent_grace_seconds)}),
      labeler_(ground.stores.nodes, ground.stores.accelerator_nodes, ground.stores.policies, ground.client) {}

void node_part::look_at(const std::vector<kube::object_key>& nodes) {
  for (const auto& node : nodes) queue_->add(node, parts_->priority());
}

void node_part::declare(std::vector<reconcilers::label_alias> labels) {
  look_at(enrolment_.declare(std::move(labels)));
}

void node_part::isolate() { look_at(enrolment_.isolation_changed()); }

void node_part::join(controller::parts& parts) {
  auto& stores = ground_.stores;
  parts_ = &parts;
  queue_ = &parts.run(enrolment_, 4).wake(stores.policies, stores.nodes, stores.pods, stores.accelerator_nodes).queue();
  parts.run(restore_).wake(stores.nodes, stores.accelerator_nodes);
  parts.run(runtime_fixer_, 1).wake(stores.policies, stores.pods).wake_soon(stores.nodes, stores.accelerator_nodes);
  parts.run(report_age_, 1).wake(stores.pods, stores.accelerator_nodes);
  parts.run(labeler_).wake(stores.policies, stores.nodes, stores.accelerator_nodes);
  parts.write([&stores](controller::metric_text& text, bool) {
    reconcilers::write_report_metrics(stores.accelerator_nodes, text);
  });
}

}  // namespace cli
