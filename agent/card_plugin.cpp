#include "agent/card_plugin.hpp"

#include <algorithm>

#include "agent/agent.hpp"
#include "agent/allocation/offer.hpp"
#include "controller/log.hpp"
#include "controller/sleep.hpp"
#include "controller/teardown.hpp"
#include "text/list.hpp"

namespace agent {
namespace {

namespace log = controller::log;

constexpr controller::milliseconds look_period{1'000};
constexpr std::string_view visible_devices = "NVIDIA_VISIBLE_DEVICES";

/// NVIDIA's runtime reads it; what CDI sets is stronger than what the pod says.
std::expected<allocation::container_edits, std::string> visible_cards(const allocation::container_start& start) {
  std::vector<std::string> uuids;
  for (const auto& share : start.shares) uuids.push_back(share.card);
  allocation::container_edits out;
  out.environment[std::string(visible_devices)] = text::joined(uuids, ",");
  return out;
}

}  // namespace

card_plugin::card_plugin(card_plugin_options options, kube::cluster_config cluster)
    : options_(std::move(options)),
      boot_(boot_of_machine()),
      wire_(loop_.executor(), std::move(cluster)),
      starter_(
          loop_.executor(),
          {.resource = {options_.resource, allocation::device_unit::card},
           .node = options_.node,
           .plugin_folder = options_.plugin_folder,
           .pod_resources = options_.pod_resources,
           .cdi_folder = options_.cdi_folder,
           // containerd 1.7 skips CDI names unless it is set up for them, and an image may ask for all cards.
           .without_cards = {{std::string(visible_devices), "void"}}},
          pods_, [this] { return cards(); }, visible_cards),
      plugin_(loop_.executor(), starter_,
              {.folder = options_.plugin_folder,
               .endpoint = "quartermaster-" + std::to_string(::getpid()) + ".sock",
               .resource = options_.resource}) {
  nodes_.observe([this](const auto*, const auto*) { offer(); });
}

std::vector<quota::card> card_plugin::cards() const {
  std::vector<quota::card> out;
  const auto* node = nodes_.find({{}, options_.node});
  if (!node || node->boot != boot_) return out;
  auto reported = node->cards;
  std::ranges::sort(reported, {}, &api::reported_card::index);
  for (const auto& card : reported)
    out.push_back({.uuid = card.uuid,
                   .model = card.model,
                   .memory_mib = card.memory_mib,
                   .numa = card.numa,
                   .healthy = card.healthy(),
                   .mig = card.mig,
                   .minor = card.index});
  return out;
}

void card_plugin::offer() {
  if (!pods_.synced()) return;
  const auto known = cards();
  const bool all_well = std::ranges::all_of(known, &quota::card::usable);
  std::vector<const kube::running_pod*> pods;
  for (const auto& pod : pods_.all()) pods.push_back(&pod);
  allocation::node_records records{.node = options_.node, .recorded = {}, .listed = {}, .pods = pods, .cards = known};
  // Which pod has which device matters only where some are to be withdrawn; the file is the kubelet's, and not small.
  std::expected<std::vector<kubelet::recorded_devices>, std::string> record;
  if (!all_well) record = starter_.recorded();
  if (record) records.recorded = *record;
  plugin_.offer(allocation::offered_devices({options_.resource, allocation::device_unit::card}, records));
}

boost::asio::awaitable<void> card_plugin::look_after() {
  std::string trouble;
  for (;;) {
    starter_.clear_made();
    offer();
    if (plugin_.trouble() != trouble) {
      trouble = plugin_.trouble();
      if (!trouble.empty()) log::warn("the kubelet does not take the device plugin", {{"error", trouble}});
    }
    const bool went_on = co_await controller::sleep_for(look_period);
    if (!went_on) co_return;
  }
}

kube::result<void> card_plugin::run() {
  if (const auto done = starter_.begin(); !done)
    return std::unexpected(kube::error{kube::errc::config, 0, "agent plugin: " + done.error(), std::nullopt});
  loop_.stop_on_signals([this] { loop_.quit(); });
  kube::watch_settings pods, own;
  pods.field_selector = "spec.nodeName=" + options_.node;
  own.field_selector = "metadata.name=" + options_.node;
  loop_.spawn_essential("pods", controller::reflect<kube::running_pod>(wire_, pods, pods_, reflector_metrics_));
  loop_.spawn_essential("acceleratornodes",
                        controller::reflect<api::accelerator_node>(wire_, own, nodes_, reflector_metrics_));
  loop_.spawn_essential("look_after", look_after());
  loop_.spawn_essential("plugin", plugin_.run());
  log::info("starting", {{"version", QUARTERMASTER_VERSION}, {"node", options_.node}, {"resource", options_.resource}});
  loop_.run();
  controller::destroy_waiting(loop_.context());
  log::flush();
  return {};
}

}  // namespace agent
