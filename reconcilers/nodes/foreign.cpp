#include "reconcilers/nodes/foreign.hpp"

#include <algorithm>
#include <array>

#include "api/names.hpp"
#include "quota/vocabulary.hpp"
#include "reconcilers/dialects/plugin_names.hpp"
#include "text/text.hpp"

namespace reconcilers {
namespace {

/// A product without a dialect; the name of GPU-Manager's is a part of its own.
constexpr std::string_view vgpu_manager = "vgpu-manager";
/// Of the same charts, but nothing that registers with the kubelet.
constexpr std::array<std::string_view, 3> companions{"mps-control-daemon", "feature-discovery", "validator"};
constexpr std::string_view gpu_operator_set = "nvidia-device-plugin-daemonset";
/// GPU Operator sets it to "true" on every node with cards, with its device plugin switched off too; "false" keeps the
/// plugin away from a node, and "paused-for-mig-change" takes it away for a while.
constexpr std::string_view gpu_operator_label = "nvidia.com/gpu.deploy.device-plugin";
constexpr std::string_view vgpu_manager_value = "device-plugin";  // of the label of that name

/// Domains by which plugins of others offer NVIDIA's cards.
constexpr std::string_view card_domains[] = {"nvidia.com",
                                             "volcano.sh",
                                             "aliyun.com",
                                             "tencent.com",
                                             "tke.cloud.tencent.com",
                                             "k8s.amazonaws.com",
                                             "nos.nebuly.com",
                                             "cloud-provider.volcengine.com",
                                             "vke.volcengine.com",
                                             "run.ai"};

const kube::owner_ref* daemon_set_of(const kube::pod& pod) {
  const auto match =
      std::ranges::find_if(pod.owners, [](const auto& owner) { return owner.controller && owner.kind == "DaemonSet"; });
  return match == pod.owners.end() ? nullptr : &*match;
}

/// An alias makes such a label ours: its owner's plugin is one of our modules then.
bool asks_us(std::string_view key, std::string_view value, const accelerator_policy* policy) {
  return policy && std::ranges::any_of(policy->enrolment.aliases, [&](const label_alias& label_alias) {
           return label_alias.key == key && text::lower_case(label_alias.value) == value;
         });
}

bool says(const kube::node& node, std::string_view key, std::string_view value) {
  return text::lower_case(node.labels.value_or(key, "")) == value;
}

text::phrase switch_off(const kube::node& node) {
  return {"intent.plugin.switch_off", {{"node", node.key.name}, {"label", std::string(gpu_operator_label)}}};
}

text::phrase remedy_of(const foreign_pod& foreign_pod, const kube::node& node) {
  if (foreign_pod.daemon_set.empty()) return {"intent.plugin.static_pod_remedy"};
  if (foreign_pod.ours_by_name) return {"intent.plugin.ours_by_name_remedy"};
  if (foreign_pod.daemon_set.ends_with("/" + std::string(gpu_operator_set)) && node.labels.contains(gpu_operator_label))
    return switch_off(node);
  return {"intent.plugin.daemon_set_remedy", {{"label", std::string(api::names::taken_over_label)}}};
}

}  // namespace

bool counts_cards(std::string_view resource) {
  if (quota::known(resource)) return true;
  const auto slash = std::min(resource.find('/'), resource.size());
  return std::ranges::find(card_domains, resource.substr(0, slash)) != std::end(card_domains) &&
         text::lower_case(resource.substr(slash)).contains("gpu");
}

std::string_view foreign_product(const kube::pod& pod) {
  if (!pod.mounts_plugin_folder) return {};  // a name is anyone's to choose
  const auto* set = daemon_set_of(pod);
  if (!set && !pod.mirror) return {};
  const std::string_view name = set ? std::string_view(set->name) : std::string_view(pod.key.name);
  const auto in_name = [&](std::string_view part) { return name.contains(part); };
  if (std::ranges::any_of(companions, in_name)) return {};
  if (in_name(vgpu_manager)) return vgpu_manager;
  const auto& known = dialects::plugin_names();
  const auto match = std::ranges::find_if(known, in_name, &dialects::plugin_name::part);
  return match == known.end() ? std::string_view() : match->product;
}

bool of_gpu_operator(const kube::pod& pod) {
  const auto* set = daemon_set_of(pod);
  return pod.mounts_plugin_folder && set && set->name == gpu_operator_set;
}

foreign_pod foreign_pod_of(const kube::pod& pod, std::string_view own_namespace) {
  const auto* set = daemon_set_of(pod);
  return {pod.key.to_string(), set ? pod.key.ns + "/" + set->name : std::string(), foreign_product(pod),
          pod.key.ns == own_namespace};
}

std::vector<foreign_plugin> foreign_plugins(const kube::node& node, const foreign_pods& around,
                                            const accelerator_policy* policy) {
  std::vector<foreign_plugin> out;
  for (const auto& entry : around.here) {
    const bool is_static = entry.daemon_set.empty();
    out.push_back({{is_static ? "intent.plugin.static_pod" : "intent.plugin.daemon_set",
                    {{"name", is_static ? entry.pod : entry.daemon_set}, {"product", std::string(entry.product)}}},
                   remedy_of(entry, node)});
  }
  if (says(node, vgpu_manager, vgpu_manager_value) && !asks_us(vgpu_manager, vgpu_manager_value, policy))
    out.push_back({{"intent.plugin.vgpu_manager"}, {"intent.plugin.vgpu_manager_remedy"}});
  if (out.empty() && around.gpu_operator && wanted_by_gpu_operator(node) &&
      !asks_us(gpu_operator_label, "true", policy))
    out.push_back({{"intent.plugin.gpu_operator",
                    {{"label", std::string(gpu_operator_label)},
                     {"value", std::string(node.labels.value_or(gpu_operator_label, ""))}}},
                   switch_off(node)});
  return out;
}

bool wanted_by_gpu_operator(const kube::node& node) {
  const auto value = text::lower_case(node.labels.value_or(gpu_operator_label, ""));
  return value == "true" || value.starts_with("paused");
}

}  // namespace reconcilers
