// mps: shares of a card by NVIDIA MPS: nvidia.com/mps-core (100 a card) and nvidia.com/mps-memory (1 GiB units). NVIDIA
// ships the control daemon (k8s-device-plugin v0.20.0, cmd/mps-control-daemon), but its plugin offers equal shares of
// nvidia.com/gpu only; no public plugin advertises these two. The plugin container is the operator's own image, whose
// plugin is still to be written: until then the policy names an image that has one.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/plugin.hpp"

namespace reconcilers::modules {
namespace {

using nlohmann::json;

constexpr std::string_view values[] = {"mps"};
constexpr std::string_view resources[] = {"nvidia.com/mps-core", "nvidia.com/mps-memory"};
constexpr std::string_view architectures[] = {"amd64"};
constexpr std::string_view name = "nvidia-mps-device-plugin-daemonset";
constexpr std::string_view control_image = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0";

json plugin(const module_spec& spec, const facts& known) {
  json out = {
      {"name", "nvidia-mps-device-plugin"},
      {"image", image_of(spec, known.own_image)},
      {"env",
       {variable("NVIDIA_VISIBLE_DEVICES", "all"), variable("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
        node_name_variable()}},
      {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}}},
      {"securityContext", confined()},
      {"volumeMounts", {mount("device-plugins", plugin_folder, false), mount("mps", "/mps", true)}},
  };
  auto args = spec.image.empty() ? json{"agent", "device-plugin", "--module=mps"} : json::array();
  if (!spec.args.empty()) {
    for (auto& one : json::parse(spec.args)) args.push_back(std::move(one));
  }
  if (!args.empty()) out["args"] = std::move(args);
  return out;
}

/// Sets the cards to EXCLUSIVE_PROCESS and runs nvidia-cuda-mps-control.
json control_daemon() {
  return {
      {"name", "mps-control-daemon"},
      {"image", control_image},
      {"command", {"mps-control-daemon"}},
      {"env",
       {variable("NVIDIA_VISIBLE_DEVICES", "all"), variable("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
        node_name_variable()}},
      {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}}},
      {"securityContext", {{"privileged", true}}},
      {"volumeMounts", {mount("mps", "/mps", false), mount("mps-shm", "/dev/shm", false)}},
  };
}

std::vector<json> objects(const module_spec& spec, const facts& known) {
  json mount_shm = {
      {"name", "mps-mount-shm"},
      {"image", control_image},
      {"command", {"mps-control-daemon", "mount-shm"}},
      {"securityContext", {{"privileged", true}}},
      {"volumeMounts", {{{"name", "mps"}, {"mountPath", "/mps"}, {"mountPropagation", "Bidirectional"}}}},
  };
  const json volumes = {
      host_path("device-plugins", plugin_folder, "Directory"),
      host_path("mps", "/run/nvidia/mps", "DirectoryOrCreate"),
      host_path("mps-shm", "/run/nvidia/mps/shm", "DirectoryOrCreate"),
  };
  auto set = daemon_set("mps", name, spec, json::array({plugin(spec, known), control_daemon()}), volumes,
                        {"nvidia.com/gpu", "nvidia.com/mps-core"});
  auto& pod = set["spec"]["template"]["spec"];
  pod["initContainers"] = json::array({std::move(mount_shm)});
  pod["hostPID"] = true;
  return {std::move(set)};
}

}  // namespace

/// Volta (7.0) or newer, CUDA 11.5: the first with a memory limit for MPS clients. MPS and MIG are not mixed.
constinit const module_type mps = {"mps", "shares of a card by NVIDIA MPS", values, resources,
                                   name,  {architectures, 70, 1105, false}, objects};

}  // namespace reconcilers::modules
