// gpushare: shares of a card by memory: aliyun.com/gpu-mem in GiB or MiB, and how many cards there are as
// aliyun.com/gpu-count. By our own plugin and MPS (settings.plugin: quartermaster), which offers ACK's
// aliyun.com/gpu-core.percentage, too, or by Alibaba's device plugin (AliyunContainerService/gpushare-device-plugin,
// device-plugin-ds.yaml and device-plugin-rbac.yaml), which limits nothing inside a container unless MPS does. Narrower
// than upstream: the token of its ServiceAccount (rights in the chart) instead of the kubelet's own kubeconfig.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/own_plugin.hpp"
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
/// Ours offers it next to those. A node set may have the other plugin, so it is no sign that one works.
constexpr std::string_view core_key = "aliyun.com/gpu-core.percentage";
/// It patches the number of cards into Node.status and never takes it back (podmanager.go, patchGPUCount).
constexpr std::string_view left_behind[] = {"aliyun.com/gpu-count"};
constexpr std::string_view architectures[] = {"amd64"};
constexpr std::string_view name = "gpushare-device-plugin-ds";
constexpr std::string_view account = "gpushare-device-plugin";
constexpr std::string_view image = "registry.cn-beijing.aliyuncs.com/acs/k8s-gpushare-plugin:v1.0.0-2656995-aliyun";
constexpr std::string_view pipe = "/root/nvidia-mps";

constexpr std::string_view plugins[] = {"gpushare", "quartermaster"};
constexpr std::string_view units[] = {"GiB", "MiB"};
constexpr setting known_settings[] = {
    {.name = "plugin", .type = kind::word, .fallback = "gpushare", .words = plugins},
    {.name = "memoryUnit", .type = kind::word, .fallback = "GiB", .words = units},
    // Clients of an MPS server that runs on the node; it is not started by the plugin.
    {.name = "mps", .type = kind::flag, .fallback = "false"},
};

bool is_ours(const module_spec& spec) { return setting_of(known_settings, spec, "plugin") == "quartermaster"; }
bool in_gib(const module_spec& spec) { return setting_of(known_settings, spec, "memoryUnit") == "GiB"; }
bool with_mps(const module_spec& spec) { return flag_of(known_settings, spec, "mps"); }
isolation isolates(const module_spec& spec) {
  return is_ours(spec) || with_mps(spec) ? isolation::mps : isolation::none;
}

constexpr std::string_view own_settings[] = {"memoryUnit"};

/// Memory is the first, because all that have a share ask for it; ACK's pods may name compute next to it.
std::vector<json> own_objects(const module_spec& spec, const facts& known) {
  refuse_settings_of_others(spec, "gpushare", "Alibaba", own_settings);
  return {service_account(own_plugin_account("gpushare")),
          own_plugin_set({.module = "gpushare",
                          .daemon_set = name,
                          .shares = {{std::string(resources[0]), in_gib(spec) ? "memory:1024" : "memory:1"},
                                     {std::string(core_key), "cores"},
                                     {std::string(resources[1]), "slots:1"}}},
                         spec, known)};
}

std::vector<json> objects(const module_spec& spec, const facts& known) {
  if (is_ours(spec)) return own_objects(spec, known);
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
  resource_declaration memory, cores;
  memory.config_map = "cf-crl-gpushare-gpu-mem";
  memory.key = "aliyun.com/gpu-mem";
  memory.default_value = in_gib(spec) ? "3" : "3072";
  memory.unit = setting_of(known_settings, spec, "memoryUnit");
  memory.label_en = "GPU memory";
  memory.label_zh = "GPU 显存";
  memory.description_en = "memory of one card, by which pods share it; counted, not kept apart";
  memory.description_zh = "单卡显存，按显存共享；仅计量，不隔离";
  if (!is_ours(spec)) return {declaration(group, memory), device_config(group)};
  memory.description_en = "memory of one card, held by MPS";
  memory.description_zh = "单卡显存，由 MPS 约束";
  cores.config_map = "cf-crl-gpushare-gpu-core";
  cores.key = core_key;
  cores.unit = "%";
  cores.label_en = "GPU compute";
  cores.label_zh = "GPU 算力";
  cores.description_en = "hundredths of the card's compute, in steps of 5; without it all of it";
  cores.description_zh = "一张卡算力的百分比，步长 5；不填则不限制";
  cores.related = "aliyun.com/gpu-mem";
  return {declaration(group, memory), declaration(group, cores), device_config(group)};
}

constexpr privilege privileges[] = {
    {"", "hostNetwork", "asks the kubelet of its node for pods, on the node's own address"},
    {"", "hostPID", "plugin: quartermaster: as for module mps"},
    {"", "token",
     "finds the pod an allocation is for, and writes gpu-count into the node's status; plugin: quartermaster: it reads "
     "the pods of its node, their placements and the agent's report"},
    {"gpushare", "write /var/lib/kubelet/device-plugins", kubelet_registration},
    {"gpushare", "root", "that folder belongs to root"},
    {"gpushare", "read /root/nvidia-mps", "mps: the pipe of the MPS server that pods get"},
};

constexpr product_label labels[] = {
    {"gpushare", "true", "gpushare", {}, true},
    {"ack.node.gpu.schedule", "share", "ACK"},
    {"ack.node.gpu.schedule", "cgpu", "ACK", no_isolation},
    {"ack.node.gpu.schedule", "core_mem", "ACK", no_isolation},
};

}  // namespace gpushare_plugin
}  // namespace

constinit const module_type gpushare = {
    .name = "gpushare",
    .title = "shares of a card by memory, by Alibaba's device plugin or MPS",
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
    .follows_placement = gpushare_plugin::is_ours,
    .privileges = gpushare_plugin::privileges,
    .labels = gpushare_plugin::labels,
};

}  // namespace reconcilers::modules
