// hami: shares of a card under HAMi's names, by our own plugin and MPS (settings.plugin: quartermaster), or by HAMi's
// device plugin and its library (Project-HAMi/HAMi v2.10.0, charts/hami: templates/device-plugin/daemonsetnvidia.yaml,
// templates/scheduler/device-configmap.yaml, values.yaml). Only the count is a resource of the node; memory and cores
// stand in limits alone, and in annotations where HAMi's plugin reads them. Resource names are those of the Alauda
// platform where HAMi's would collide with whole cards: nvidia.com/gpualloc instead of nvidia.com/gpu.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reconcilers/modules/own_plugin.hpp"
#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/publish.hpp"
#include "reconcilers/modules/settings.hpp"

namespace reconcilers::modules {
namespace {
namespace hami_plugin {

using nlohmann::json;
using kind = setting::kind;

constexpr std::string_view values[] = {"hami"};
constexpr std::string_view resources[] = {"nvidia.com/gpualloc"};
constexpr std::string_view architectures[] = {"amd64", "arm64"};
constexpr std::string_view name = "hami-device-plugin";
constexpr std::string_view account = "hami-device-plugin";
constexpr std::string_view image = "docker.io/projecthami/hami:v2.10.0";
constexpr std::string_view config = "hami-device-plugin-config", config_file = "device-config.yaml";
constexpr std::string_view nodes_file = "config.json";

constexpr std::string_view plugins[] = {"hami", "quartermaster"};
constexpr std::string_view mig_strategies[] = {"none", "mixed"};
constexpr std::string_view core_policies[] = {"default", "force", "disable"};

constexpr setting known_settings[] = {
    {.name = "plugin", .type = kind::word, .fallback = "hami", .words = plugins},
    {.name = "deviceSplitCount", .type = kind::number, .fallback = "10", .minimum = 1, .maximum = 1000},
    {.name = "deviceMemoryScaling", .type = kind::decimal, .fallback = "1", .maximum = 100},
    {.name = "deviceCoreScaling", .type = kind::decimal, .fallback = "1", .maximum = 100},
    {.name = "migStrategy", .type = kind::word, .fallback = "none", .words = mig_strategies},
    {.name = "disablecorelimit", .type = kind::flag, .fallback = "false"},
    {.name = "defaultMem", .type = kind::number, .fallback = "5000", .minimum = 0, .maximum = 10'000'000},  // MiB
    {.name = "defaultCores", .type = kind::number, .fallback = "0", .minimum = 0, .maximum = 100},
    {.name = "defaultGPUNum", .type = kind::number, .fallback = "1", .minimum = 1, .maximum = 64},
    {.name = "resourceName", .type = kind::resource, .fallback = "nvidia.com/gpualloc"},
    {.name = "resourceMem", .type = kind::resource, .fallback = "nvidia.com/gpumem"},
    {.name = "resourceMemPercentage", .type = kind::resource, .fallback = "nvidia.com/gpumem-percentage"},
    {.name = "resourceCores", .type = kind::resource, .fallback = "nvidia.com/gpucores"},
    {.name = "resourcePriority", .type = kind::resource, .fallback = "nvidia.com/priority"},
    {.name = "GPU_CORE_UTILIZATION_POLICY", .type = kind::word, .fallback = "default", .words = core_policies},
    {.name = "ACTIVE_OOM_KILLER", .type = kind::flag},
};

std::string value(const module_spec& spec, std::string_view setting) {
  return setting_of(known_settings, spec, setting);
}
bool is_ours(const module_spec& spec) { return value(spec, "plugin") == "quartermaster"; }

/// Read by the plugin; the part that places pods has to read the same numbers. Every key of `nvidia:` that the pinned
/// version's chart writes is here: the plugin dereferences some without asking (server.go, libCudaLogLevel), and a key
/// that it misses ends it in the first Allocate. migProfileAllowlist is left out, because only operating mode "mig"
/// reads it. The chart has disableCoreLimit as a flag of the plugin, but the plugin reads it from this file alone.
std::string config_of(const module_spec& spec) {
  const std::pair<const char*, const char*> lines[] = {
      {"resourceCountName", "resourceName"},
      {"resourceMemoryName", "resourceMem"},
      {"resourceMemoryPercentageName", "resourceMemPercentage"},
      {"resourceCoreName", "resourceCores"},
      {"resourcePriorityName", "resourcePriority"},
      {"defaultMemory", "defaultMem"},
      {"defaultCores", "defaultCores"},
      {"defaultGPUNum", "defaultGPUNum"},
      {"deviceSplitCount", "deviceSplitCount"},
      {"deviceMemoryScaling", "deviceMemoryScaling"},
      {"deviceCoreScaling", "deviceCoreScaling"},
      {"gpuCorePolicy", "GPU_CORE_UTILIZATION_POLICY"},
  };
  std::string out =
      "nvidia:\n  overwriteEnv: false\n  memoryFactor: 1\n  preConfiguredDeviceMemory: 0\n"
      "  enableNumaTopology: false\n  libCudaLogLevel: 1\n";
  // The plugin writes GPU_CORE_UTILIZATION_POLICY=disable into containers by this key only; gpuCorePolicy is for HAMi's
  // own webhook.
  const bool unlimited =
      flag_of(known_settings, spec, "disablecorelimit") || value(spec, "GPU_CORE_UTILIZATION_POLICY") == "disable";
  out += std::string("  disableCoreLimit: ") + (unlimited ? "true" : "false") + "\n";
  out += "  runtimeClassName: \"" + spec.runtime_class + "\"\n";
  for (const auto& [key, variable] : lines) out += "  " + std::string(key) + ": " + value(spec, variable) + "\n";
  return out;
}

/// Settings of single nodes. Node sets take their place here, so there are none. Without the file the plugin writes an
/// error at each start and registers its cards with an empty mode, not as hami-core.
constexpr const char* no_nodes = "{\"nodeconfig\": []}\n";

json plugin(const module_spec& spec) {
  json command = {"nvidia-device-plugin", "--config-file=/device-config.yaml",
                  "--mig-strategy=" + value(spec, "migStrategy"),
                  "--disable-core-limit=" + value(spec, "disablecorelimit")};
  json out = {
      {"name", "device-plugin"},
      {"image", image_of(spec, image)},
      {"command", std::move(command)},
      {"env",
       {node_name_variable(), variable("NVIDIA_MIG_MONITOR_DEVICES", "all"), variable("DEVICE_LIST_STRATEGY", "envvar"),
        variable("HOOK_PATH", "/usr/local"),
        variable("GPU_CORE_UTILIZATION_POLICY", value(spec, "GPU_CORE_UTILIZATION_POLICY"))}},
      {"lifecycle",
       {{"postStart", {{"exec", {{"command", {"/bin/sh", "-c", "/k8s-vgpu/bin/vgpu-init.sh /usr/local/vgpu/"}}}}}}}},
      {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}}},
      {"securityContext", {{"privileged", true}}},
      {"volumeMounts",
       {mount("device-plugins", plugin_folder, false), mount("lib", "/usr/local/vgpu", false),
        mount("usrbin", "/usrbin", true), mount("locks", "/tmp/vgpulock", false), mount("cdi", "/var/run/cdi", false)}},
  };
  out["volumeMounts"].push_back(
      {{"name", "config"}, {"mountPath", "/device-config.yaml"}, {"subPath", config_file}, {"readOnly", true}});
  out["volumeMounts"].push_back(mount("nodes", "/config", true));
  if (const auto killer = value(spec, "ACTIVE_OOM_KILLER"); !killer.empty())
    out["env"].push_back(variable("ACTIVE_OOM_KILLER", killer));
  if (!spec.args.empty()) out["args"] = json::parse(spec.args);
  return out;
}

json monitor(const module_spec& spec) {
  return {
      {"name", "vgpu-monitor"},
      {"image", image_of(spec, image)},
      {"command", {"vGPUmonitor"}},
      {"env",
       {node_name_variable(), variable("NVIDIA_VISIBLE_DEVICES", "all"), variable("NVIDIA_MIG_MONITOR_DEVICES", "all"),
        variable("HOOK_PATH", "/usr/local/vgpu"), variable("HAMI_RESYNC_INTERVAL", "5m")}},
      {"ports", {{{"name", "metrics"}, {"containerPort", 9394}, {"protocol", "TCP"}}}},
      {"resources", {{"requests", {{"cpu", "20m"}, {"memory", "64Mi"}}}}},
      {"securityContext",
       {{"capabilities", {{"drop", {"ALL"}}, {"add", {"SYS_ADMIN"}}}},
        {"allowPrivilegeEscalation", true},  // which the API server asks for next to that capability
        {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
      {"volumeMounts",
       {mount("containers", "/usr/local/vgpu/containers", false), mount("containerd", "/run/containerd", true),
        mount("sys", "/sysinfo", true), mount("var", "/hostvar", true), mount("locks", "/tmp/vgpulock", false)}},
  };
}

/// Of its names and amounts; nvidia.com/priority is HAMi's library's, and read by no one here.
constexpr std::string_view own_settings[] = {
    "deviceSplitCount", "defaultMem",    "defaultCores",          "defaultGPUNum",   "resourceName",
    "resourceMem",      "resourceCores", "resourceMemPercentage", "resourcePriority"};

std::vector<json> own_objects(const module_spec& spec, const facts& known) {
  refuse_settings_of_others(spec, "hami", "HAMi", own_settings);
  return {service_account(own_plugin_account("hami")),
          own_plugin_set({.module = "hami",
                          .daemon_set = name,
                          .shares = {{value(spec, "resourceName"), "slots:" + value(spec, "deviceSplitCount")},
                                     {value(spec, "resourceMem"), "memory:1@" + value(spec, "defaultMem"), false},
                                     {value(spec, "resourceMemPercentage"), "percent", false},
                                     {value(spec, "resourceCores"), "cores@" + value(spec, "defaultCores"), false}}},
                         spec, known)};
}

isolation isolates(const module_spec& spec) { return is_ours(spec) ? isolation::mps : isolation::soft; }

std::vector<json> objects(const module_spec& spec, const facts& known) {
  if (is_ours(spec)) return own_objects(spec, known);
  const json volumes = {
      host_path("device-plugins", plugin_folder, "Directory"),
      host_path("lib", "/usr/local/vgpu", "DirectoryOrCreate"),
      host_path("containers", "/usr/local/vgpu/containers", "DirectoryOrCreate"),
      host_path("usrbin", "/usr/bin", "Directory"),
      host_path("locks", "/tmp/vgpulock", "DirectoryOrCreate"),
      host_path("cdi", "/var/run/cdi", "DirectoryOrCreate"),
      host_path("containerd", "/run/containerd", "Directory"),
      host_path("sys", "/sys", "Directory"),
      host_path("var", "/var", "Directory"),
      file_volume(known, "config", config, config_file),
      file_volume(known, "nodes", config, nodes_file),
  };
  auto set = daemon_set("hami", name, spec, json::array({plugin(spec), monitor(spec)}), volumes,
                        {"nvidia.com/gpu", "nvidia.com/gpualloc"});
  set["spec"]["template"]["metadata"]["labels"]["hami.io/webhook"] = "ignore";
  auto& pod = set["spec"]["template"]["spec"];
  pod["hostPID"] = true;
  pod["serviceAccountName"] = account;
  pod["automountServiceAccountToken"] = true;
  auto files = file(known, config, config_file, config_of(spec));
  files["data"].update(file(known, config, nodes_file, no_nodes).at("data"));
  return {service_account(account), std::move(files), std::move(set)};
}

std::vector<std::string> resources_with(const module_spec& spec) { return {value(spec, "resourceName")}; }

std::vector<json> declarations(const module_spec& spec, const facts&) {
  const published group{"hami-nvidia", "HAMi NVIDIA", "HAMi 英伟达"};
  const auto count_key = value(spec, "resourceName"), core_key = value(spec, "resourceCores"),
             memory_key = value(spec, "resourceMem");
  const std::string others =
      "nvidia.com/mps-core,nvidia.com/mps-memory,tencent.com/vcuda-core,tencent.com/vcuda-memory";
  resource_declaration count, cores, memory;
  count.config_map = "cf-crl-hami-nvidia-gpualloc";
  count.key = count_key;
  count.default_value = value(spec, "defaultGPUNum");
  count.label_en = "HAMi GPU count";
  count.label_zh = "HAMi GPU 数量";
  count.description_en = "on how many cards the pod gets a share";
  count.description_zh = "使用多少张卡的份额";
  count.related = core_key + "," + memory_key;
  count.excluded = others;
  cores.config_map = "cf-crl-hami-nvidia-gpucores";
  cores.key = core_key;
  cores.default_value = "20";
  cores.unit = "%";
  cores.label_en = "HAMi GPU cores";
  cores.label_zh = "HAMi GPU 算力";
  cores.description_en = "hundredths of a card's compute, for each card";
  cores.description_zh = "每张卡算力的百分比";
  cores.related = count_key;
  cores.ignore_node_check = true;
  memory.config_map = "cf-crl-hami-nvidia-gpumem";
  memory.key = memory_key;
  memory.default_value = "4000";
  memory.unit = "Mi";
  memory.label_en = "HAMi GPU memory";
  memory.label_zh = "HAMi GPU 显存";
  memory.description_en = "memory of each card, in MiB";
  memory.description_zh = "每张卡的显存，单位 MiB";
  memory.related = count_key;
  memory.ignore_node_check = true;
  return {declaration(group, count), declaration(group, cores), declaration(group, memory),
          device_config({"hami", "HAMi", "HAMi"})};
}

constexpr privilege privileges[] = {
    {"", "hostPID", "the monitor counts use by the process ids that NVML reports, which are the host's"},
    {"", "token",
     "finds the pod an allocation is for, and writes on node and pod what there is and was given; plugin: "
     "quartermaster: it reads the pods of its node, their placements and the agent's report"},
    {"device-plugin", "privileged", "opens every /dev/nvidia* to read what cards there are"},
    {"device-plugin", "root", "as above"},
    {"device-plugin", "write /var/lib/kubelet/device-plugins", kubelet_registration},
    {"device-plugin", "write /usr/local/vgpu", "its library, which pods with shares mount, and a folder a pod"},
    {"device-plugin", "write /tmp/vgpulock", "the lock by which processes on one card take turns"},
    {"device-plugin", "write /var/run/cdi", "the specification that the container runtime reads"},
    {"device-plugin", "read /usr/bin", "finds nvidia-smi of the host"},
    {"vgpu-monitor", "add SYS_ADMIN", "reads the shared memory of other containers' libraries"},
    {"vgpu-monitor", "root", "as above"},
    {"vgpu-monitor", "write /usr/local/vgpu/containers", "removes the folders of pods that are gone"},
    {"vgpu-monitor", "write /tmp/vgpulock", "takes its turn as they do"},
    {"vgpu-monitor", "read /run/containerd", "asks containerd which processes a container has"},
    {"vgpu-monitor", "read /sys", "reads cgroup.procs of containers with shares"},
    {"vgpu-monitor", "read /var", "finds the kubelet's folders of those containers"},
};

constexpr product_label labels[] = {
    {"gpu", "on", "HAMi", {}, true},
};

}  // namespace hami_plugin
}  // namespace

constinit const module_type hami = {
    .name = "hami",
    .title = "shares of a card by HAMi or MPS",
    .label_values = hami_plugin::values,
    .resources = hami_plugin::resources,
    .daemon_set = hami_plugin::name,
    .needs = {.architectures = hami_plugin::architectures},
    .objects = hami_plugin::objects,
    .isolates = isolation::soft,
    .rolls_out = {rollout::strategy::when_idle, 10,
                  "a new version is copied over the library that running containers have mapped, and they crash",
                  "Project-HAMi/HAMi docker/vgpu-init.sh (cp onto the same file); HAMi#727, #753"},
    .settings = hami_plugin::known_settings,
    .resources_with = hami_plugin::resources_with,
    .isolates_with = hami_plugin::isolates,
    .declarations = hami_plugin::declarations,
    .follows_placement = hami_plugin::is_ours,
    .privileges = hami_plugin::privileges,
    .labels = hami_plugin::labels,
};

}  // namespace reconcilers::modules
