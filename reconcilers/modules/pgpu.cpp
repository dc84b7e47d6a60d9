// pgpu: whole cards, by NVIDIA's own device plugin. Facts: NVIDIA/k8s-device-plugin v0.20.0,
// deployments/static/nvidia-device-plugin.yml and README.md.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/plugin.hpp"

namespace reconcilers::modules {
namespace {

using nlohmann::json;

constexpr std::string_view values[] = {"pgpu"};
constexpr std::string_view resources[] = {"nvidia.com/gpu"};
constexpr std::string_view architectures[] = {"amd64", "arm64"};
constexpr std::string_view name = "nvidia-device-plugin-ds";
constexpr std::string_view image = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0";

std::vector<json> objects(const module_spec& spec, const facts&) {
  json plugin = {
      {"name", "nvidia-device-plugin-ctr"},
      {"image", image_of(spec, image)},
      {"env",
       {variable("NVIDIA_VISIBLE_DEVICES", "all"), variable("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
        // Without a card or a driver it shall fail for all to see, not idle.
        variable("FAIL_ON_INIT_ERROR", "true")}},
      {"resources", {{"requests", {{"cpu", "50m"}, {"memory", "64Mi"}}}}},
      {"securityContext", confined()},
      {"volumeMounts", {mount("device-plugins", plugin_folder, false)}},
  };
  if (!spec.args.empty()) plugin["args"] = json::parse(spec.args);
  return {daemon_set("pgpu", name, spec, json::array({std::move(plugin)}),
                     json::array({host_path("device-plugins", plugin_folder, "Directory")}), {"nvidia.com/gpu"})};
}

}  // namespace

constinit const module_type pgpu = {"pgpu", "whole cards", values, resources, name, {architectures}, objects};

}  // namespace reconcilers::modules
