// gpushare and ACK's shares by memory (module gpushare): an amount of memory in all, spread evenly over as many cards
// as a label of the pod says. gpushare's plugin reads the number of one card from a pod, which it finds by one
// container's amount: the oldest of those that ask for as much. ACK's own driver keeps shares apart and reads several.
// Our own plugin reads the placement, and MPS holds a container on one card.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "reconcilers/dialects/card_words.hpp"
#include "reconcilers/dialects/module_settings.hpp"
#include "reconcilers/dialects/plugin_names.hpp"

namespace reconcilers::dialects {
namespace {

using nlohmann::json;

constexpr std::string_view gpu_mem = "aliyun.com/gpu-mem", gpu_count = "aliyun.com/gpu-count",
                           mem_index = "ALIYUN_COM_GPU_MEM_IDX", annotation_prefix = "ALIYUN_COM_GPU_MEM_",
                           ack_label = "ack.node.gpu.schedule";

std::vector<std::string_view> gpushare_numbers(const kube::pod& pod, const kube::container&) {
  return parts_of(pod.annotations.value_or(mem_index, ""), ',');
}

class gpushare_plugin final : public dialect {
 public:
  quota::mode engine_mode() const override { return quota::mode::memory_shares; }
  std::span<const way> ways() const override {
    static constexpr way list[] = {{"gpushare", gpu_mem}};
    return list;
  }
  void read_service(quota::service& out, const kube::node& node, const accelerator_policy* policy) const override {
    const module_settings settings(node, policy, "gpushare");
    out.memory_unit_mib = settings.text("memoryUnit") == "MiB" ? 1 : 1024;
    if (node.labels.contains(api::names::module_label) && settings.text("plugin") == "quartermaster") {
      out.held_by = quota::isolation::mps;
      out.one_card = true;
      return;
    }
    if (settings.text("mps") == "true") out.held_by = quota::isolation::mps;
    const auto ack = node.labels.value_or(ack_label, "");
    const bool by_ack = !node.labels.contains(api::names::module_label) && !ack.empty();
    if (by_ack && (ack == "cgpu" || ack == "core_mem")) out.held_by = quota::isolation::soft;
    out.one_index = !by_ack;
  }
  offer offered(const kube::node& node, const quota::service& serves) const override {
    const auto cards = kube::amount(node.allocatable, gpu_count);
    const auto memory = kube::amount(node.allocatable, gpu_mem) * serves.memory_unit_mib;
    return {.cards = cards,
            .memory_mib = share_of(memory, cards),
            .max_sharers = serves.one_card ? clients_of_mps(node) : 100};
  }

  void write(json& annotations, const quota::holding& held, const pod_on_node& here,
             std::int64_t now_ns) const override {
    if (here.node.serves.one_card) return;
    std::vector<std::size_t> cards;
    std::int64_t all = 0, device = 0;
    for (const auto& grant : held.grants) {
      const auto number = card_number(here.node, grant.card);
      if (std::ranges::find(cards, number) == cards.end()) cards.push_back(number);
      all += grant.memory_mib;
      if (const auto position = card_at(here.node, grant.card); position < here.node.cards.size())
        device = here.node.cards[position].memory_mib;
    }
    const auto unit = std::max(here.node.serves.memory_unit_mib, 1);
    annotations[mem_index] = list_of(cards);
    annotations["ALIYUN_COM_GPU_MEM_POD"] = std::to_string(all / unit);
    annotations["ALIYUN_COM_GPU_MEM_DEV"] = std::to_string(device / unit);
    annotations["ALIYUN_COM_GPU_MEM_ASSIGNED"] = "false";
    annotations["ALIYUN_COM_GPU_MEM_ASSUME_TIME"] = std::to_string(now_ns);
  }
  bool writes(std::string_view annotation) const override { return annotation.starts_with(annotation_prefix); }
  std::optional<quota::holding> read(const pod_on_node& here, const quota::demand& needs) const override {
    return read_numbers(here, needs, gpushare_numbers);
  }
  std::vector<std::string> named_cards(const kube::pod& pod) const override {
    std::vector<std::string> out;
    for (const auto number : parts_of(pod.annotations.value_or(mem_index, ""), ','))
      if (!number.empty()) out.emplace_back(number);
    return out;
  }

  bool finds_pods_by_time() const override { return true; }
};

}  // namespace

std::vector<plugin_name> gpushare_plugins() { return {{"gpushare-device-plugin", "gpushare"}}; }

const dialect& gpushare() {
  static const gpushare_plugin plugin;
  return plugin;
}

}  // namespace reconcilers::dialects
