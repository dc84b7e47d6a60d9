// NVIDIA's plugin: whole cards (module pgpu), or replicas of them that take turns (module share). It picks cards by
// itself and reads nothing of a decision.

#include <algorithm>

#include "api/names.hpp"
#include "reconcilers/dialects/dialect.hpp"
#include "reconcilers/dialects/module_settings.hpp"
#include "reconcilers/dialects/plugin_names.hpp"

namespace reconcilers::dialects {
namespace {

bool time_sliced(const kube::node& node) {
  return node.labels.value_or("nvidia.com/gpu.sharing-strategy", "none") == "time-slicing" ||
         number_of(node.labels.find("nvidia.com/gpu.replicas")) > 1;
}

class whole_card_plugin final : public dialect {
 public:
  quota::mode engine_mode() const override { return quota::mode::pgpu; }
  std::span<const way> ways() const override {
    static constexpr way list[] = {{"pgpu", shared_key}};
    return list;
  }
  bool means_shared_key(const kube::node&) const override { return true; }
  offer offered(const kube::node& node, const quota::service&) const override {
    return {.cards = kube::amount(node.allocatable, shared_key)};
  }
};

class time_slice_plugin final : public dialect {
 public:
  quota::mode engine_mode() const override { return quota::mode::share; }
  std::span<const way> ways() const override {
    static constexpr way list[] = {{"share", replica_key}, {"share", shared_key}};
    return list;
  }
  bool means_shared_key(const kube::node& node) const override { return time_sliced(node); }
  void read_service(quota::service& out, const kube::node& node, const accelerator_policy* policy) const override {
    if (node.labels.value_or(api::names::module_label, "") == "share")
      out.one_replica = module_settings(node, policy, "share").text("failRequestsGreaterThanOne") == "true";
  }
  offer offered(const kube::node& node, const quota::service&) const override {
    const auto replicas =
        std::max(kube::amount(node.allocatable, replica_key), kube::amount(node.allocatable, shared_key));
    const auto labelled = number_of(node.labels.find("nvidia.com/gpu.count"));
    const auto cards = labelled > 0 ? labelled : 1;
    return {.cards = cards, .max_sharers = static_cast<std::int32_t>(share_of(replicas, cards))};
  }

 private:
  static constexpr std::string_view replica_key = "nvidia.com/gpu.shared";
};

}  // namespace

std::vector<plugin_name> nvidia_plugins() {
  constexpr auto product = "NVIDIA's device plugin";
  return {{"nvidia-device-plugin", product},
          {"nvidia-gpu-device-plugin", product},  // GKE
          {"nvidia-mps-device-plugin", product}};
}

const dialect& whole_cards() {
  static const whole_card_plugin plugin;
  return plugin;
}

const dialect& time_slices() {
  static const time_slice_plugin plugin;
  return plugin;
}

}  // namespace reconcilers::dialects
