// share: a card for several pods by time-slicing, with nothing between them: NVIDIA's device plugin (v0.20.0, README.md
// "Shared Access to GPUs") advertises each card `replicas` times. The shares have a name of their own
// (renameByDefault), so that nvidia.com/gpu always means a whole card and no shared card is ever given out as one.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/publish.hpp"
#include "reconcilers/modules/settings.hpp"

namespace reconcilers::modules {
namespace {
namespace share_plugin {

using nlohmann::json;
using kind = setting::kind;

constexpr std::string_view values[] = {"share"};
constexpr std::string_view resources[] = {"nvidia.com/gpu.shared"};
constexpr std::string_view architectures[] = {"amd64", "arm64"};
constexpr std::string_view name = "nvidia-share-device-plugin-daemonset";
constexpr std::string_view config = "nvidia-share-device-plugin-config", config_file = "config.yaml";

constexpr setting known_settings[] = {
    {.name = "replicas", .type = kind::number, .fallback = "10", .minimum = 2, .maximum = 1000},
    // More shares are not more compute: the plugin refuses a pod that asks for two.
    {.name = "failRequestsGreaterThanOne", .type = kind::flag, .fallback = "true"},
};

std::string config_of(const module_spec& spec) {
  return "version: v1\nflags:\n  migStrategy: none\n  failOnInitError: true\nsharing:\n  timeSlicing:\n"
         "    renameByDefault: true\n    failRequestsGreaterThanOne: " +
         setting_of(known_settings, spec, "failRequestsGreaterThanOne") +
         "\n    resources:\n      - name: nvidia.com/gpu\n        replicas: " +
         setting_of(known_settings, spec, "replicas") + "\n";
}

std::vector<json> objects(const module_spec& spec, const facts& known) {
  json plugin = {
      {"name", "nvidia-device-plugin-ctr"},
      {"image", image_of(spec, nvidia_image)},
      {"env", nvidia_variables()},
      {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}}},
      {"securityContext", confined()},
      {"volumeMounts", {mount("device-plugins", plugin_folder, false), mount("config", "/config", true)}},
  };
  plugin["env"].push_back(variable("CONFIG_FILE", "/config/config.yaml"));
  if (!spec.args.empty()) plugin["args"] = json::parse(spec.args);
  const json volumes = {host_path("device-plugins", plugin_folder, "Directory"),
                        file_volume(known, "config", config, config_file)};
  return {file(known, config, config_file, config_of(spec)),
          daemon_set("share", name, spec, json::array({std::move(plugin)}), volumes, {"nvidia.com/gpu"})};
}

std::vector<json> declarations(const module_spec&, const facts&) {
  const published group{"nvidia-gpu-share", "NVIDIA GPU, shared", "英伟达 GPU 共享"};
  resource_declaration gpu;
  gpu.config_map = "cf-crl-nvidia-gpu-shared";
  gpu.key = "nvidia.com/gpu.shared";
  gpu.default_value = "1";
  gpu.label_en = "Shared GPU";
  gpu.label_zh = "共享 GPU";
  gpu.description_en = "a card that others use at the same time; neither memory nor compute is kept apart";
  gpu.description_zh = "与其他 Pod 同时使用的卡，显存和算力均不隔离";
  return {declaration(group, gpu), device_config({"share", "GPU share", "GPU 共享"})};
}

constexpr privilege privileges[] = {
    {"nvidia-device-plugin-ctr", "write /var/lib/kubelet/device-plugins", kubelet_registration},
    {"nvidia-device-plugin-ctr", "root", "that folder belongs to root"},
};

}  // namespace share_plugin
}  // namespace

constinit const module_type share = {
    .name = "share",
    .title = "cards shared by time-slicing, without isolation",
    .label_values = share_plugin::values,
    .resources = share_plugin::resources,
    .daemon_set = share_plugin::name,
    .needs = {.architectures = share_plugin::architectures},
    .objects = share_plugin::objects,
    .isolates = isolation::none,
    .rolls_out = {rollout::strategy::always, 5,
                  "the kubelet remembers which container has which card, and running ones do not need the plugin",
                  "kubelet, pkg/kubelet/cm/devicemanager (its checkpoint); NVIDIA/k8s-device-plugin#339"},
    .settings = share_plugin::known_settings,
    .declarations = share_plugin::declarations,
    .privileges = share_plugin::privileges,
};

}  // namespace reconcilers::modules
