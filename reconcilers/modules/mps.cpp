// mps: shares of a card by NVIDIA MPS: nvidia.com/mps-core (100 a card) and nvidia.com/mps-memory (1 GiB units). NVIDIA
// ships the control daemon and a device plugin (k8s-device-plugin v0.20.0, cmd/mps-control-daemon), but that plugin
// offers equal shares only, as nvidia.com/gpu.shared; no public plugin advertises the two.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/publish.hpp"
#include "reconcilers/modules/settings.hpp"

namespace reconcilers::modules {
namespace {
namespace mps_plugin {

using nlohmann::json;

constexpr std::string_view values[] = {"mps"};
constexpr std::string_view resources[] = {"nvidia.com/mps-core", "nvidia.com/mps-memory"};
constexpr std::string_view architectures[] = {"amd64"};
constexpr std::string_view name = "nvidia-mps-device-plugin-daemonset";
constexpr std::string_view config = "nvidia-mps-device-plugin-config", config_file = "config.yaml";

enum class plugin_of : std::uint8_t { nvidia, agent };
/// The choice: `agent` from the day `quartermaster agent device-plugin --module=mps` advertises mps-core and -memory.
constexpr auto chosen = plugin_of::nvidia;

/// NVIDIA's plugin gives at most 48 shares of a card (16 below compute capability 7.5).
constexpr setting known_settings[] = {
    {.name = "replicas", .type = setting::kind::number, .fallback = "10", .minimum = 2, .maximum = 48},
};

/// The policy's image is someone's plugin that advertises the two resources.
bool by_nvidia(const module_spec& spec) { return spec.image.empty() && chosen == plugin_of::nvidia; }

json plugin(const module_spec& spec, const facts& known) {
  json out = {
      {"name", "nvidia-mps-device-plugin"},
      {"image", image_of(spec, by_nvidia(spec) ? nvidia_image : std::string_view(known.own_image))},
      {"env", nvidia_variables()},
      {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}}},
      {"securityContext", confined()},
      {"volumeMounts", {mount("device-plugins", plugin_folder, false), mount("mps", "/mps", true)}},
  };
  out["env"].push_back(node_name_variable());
  auto args = json::array();
  if (by_nvidia(spec)) {
    out["env"].push_back(variable("CONFIG_FILE", "/config/config.yaml"));
    out["env"].push_back(variable("MPS_ROOT", "/run/nvidia/mps"));
    // It asks the control daemon for its health over that.
    out["volumeMounts"].push_back(mount("mps-shm", "/dev/shm", false));
    out["volumeMounts"].push_back(mount("config", "/config", true));
  } else if (spec.image.empty()) {
    args = {"agent", "device-plugin", "--module=mps"};
  }
  if (!spec.args.empty()) {
    for (auto& entry : json::parse(spec.args)) args.push_back(std::move(entry));
  }
  if (!args.empty()) out["args"] = std::move(args);
  return out;
}

/// Sets the cards to EXCLUSIVE_PROCESS and runs nvidia-cuda-mps-control.
json control_daemon() {
  json out = {
      {"name", "mps-control-daemon"},
      {"image", nvidia_image},
      {"command", {"mps-control-daemon"}},
      {"env", nvidia_variables()},
      {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}}},
      {"securityContext", {{"privileged", true}}},
      {"volumeMounts",
       {mount("mps", "/mps", false), mount("mps-shm", "/dev/shm", false), mount("config", "/config", true)}},
  };
  out["env"].push_back(node_name_variable());
  out["env"].push_back(variable("CONFIG_FILE", "/config/config.yaml"));
  return out;
}

/// Without `sharing.mps` the control daemon has nothing to do.
std::string config_of(const module_spec& spec) {
  return "version: v1\nflags:\n  migStrategy: none\n  failOnInitError: true\nsharing:\n  mps:\n"
         "    renameByDefault: true\n    resources:\n      - name: nvidia.com/gpu\n        replicas: " +
         setting_of(known_settings, spec, "replicas") + "\n";
}

std::vector<json> objects(const module_spec& spec, const facts& known) {
  json mount_shm = {
      {"name", "mps-mount-shm"},
      {"image", nvidia_image},
      {"command", {"mps-control-daemon", "mount-shm"}},
      {"securityContext", {{"privileged", true}}},
      {"volumeMounts", {{{"name", "mps"}, {"mountPath", "/mps"}, {"mountPropagation", "Bidirectional"}}}},
  };
  const json volumes = {
      host_path("device-plugins", plugin_folder, "Directory"),
      host_path("mps", "/run/nvidia/mps", "DirectoryOrCreate"),
      host_path("mps-shm", "/run/nvidia/mps/shm", "DirectoryOrCreate"),
      file_volume(known, "config", config, config_file),
  };
  auto set = daemon_set("mps", name, spec, json::array({plugin(spec, known), control_daemon()}), volumes,
                        {"nvidia.com/gpu", "nvidia.com/mps-core"});
  auto& pod = set["spec"]["template"]["spec"];
  pod["initContainers"] = json::array({std::move(mount_shm)});
  pod["hostPID"] = true;
  return {file(known, config, config_file, config_of(spec)), std::move(set)};
}

text::phrase not_offered(const module_spec& spec) {
  if (!by_nvidia(spec)) return {};
  return {"intent.mps_not_offered"};
}

std::vector<json> declarations(const module_spec&, const facts&) {
  const published group{"nvidia-mps", "NVIDIA MPS", "英伟达 MPS"};
  resource_declaration core, memory;
  core.config_map = "cf-crl-nvidia-mps-core";
  core.key = "nvidia.com/mps-core";
  core.default_value = "20";
  core.unit = "%";
  core.label_en = "MPS core";
  core.label_zh = "MPS 算力";
  core.description_en = "hundredths of a card's compute";
  core.description_zh = "一张卡算力的百分比";
  core.related = "nvidia.com/mps-memory";
  core.excluded = memory.excluded = "nvidia.com/gpualloc";
  memory.config_map = "cf-crl-nvidia-mps-memory";
  memory.key = "nvidia.com/mps-memory";
  memory.unit = "GiB";
  memory.label_en = "MPS memory";
  memory.label_zh = "MPS 显存";
  memory.description_en = "memory of the card, in GiB";
  memory.description_zh = "显存，单位 GiB";
  memory.related = "nvidia.com/mps-core";
  return {declaration(group, core), declaration(group, memory), device_config({"mps", "MPS", "MPS"})};
}

}  // namespace mps_plugin
}  // namespace

/// Volta (7.0) or newer, CUDA 11.5: the first with a memory limit for MPS clients. MPS and MIG are not mixed.
constinit const module_type mps = {
    .name = "mps",
    .title = "shares of a card by NVIDIA MPS",
    .label_values = mps_plugin::values,
    .resources = mps_plugin::resources,
    .daemon_set = mps_plugin::name,
    .needs = {.architectures = mps_plugin::architectures, .compute_capability = 70, .cuda = 1105, .mig = false},
    .objects = mps_plugin::objects,
    .isolates = isolation::mps,
    .rolls_out = {rollout::strategy::when_idle, 10,
                  "the control daemon is in the pod: when it ends, every process that uses the card ends with it",
                  "CUDA error 810, cudaErrorMpsClientTerminated: the process must be terminated and relaunched"},
    .settings = mps_plugin::known_settings,
    .declarations = mps_plugin::declarations,
    .not_offered = mps_plugin::not_offered,
};

}  // namespace reconcilers::modules
