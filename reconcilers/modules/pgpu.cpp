// pgpu: whole cards, by NVIDIA's own device plugin or by ours (agent/card_plugin.hpp). Facts about NVIDIA's:
// NVIDIA/k8s-device-plugin v0.20.0, deployments/static/nvidia-device-plugin.yml, README.md, and for named
// configurations and discovery its Helm chart (templates/daemonset-device-plugin.yml, daemonset-gfd.yml, _helpers.tpl).

#include <nlohmann/json.hpp>

#include "reconcilers/modules/own_plugin.hpp"
#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/publish.hpp"
#include "reconcilers/modules/settings.hpp"

namespace reconcilers::modules {
namespace {
namespace pgpu_plugin {

using nlohmann::json;
using kind = setting::kind;

constexpr std::string_view values[] = {"pgpu"};
constexpr std::string_view resources[] = {"nvidia.com/gpu"};
constexpr std::string_view architectures[] = {"amd64", "arm64"};
constexpr std::string_view name = "nvidia-device-plugin-ds";
constexpr std::string_view account = "nvidia-device-plugin";

constexpr std::string_view plugins[] = {"nvidia", "quartermaster"};
constexpr std::string_view mig_strategies[] = {"none", "single", "mixed"};
constexpr std::string_view list_strategies[] = {"envvar", "volume-mounts", "cdi-annotations", "cdi-cri"};
constexpr std::string_view id_strategies[] = {"uuid", "index"};
constexpr std::string_view discovery_strategies[] = {"auto", "nvml", "tegra"};
/// Where drivers are: on the host, by the GPU Operator, on GKE. A folder of the host that is mounted is never free
/// text.
constexpr std::string_view roots[] = {"/", "/run/nvidia/driver", "/home/kubernetes/bin/nvidia"};

/// Those in capitals are the environment of NVIDIA's plugin.
constexpr setting known_settings[] = {
    {"plugin", kind::word, "nvidia", plugins},
    {"MIG_STRATEGY", kind::word, "", mig_strategies},
    {"FAIL_ON_INIT_ERROR", kind::flag, "true"},
    {"PASS_DEVICE_SPECS", kind::flag},
    {"DEVICE_LIST_STRATEGY", kind::words, "", list_strategies},
    {"DEVICE_ID_STRATEGY", kind::word, "", id_strategies},
    {"DEVICE_DISCOVERY_STRATEGY", kind::word, "", discovery_strategies},
    {"NVIDIA_DRIVER_ROOT", kind::word, "", roots},
    {"NVIDIA_DEV_ROOT", kind::word, "", roots},
    {"NVIDIA_CDI_HOOK_PATH"},
    {"CDI_FEATURE_FLAGS"},
    {"GDRCOPY_ENABLED", kind::flag},
    {"GDS_ENABLED", kind::flag},
    {"MOFED_ENABLED", kind::flag},
    {"configMap", kind::name},      // named configurations; a node takes one by nvidia.com/device-plugin.config
    {"defaultConfig", kind::name},  // the one of nodes without that label
    {"featureDiscovery", kind::flag, "false"},
};

bool is_variable(const setting& setting) {
  return setting.name.find_first_of("abcdefghijklmnopqrstuvwxyz") == setting.name.npos;
}

class builder {
 public:
  explicit builder(const module_spec& spec)
      : spec_(spec),
        configs_(value("configMap")),
        mig_(!value("MIG_STRATEGY").empty() && value("MIG_STRATEGY") != "none") {}

  std::vector<json> objects() const {
    std::vector<json> out;
    if (!configs_.empty()) out.push_back(service_account(account));
    if (value("featureDiscovery") == "true") out.push_back(discovery());
    auto containers = json::array({plugin()});
    auto volumes = json::array({host_path("device-plugins", plugin_folder, "Directory")});
    if (!value("NVIDIA_DRIVER_ROOT").empty())
      volumes.push_back(host_path("driver-root", value("NVIDIA_DRIVER_ROOT"), "Directory"));
    if (uses_cdi()) volumes.push_back(host_path("cdi", "/var/run/cdi", "DirectoryOrCreate"));
    if (!configs_.empty()) {
      containers.push_back(config_manager("nvidia-device-plugin-sidecar", true));
      volumes.push_back({{"name", "available-configs"}, {"configMap", {{"name", configs_}}}});
      volumes.push_back({{"name", "config"}, {"emptyDir", json::object()}});
    }
    auto set = daemon_set("pgpu", name, spec_, std::move(containers), std::move(volumes), {"nvidia.com/gpu"});
    if (!configs_.empty()) use_config_manager(set["spec"]["template"]["spec"]);
    out.push_back(std::move(set));
    return out;
  }

