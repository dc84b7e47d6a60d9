// GPU-Manager (module vgpu, unless our own plugin serves its names): cores and memory of cards, which its plugin
// chooses again by itself when the kubelet asks it (quota/forecast.hpp; its pkg/device/nvidia/tree.go). It numbers
// cards by /dev/nvidiaN, and containers by their place in spec.containers. It takes the pod with the oldest predicate
// time for the one that the kubelet has just admitted. What it took it writes on the pod.

#include <nlohmann/json.hpp>

#include "kube/json_text.hpp"
#include "reconcilers/dialects/card_words.hpp"
#include "reconcilers/dialects/module_settings.hpp"
#include "reconcilers/dialects/plugin_names.hpp"

namespace reconcilers::dialects {
namespace {

using nlohmann::json;

constexpr std::string_view vcuda_cores = "tencent.com/vcuda-core", vcuda_memory = "tencent.com/vcuda-memory",
                           gpu_index = "tencent.com/predicate-gpu-idx-", gpu_assigned = "tencent.com/gpu-assigned",
                           predicate = "tencent.com/predicate-";

/// Its place in spec.containers; init containers have none.
std::optional<std::size_t> index_in_spec(const kube::container& container, const kube::pod& pod) {
  std::size_t index = 0;
  for (const auto& each : pod.containers) {
    if (each.kind != kube::container::role::main) continue;
    if (&each == &container) return index;
    ++index;
  }
  return {};
}

std::vector<std::string_view> gpu_manager_numbers(const kube::pod& pod, const kube::container& container) {
  const auto index = index_in_spec(container, pod);
  if (!index) return {};
  return parts_of(pod.annotations.value_or(std::string(gpu_index) + std::to_string(*index), ""), ',');
}

class gpu_manager_plugin final : public dialect {
 public:
  quota::mode engine_mode() const override { return quota::mode::vgpu; }
  std::span<const way> ways() const override {
    static constexpr way list[] = {{"vgpu", vcuda_cores}};
    return list;
  }
  void read_service(quota::service& out, const kube::node& node, const accelerator_policy* policy) const override {
    out.plugin_chooses = module_settings(node, policy, "vgpu").text("plugin") != "quartermaster";
    if (out.plugin_chooses) return;
    out.held_by = quota::isolation::mps;
    out.one_card = true;
  }
  offer offered(const kube::node& node, const quota::service& serves) const override {
    const auto cards = kube::amount(node.allocatable, vcuda_cores) / 100;
    const auto memory = kube::amount(node.allocatable, vcuda_memory) * 256;
    return {.cards = cards,
            .memory_mib = share_of(memory, cards),
            .max_sharers = serves.one_card ? clients_of_mps(node) : 100};
  }

  void write(json& annotations, const quota::holding& held, const pod_on_node& here,
             std::int64_t now_ns) const override {
    if (!here.node.serves.plugin_chooses) return;  // our own plugin reads the placement
    annotations["tencent.com/predicate-time"] = std::to_string(now_ns);
    annotations["tencent.com/predicate-node"] = held.node;
    annotations[gpu_assigned] = "false";
    for (std::size_t i = 0; i < here.containers.size(); ++i) {
      std::vector<std::size_t> cards;
      for (const auto& grant : held.grants)
        if (grant.container == i) cards.push_back(card_number(here.node, grant.card));
      const auto index = index_in_spec(*here.containers[i], here.pod);
      if (index && !cards.empty()) annotations[std::string(gpu_index) + std::to_string(*index)] = list_of(cards);
    }
  }
  bool writes(std::string_view annotation) const override {
    return annotation.starts_with(predicate) || annotation == gpu_assigned;
  }
  bool has_chosen(const kube::pod& pod) const override { return pod.annotations.value_or(gpu_assigned, "") == "true"; }
  std::optional<quota::holding> read(const pod_on_node& here, const quota::demand& needs) const override {
    return read_numbers(here, needs, gpu_manager_numbers);
  }
  std::vector<std::string> named_cards(const kube::pod& pod) const override {
    std::vector<std::string> out;
    for (const auto& [key, value] : pod.annotations)
      if (key.starts_with(gpu_index))
        for (const auto number : parts_of(value, ','))
          if (!number.empty()) out.emplace_back(number);
    return out;
  }

  bool finds_pods_by_time() const override { return true; }
};

}  // namespace

std::vector<plugin_name> gpu_manager_plugins() { return {{"gpu-manager", "GPU-Manager"}}; }

const dialect& gpu_manager() {
  static const gpu_manager_plugin plugin;
  return plugin;
}

}  // namespace reconcilers::dialects
