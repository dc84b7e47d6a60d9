// vgpu: shares of a card under GPU-Manager's names, by our own plugin and MPS (settings.plugin: quartermaster), or by
// GPU-Manager (tkestack/gpu-manager v1.1.5; facts: its gpu-manager.yaml, build/start.sh, pkg/server, and TKE's
// manifests). Narrower than upstream: a ServiceAccount with the few rights it uses (the chart's, not */*), the
// container runtime's folder instead of all of /var/run, no kernel module loading.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/own_plugin.hpp"
#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/publish.hpp"
#include "reconcilers/modules/settings.hpp"

namespace reconcilers::modules {
namespace {
namespace vgpu_plugin {

using nlohmann::json;

constexpr std::string_view values[] = {"vgpu", "enable"};
constexpr std::string_view resources[] = {"tencent.com/vcuda-core", "tencent.com/vcuda-memory"};
constexpr std::string_view architectures[] = {"amd64"};
constexpr std::string_view name = "gpu-manager-daemonset";
constexpr std::string_view account = "gpu-manager";
constexpr std::string_view image = "tkestack/gpu-manager:v1.1.5";
constexpr int metrics_port = 5678;

constexpr std::string_view plugins[] = {"gpu-manager", "quartermaster"};
constexpr setting known_settings[] = {{"plugin", setting::kind::word, "gpu-manager", plugins}};

bool is_ours(const module_spec& spec) { return setting_of(known_settings, spec, "plugin") == "quartermaster"; }

/// The image's start script takes further flags as one variable, so the policy's args are joined.
std::string flags(const module_spec& spec) {
  std::string out = "--container-runtime-endpoint=/var/run/containerd/containerd.sock --cgroup-driver=systemd";
  if (!spec.args.empty()) {
    for (const auto& entry : json::parse(spec.args)) out += " " + entry.get<std::string>();
  }
  return out;
}

json plugin(const module_spec& spec) {
  return {
      {"name", "gpu-manager"},
      {"image", image_of(spec, image)},
      {"env", {variable("LOG_LEVEL", "4"), variable("EXTRA_FLAGS", flags(spec)), node_name_variable()}},
      {"ports", {{{"name", "metrics"}, {"containerPort", metrics_port}, {"protocol", "TCP"}}}},
      {"resources", {{"requests", {{"cpu", "100m"}, {"memory", "256Mi"}}}}},
      {"securityContext", {{"privileged", true}}},
      {"volumeMounts",
       {mount("device-plugins", plugin_folder, false), mount("vdriver", "/etc/gpu-manager/vdriver", false),
        mount("vm", "/etc/gpu-manager/vm", false), mount("checkpoint", "/etc/gpu-manager/checkpoint", false),
        mount("log", "/var/log/gpu-manager", false), mount("containerd", "/var/run/containerd", true),
        mount("cgroup", "/sys/fs/cgroup", true), mount("usr", "/usr/local/host", true)}},
  };
}

std::vector<json> own_objects(const module_spec& spec, const facts& known) {
  return {service_account(own_plugin_account("vgpu")),
          own_plugin_set({.module = "vgpu",
                          .daemon_set = name,
                          .shares = {{std::string(resources[0]), "cores"}, {std::string(resources[1]), "memory:256"}}},
                         spec, known)};
}

isolation isolates(const module_spec& spec) { return is_ours(spec) ? isolation::mps : isolation::soft; }

std::vector<json> objects(const module_spec& spec, const facts& known) {
  if (is_ours(spec)) return own_objects(spec, known);
  const json volumes = {
      host_path("device-plugins", plugin_folder, "Directory"),
      host_path("vdriver", "/etc/gpu-manager/vdriver", "DirectoryOrCreate"),
      host_path("vm", "/etc/gpu-manager/vm", "DirectoryOrCreate"),
      host_path("checkpoint", "/etc/gpu-manager/checkpoint", "DirectoryOrCreate"),
      host_path("log", "/etc/gpu-manager/log", "DirectoryOrCreate"),
      host_path("containerd", "/run/containerd", "Directory"),
      host_path("cgroup", "/sys/fs/cgroup", "Directory"),
      host_path("usr", "/usr", "Directory"),
  };
  auto set = daemon_set("vgpu", name, spec, json::array({plugin(spec)}), volumes,
                        {"nvidia.com/gpu", "tencent.com/vcuda-core"});
  auto& pod = set["spec"]["template"]["spec"];
  pod["hostPID"] = true;
  pod["serviceAccountName"] = account;
  pod["automountServiceAccountToken"] = true;
  json metrics = {
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata",
       {{"name", "gpu-manager-metric"},
        {"annotations",
         {{"prometheus.io/scrape", "true"},
          {"prometheus.io/port", std::to_string(metrics_port)},
          {"prometheus.io/path", "/metric"}}}}},
      {"spec",
       {{"clusterIP", "None"},
        {"selector", {{"quartermaster.io/module", "vgpu"}}},
        {"ports", {{{"name", "metrics"}, {"port", metrics_port}, {"targetPort", metrics_port}, {"protocol", "TCP"}}}}}},
  };
  return {service_account(account), std::move(metrics), std::move(set)};
}

std::vector<json> declarations(const module_spec&, const facts&) {
  const published group{"gpu-manager", "GPU-Manager", "GPU-Manager"};
  resource_declaration core, memory;
  core.config_map = "cf-crl-gpu-manager-vcuda-core";
  core.key = "tencent.com/vcuda-core";
  core.default_value = "20";
  core.unit = "%";
  core.label_en = "vGPU core";
  core.label_zh = "vGPU 算力";
  core.description_en = "hundredths of a card: 1 to 99, or whole cards as multiples of 100";
  core.description_zh = "一张卡的百分比：1 到 99，或 100 的整数倍（整卡）";
  core.related = "tencent.com/vcuda-memory";
  core.excluded = memory.excluded = "nvidia.com/gpualloc";
  memory.config_map = "cf-crl-gpu-manager-vcuda-memory";
  memory.key = "tencent.com/vcuda-memory";
  memory.unit = "256Mi";
  memory.label_en = "vGPU memory";
  memory.label_zh = "vGPU 显存";
  memory.description_en = "memory of the card, in units of 256 MiB";
  memory.description_zh = "显存，单位 256 MiB";
  memory.related = "tencent.com/vcuda-core";
  return {declaration(group, core), declaration(group, memory), device_config({"vgpu", "vGPU", "vGPU"})};
}

constexpr privilege privileges[] = {
    {"", "hostPID", "counts a container's use of a card by the process ids that NVML reports, which are the host's"},
    {"", "token",
     "finds the pod an allocation is for, and writes on it which cards it got; plugin: quartermaster: it reads the "
     "pods of its node, their placements and the agent's report"},
    {"gpu-manager", "privileged",
     "opens every /dev/nvidia* without NVIDIA's container runtime, and enters no other device"},
    {"gpu-manager", "root", "as above"},
    {"gpu-manager", "write /var/lib/kubelet/device-plugins", kubelet_registration},
    {"gpu-manager", "write /etc/gpu-manager/vdriver", "copies of the driver's libraries that pods with shares mount"},
    {"gpu-manager", "write /etc/gpu-manager/vm", "one folder a pod: its limits and the socket its library calls"},
    {"gpu-manager", "write /etc/gpu-manager/checkpoint", "what was given to whom, over a restart"},
    {"gpu-manager", "write /etc/gpu-manager/log", "its log files"},
    {"gpu-manager", "read /run/containerd", "asks containerd which processes a container has"},
    {"gpu-manager", "read /sys/fs/cgroup", "reads cgroup.procs of containers with shares"},
    {"gpu-manager", "read /usr", "finds the driver's libraries, whose place differs by distribution"},
};

}  // namespace vgpu_plugin
}  // namespace

constinit const module_type vgpu = {
    .name = "vgpu",
    .title = "shares of a card by GPU-Manager or MPS",
    .label_values = vgpu_plugin::values,
    .resources = vgpu_plugin::resources,
    .daemon_set = vgpu_plugin::name,
    // It speaks CRI v1alpha2 alone (its pkg/runtime/runtime.go), which containerd 2.0 no longer has.
    .needs = {.architectures = vgpu_plugin::architectures, .mig = false, .containerd_below = 2},
    .objects = vgpu_plugin::objects,
    .isolates = isolation::soft,
    .rolls_out =
        {rollout::strategy::when_idle, 10,
         "the library in containers asks GPU-Manager for its limits, in each new process, over a socket that is "
         "gone while it restarts",
         "tkestack/gpu-manager pkg/services/virtual-manager/manager.go"},
    .settings = vgpu_plugin::known_settings,
    .isolates_with = vgpu_plugin::isolates,
    .declarations = vgpu_plugin::declarations,
    .follows_placement = vgpu_plugin::is_ours,
    .privileges = vgpu_plugin::privileges,
};

}  // namespace reconcilers::modules