  /// GPU Feature Discovery writes what it finds into a file; Node Feature Discovery, which is not installed by us,
  /// makes labels of it. Its pods do not carry our module label: they are no plugins.
  json discovery() const {
    json container = {
        {"name", "gpu-feature-discovery-ctr"},
        {"image", image_of(spec_, nvidia_image)},
        {"command", {"gpu-feature-discovery"}},
        {"env", nvidia_variables()},
        {"resources", {{"requests", {{"cpu", "10m"}, {"memory", "32Mi"}}}}},
        {"securityContext", confined()},
        {"volumeMounts",
         {mount("features", "/etc/kubernetes/node-feature-discovery/features.d", false), mount("sys", "/sys", true)}},
    };
    container["env"].push_back(node_name_variable());
    // By default it writes a NodeFeature object, and ends where it has no token for that.
    container["env"].push_back(variable("GFD_USE_NODE_FEATURE_API", "false"));
    if (mig_) {
      container["env"].push_back(variable("MIG_STRATEGY", value("MIG_STRATEGY")));
      container["env"].push_back(variable("NVIDIA_MIG_MONITOR_DEVICES", "all"));
      container["securityContext"]["capabilities"]["add"] = {"SYS_ADMIN"};
      container["securityContext"]["allowPrivilegeEscalation"] = true;
    }
    auto spec = spec_;  // resources, env and args of the policy are the plugin's
    spec.resources.clear(), spec.env.clear(), spec.args.clear();
    const json volumes = {
        host_path("features", "/etc/kubernetes/node-feature-discovery/features.d", "DirectoryOrCreate"),
        host_path("sys", "/sys", "Directory"),
    };
    auto set = daemon_set("pgpu", "gpu-feature-discovery", spec, json::array({std::move(container)}), volumes,
                          {"nvidia.com/gpu"});
    const json selector = {{"app.kubernetes.io/name", "gpu-feature-discovery"}};
    set["spec"]["selector"]["matchLabels"] = selector;
    set["spec"]["template"]["metadata"]["labels"].erase("quartermaster.io/module");
    return set;
  }

 private:
  std::string value(std::string_view setting) const { return setting_of(known_settings, spec_, setting); }
  bool uses_cdi() const { return value("DEVICE_LIST_STRATEGY").find("cdi") != std::string::npos; }

  json security() const {
    if (value("PASS_DEVICE_SPECS") == "true") return {{"privileged", true}};
    auto out = confined();
    if (mig_) {
      out["capabilities"]["add"] = {"SYS_ADMIN"};
      out["allowPrivilegeEscalation"] = true;  // which the API server asks for next to that capability
    }
    return out;
  }

  json environment() const {
    auto out = nvidia_variables();
    for (const auto& known_setting : known_settings) {
      const auto set = value(known_setting.name);
      if (is_variable(known_setting) && !set.empty()) out.push_back(variable(known_setting.name, set));
    }
    if (mig_) out.push_back(variable("NVIDIA_MIG_MONITOR_DEVICES", "all"));
    if (!configs_.empty()) out.push_back(variable("CONFIG_FILE", "/config/config.yaml"));
    return out;
  }

