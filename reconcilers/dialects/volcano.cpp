// Volcano's vGPU: slots of cards, told to its plugin by Volcano's own scheduler.

#include <algorithm>

#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/dialects/module_settings.hpp"
#include "reconcilers/dialects/plugin_names.hpp"

namespace reconcilers::dialects {
namespace {

class volcano_plugin final : public dialect {
 public:
  quota::mode engine_mode() const override { return quota::mode::volcano; }
  std::span<const way> ways() const override {
    static constexpr way list[] = {{"", slot_key}};
    return list;
  }
  offer offered(const kube::node& node, const quota::service&) const override {
    const auto slots = std::max(kube::amount(node.allocatable, shared_key), kube::amount(node.allocatable, slot_key));
    const auto labelled = number_of(node.labels.find("nvidia.com/gpu.count"));
    const auto cards = labelled > 0 ? labelled : slots / slots_of_card;
    return {.cards = cards, .max_sharers = static_cast<std::int32_t>(share_of(slots, cards))};
  }

 private:
  static constexpr std::string_view slot_key = "volcano.sh/vgpu-number";
  /// The plugin's --device-split-count, where no label counts the cards: its manifests say 10. The program without the
  /// flag makes 2 slots; there the label has to be set.
  static constexpr std::int64_t slots_of_card = 10;
};

}  // namespace

std::vector<plugin_name> volcano_plugins() { return {{"volcano-device-plugin", "Volcano"}}; }

const dialect& volcano() {
  static const volcano_plugin plugin;
  return plugin;
}

}  // namespace reconcilers::dialects
