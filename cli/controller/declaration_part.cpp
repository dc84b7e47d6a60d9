#include "cli/controller/declaration_part.hpp"

#include <string>
#include <utility>
#include <vector>

#include "text/text.hpp"

namespace cli {
namespace {

reconcilers::declarations::parse_settings reading(const std::string& ns) {
  reconcilers::declarations::parse_settings out;
  out.ns = ns;
  return out;
}

}  // namespace

declaration_part::declaration_part(const ground& ground, node_part& nodes, settings settings)
    : ground_(ground),
      nodes_(nodes),
      judge_({&ground.stores.declared_alauda, &ground.stores.declared_cpaas, &ground.stores.device_configs},
             ground.client, ground.events, reading(ground.options.declarations), &ground.stores.runtime_classes,
             &ground.stores.compiled_rules),
      rules_({ground.stores.policies, ground.stores.nodes, ground.stores.compiled_rules}, judge_, ground.client,
             {.filled_by_policies = std::move(settings.filled_by_policies),
              .on_state = std::move(settings.on_state),
              .sends = std::move(settings.sends)}) {}

void declaration_part::compile() { queue_->add(api::compiled_rules::only()); }

/// The labels that device configurations name ask for one of our modes where the device is one.
void declaration_part::declare_labels() {
  std::vector<reconcilers::label_alias> labels;
  for (const auto& device : judge_.devices())
    if (device.sound) labels.push_back({device.label_key, device.label_value, text::lower_case(device.name)});
  nodes_.declare(std::move(labels));
}

void declaration_part::join(controller::parts& parts) {
  auto& stores = ground_.stores;
  parts.run(judge_).wake(stores.declared_alauda, stores.declared_cpaas, stores.device_configs, stores.runtime_classes,
                         stores.compiled_rules);
  queue_ = &parts.run(rules_, 1)
                .wake(stores.declared_alauda, stores.declared_cpaas, stores.device_configs, stores.runtime_classes,
                      stores.policies, stores.nodes, stores.compiled_rules)
                .queue();
  stores.device_configs.observe([this](const auto*, const auto*) { declare_labels(); });
}

}  // namespace cli