  json plugin() const {
    json out = {
        {"name", "nvidia-device-plugin-ctr"},
        {"image", image_of(spec_, nvidia_image)},
        {"env", environment()},
        {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}}},
        {"securityContext", security()},
        {"volumeMounts", {mount("device-plugins", plugin_folder, false)}},
    };
    auto& mounts = out["volumeMounts"];
    if (!value("NVIDIA_DRIVER_ROOT").empty()) mounts.push_back(mount("driver-root", "/driver-root", true));
    if (uses_cdi()) mounts.push_back(mount("cdi", "/var/run/cdi", false));
    if (!configs_.empty()) {
      mounts.push_back(mount("config", "/config", false));
      mounts.push_back(
          mount("available-configs", "/available-configs", true));  // to which /config/config.yaml is a link
      out["command"] = {"nvidia-device-plugin"};                    // the sidecar finds the process by this word
    }
    if (!spec_.args.empty()) out["args"] = json::parse(spec_.args);
    return out;
  }

  /// Copies the configuration that the node's label names to where the plugin reads it, and tells the plugin by a
  /// signal when that changes.
  json config_manager(std::string_view called, bool goes_on) const {
    return {
        {"name", called},
        {"image", image_of(spec_, nvidia_image)},
        {"command", {"config-manager"}},
        {"env",
         {variable("ONESHOT", goes_on ? "false" : "true"), variable("KUBECONFIG", ""), node_name_variable(),
          variable("NODE_LABEL", "nvidia.com/device-plugin.config"),
          variable("CONFIG_FILE_SRCDIR", "/available-configs"), variable("CONFIG_FILE_DST", "/config/config.yaml"),
          variable("DEFAULT_CONFIG", value("defaultConfig")), variable("FALLBACK_STRATEGIES", "named,single"),
          variable("SEND_SIGNAL", goes_on ? "true" : "false"), variable("SIGNAL", goes_on ? "1" : ""),
          variable("PROCESS_TO_SIGNAL", goes_on ? "nvidia-device-plugin" : "")}},
        {"resources", {{"requests", {{"cpu", "10m"}, {"memory", "32Mi"}}}}},
        {"securityContext", goes_on ? signalling() : confined()},
        {"volumeMounts", {mount("available-configs", "/available-configs", true), mount("config", "/config", false)}},
    };
  }
  /// Root of the same pod signals root without any capability; a plugin with more is signalled by one with as much.
  json signalling() const { return security(); }

  void use_config_manager(json& pod) const {
    pod["initContainers"] = json::array({config_manager("nvidia-device-plugin-init", false)});
    pod["shareProcessNamespace"] = true;
    pod["serviceAccountName"] = account;
    pod["automountServiceAccountToken"] = true;
  }

