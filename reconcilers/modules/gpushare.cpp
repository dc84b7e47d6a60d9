// gpushare: shares of a card by memory, by Alibaba's device plugin (AliyunContainerService/gpushare-device-plugin,
// device-plugin-ds.yaml and device-plugin-rbac.yaml): aliyun.com/gpu-mem in GiB or MiB, aliyun.com/gpu-count cards. It
// limits nothing inside a container unless MPS does. Narrower than upstream: the token of its ServiceAccount (rights in
// the chart) instead of the kubelet's own kubeconfig.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/publish.hpp"
#include "reconcilers/modules/settings.hpp"

namespace reconcilers::modules {
namespace {
namespace gpushare_plugin {

using nlohmann::json;
using kind = setting::kind;

constexpr std::string_view values[] = {"gpushare"};
constexpr std::string_view resources[] = {"aliyun.com/gpu-mem", "aliyun.com/gpu-count"};
/// It patches the number of cards into Node.status and never takes it back (podmanager.go, patchGPUCount).
constexpr std::string_view left_behind[] = {"aliyun.com/gpu-count"};
constexpr std::string_view architectures[] = {"amd64"};
constexpr std::string_view name = "gpushare-device-plugin-ds";
constexpr std::string_view account = "gpushare-device-plugin";
constexpr std::string_view image = "registry.cn-beijing.aliyuncs.com/acs/k8s-gpushare-plugin:v1.0.0-2656995-aliyun";
constexpr std::string_view pipe = "/root/nvidia-mps";

constexpr std::string_view units[] = {"GiB", "MiB"};
constexpr setting known_settings[] = {
    {.name = "memoryUnit", .type = kind::word, .fallback = "GiB", .words = units},
    // Clients of an MPS server that runs on the node; it is not started by the plugin.
    {.name = "mps", .type = kind::flag, .fallback = "false"},
};

bool with_mps(const module_spec& spec) { return flag_of(known_settings, spec, "mps"); }
isolation isolates(const module_spec& spec) { return with_mps(spec) ? isolation::mps : isolation::none; }

std::vector<json> objects(const module_spec& spec, const facts&) {
  json command = {"gpushare-device-plugin-v2", "-logtostderr", "--v=5",
                  "--memory-unit=" + setting_of(known_settings, spec, "memoryUnit"),
                  std::string("--mps=") + (with_mps(spec) ? "true" : "false")};
  json plugin = {
      {"name", "gpushare"},
      {"image", image_of(spec, image)},
      {"env", nvidia_variables()},
      {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}}},
      {"securityContext", confined()},
      {"volumeMounts", {mount("device-plugins", plugin_folder, false)}},
  };
  plugin["env"].push_back(node_name_variable());
  auto volumes = json::array({host_path("device-plugins", plugin_folder, "Directory")});
  if (with_mps(spec)) {
    command.push_back("--mps-pipe=" + std::string(pipe));
    plugin["volumeMounts"].push_back(mount("mps-pipe", pipe, true));
    volumes.push_back(host_path("mps-pipe", pipe, "Directory"));
  }
  plugin["command"] = std::move(command);
  if (!spec.args.empty()) plugin["args"] = json::parse(spec.args);
  auto set = daemon_set("gpushare", name, spec, json::array({std::move(plugin)}), std::move(volumes),
                        {"nvidia.com/gpu", "aliyun.com/gpu-mem"});
  auto& pod = set["spec"]["template"]["spec"];
  pod["hostNetwork"] = true;
  pod["dnsPolicy"] = "ClusterFirstWithHostNet";
  pod["serviceAccountName"] = account;
  pod["automountServiceAccountToken"] = true;
  return {service_account(account), std::move(set)};
}

std::vector<json> declarations(const module_spec& spec, const facts&) {
  const published group{"gpushare", "GPU Share", "GPU 显存共享"};
  resource_declaration memory;
  memory.config_map = "cf-crl-gpushare-gpu-mem";
  memory.key = "aliyun.com/gpu-mem";
  memory.default_value = setting_of(known_settings, spec, "memoryUnit") == "GiB" ? "3" : "3072";
  memory.unit = setting_of(known_settings, spec, "memoryUnit");
  memory.label_en = "GPU memory";
  memory.label_zh = "GPU 显存";
  memory.description_en = "memory of one card, by which pods share it; counted, not kept apart";
  memory.description_zh = "单卡显存，按显存共享；仅计量，不隔离";
  return {declaration(group, memory), device_config(group)};
}

}  // namespace gpushare_plugin
}  // namespace

constinit const module_type gpushare = {
    .name = "gpushare",
    .title = "shares of a card by memory, by Alibaba's device plugin",
    .label_values = gpushare_plugin::values,
    .resources = gpushare_plugin::resources,
    .left_behind = gpushare_plugin::left_behind,
    .daemon_set = gpushare_plugin::name,
    .needs = {.architectures = gpushare_plugin::architectures, .mig = false},
    .objects = gpushare_plugin::objects,
    .isolates = isolation::none,
    .rolls_out = {rollout::strategy::always, 5, "it acts when a container starts, and running ones do not need it",
                  "AliyunContainerService/gpushare-device-plugin, pkg/gpu/nvidia/allocate.go"},
    .settings = gpushare_plugin::known_settings,
    .isolates_with = gpushare_plugin::isolates,
    .declarations = gpushare_plugin::declarations,
};

}  // namespace reconcilers::modules