  const module_spec& spec_;
  std::string configs_;
  bool mig_;
};

bool is_ours(const module_spec& spec) { return setting_of(known_settings, spec, "plugin") == "quartermaster"; }

constexpr std::string_view own_settings[] = {"featureDiscovery"};

/// @throws invalid_policy for a setting that is about NVIDIA's plugin
std::vector<json> own_objects(const module_spec& spec, const facts& known) {
  refuse_settings_of_others(spec, "pgpu", "NVIDIA", own_settings);
  std::vector<json> out{service_account(own_plugin_account("pgpu"))};
  if (setting_of(known_settings, spec, "featureDiscovery") == "true") {
    auto of_nvidia = spec;
    of_nvidia.image.clear();  // the policy's image is the plugin's
    out.push_back(builder(of_nvidia).discovery());
  }
  out.push_back(own_plugin_set({.module = "pgpu", .daemon_set = name, .cards = "nvidia.com/gpu"}, spec, known));
  return out;
}

std::vector<json> objects(const module_spec& spec, const facts& known) {
  return is_ours(spec) ? own_objects(spec, known) : builder(spec).objects();
}

/// A named configuration may give resources any name of the vendor's (sharing.*.resources[].rename), and cut cards.
std::vector<std::string> prefixes(const module_spec& spec) {
  if (!setting_of(known_settings, spec, "configMap").empty()) return {"nvidia.com/"};
  if (setting_of(known_settings, spec, "MIG_STRATEGY") == "mixed") return {std::string(mig_prefix)};
  return {};
}

/// What a named configuration says is not known here: it may share cards.
isolation isolates(const module_spec& spec) {
  if (!setting_of(known_settings, spec, "configMap").empty()) return isolation::none;
  const auto mig = setting_of(known_settings, spec, "MIG_STRATEGY");
  return mig.empty() || mig == "none" ? isolation::exclusive : isolation::mig;
}

std::vector<json> declarations(const module_spec&, const facts&) {
  const published group{"nvidia-gpu", "NVIDIA GPU", "英伟达 GPU"};
  resource_declaration gpu;
  gpu.config_map = "cf-crl-nvidia-gpu";
  gpu.key = "nvidia.com/gpu";
  gpu.default_value = "1";
  gpu.label_en = "GPU";
  gpu.label_zh = "GPU 卡";
  gpu.description_en = "whole NVIDIA cards, none of them shared";
  gpu.description_zh = "独占的英伟达 GPU 卡数";
  return {declaration(group, gpu), device_config({"pgpu", "pGPU", "pGPU"})};
}

constexpr privilege privileges[] = {
    {"nvidia-device-plugin-ctr", "write /var/lib/kubelet/device-plugins", kubelet_registration},
    {"nvidia-device-plugin-ctr", "root", "that folder belongs to root"},
    {"nvidia-device-plugin-ctr", "privileged", "PASS_DEVICE_SPECS: opens device nodes to hand them over"},
    {"nvidia-device-plugin-ctr", "add SYS_ADMIN", "MIG_STRATEGY: reads the MIG devices of a card"},
    {"nvidia-device-plugin-ctr", "read /run/nvidia/driver", "NVIDIA_DRIVER_ROOT: finds the driver's files for CDI"},
    {"nvidia-device-plugin-ctr", "write /var/run/cdi",
     "DEVICE_LIST_STRATEGY with cdi: the specification that the container runtime reads"},
    {"", "token",
     "configMap: the sidecar reads which configuration the node's label names; plugin: quartermaster: it reads the "
     "pods of its node, their placements and the agent's report"},
    {"nvidia-device-plugin-init", "root", "configMap: writes what the plugin, which is root, reads"},
    {"nvidia-device-plugin-sidecar", "root", "configMap: signals the plugin, which is root"},
    {"nvidia-device-plugin-sidecar", "privileged",
     "PASS_DEVICE_SPECS: only a process with as much may signal one with much"},
    {"nvidia-device-plugin-sidecar", "add SYS_ADMIN",
     "MIG_STRATEGY: only a process with as much may signal one with much"},
    {"gpu-feature-discovery-ctr", "root", "featureDiscovery: that folder belongs to root"},
    {"gpu-feature-discovery-ctr", "write /etc/kubernetes/node-feature-discovery/features.d",
     "featureDiscovery: the file that Node Feature Discovery makes labels of"},
    {"gpu-feature-discovery-ctr", "read /sys", "featureDiscovery: the machine's type"},
    {"gpu-feature-discovery-ctr", "add SYS_ADMIN", "MIG_STRATEGY: reads the MIG devices of a card"},
};

constexpr product_label labels[] = {
    {"ack.node.gpu.schedule", "default", "ACK"},
    {"ack.node.gpu.schedule", "topology", "ACK"},
};

}  // namespace pgpu_plugin
}  // namespace

constinit const module_type pgpu = {
    .name = "pgpu",
    .title = "whole cards",
    .label_values = pgpu_plugin::values,
    .resources = pgpu_plugin::resources,
    .daemon_set = pgpu_plugin::name,
    .needs = {.architectures = pgpu_plugin::architectures},
    .objects = pgpu_plugin::objects,
    .isolates = isolation::exclusive,
    .rolls_out = {rollout::strategy::always, 5,
                  "the kubelet remembers which container has which card, and running ones do not need the plugin",
                  "kubelet, pkg/kubelet/cm/devicemanager (its checkpoint); NVIDIA/k8s-device-plugin#339"},
    .settings = pgpu_plugin::known_settings,
    .prefixes_with = pgpu_plugin::prefixes,
    .isolates_with = pgpu_plugin::isolates,
    .declarations = pgpu_plugin::declarations,
    .follows_placement = pgpu_plugin::is_ours,
    .privileges = pgpu_plugin::privileges,
    .labels = pgpu_plugin::labels,
};

}  // namespace reconcilers::modules
