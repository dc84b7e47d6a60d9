#include "reconcilers/modules/own_plugin.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reconcilers/modules/plugin.hpp"
#include "text/list.hpp"

namespace reconcilers::modules {
namespace {

using nlohmann::json;

constexpr std::string_view pod_resources = "/var/lib/kubelet/pod-resources", cdi = "/run/cdi",
                           mps_folder = "/run/quartermaster/mps";

/// Of the pod's own address. Until the kubelet listens to the plugin the pod is not ready, and nothing is placed on the
/// node (reconcilers/extender/plugin_gaps.hpp).
constexpr int health_port = 8081;

json plugin_container(const own_plugin& plugin, const module_spec& spec, const facts& known) {
  auto security = confined();
  security["runAsUser"] = 0;
  security["runAsNonRoot"] = false;
  security["readOnlyRootFilesystem"] = true;
  auto args = json::array({"agent", "plugin"});
  const auto add = [&](std::string_view flag, std::string_view value) {
    args.push_back("--" + std::string(flag) + "=" + std::string(value));
  };
  if (!plugin.cards.empty()) {
    add("resource", plugin.cards);
  } else {
    for (const auto& [resource, meaning, is_offered] : plugin.shares)
      add(is_offered ? "share" : "limit", resource + "=" + meaning);
  }
  add("health-port", std::to_string(health_port));
  add("log-format", "json");
  if (!spec.args.empty()) {
    for (auto& entry : json::parse(spec.args)) args.push_back(std::move(entry));
  }
  json out = {
      {"name", "quartermaster-device-plugin"},
      {"image", image_of(spec, known.own_image)},
      {"args", std::move(args)},
      {"env", json::array({node_name_variable()})},
      {"resources", {{"requests", {{"cpu", "10m"}, {"memory", "20Mi"}}}}},
      {"readinessProbe",
       {{"httpGet", {{"path", "/readyz"}, {"port", health_port}}},
        {"periodSeconds", 2},
        {"timeoutSeconds", 2},
        {"failureThreshold", 2}}},
      {"securityContext", std::move(security)},
      {"volumeMounts",
       {mount("device-plugins", plugin_folder, false), mount("pod-resources", pod_resources, true),
        mount("cdi", cdi, false)}},
  };
  if (plugin.cards.empty()) out["volumeMounts"].push_back(mount("mps", mps_folder, true));
  return out;
}

/// Where NVIDIA's two programs are: its runtime puts them where they are on the node. The image has no PATH of its own.
constexpr std::string_view program_path =
    "/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Servers of MPS are its children. The driver and NVIDIA's two programs come by NVIDIA's runtime.
json mps_container(const module_spec& spec, const facts& known) {
  auto variables = nvidia_variables();
  variables.push_back(variable("PATH", program_path));
  return {
      {"name", "quartermaster-mps"},
      {"image", image_of(spec, known.own_image)},
      {"args", {"agent", "mps", "--log-format=json"}},
      {"env", std::move(variables)},
      {"resources", {{"requests", {{"cpu", "10m"}, {"memory", "64Mi"}}}}},
      {"securityContext", {{"privileged", true}, {"runAsUser", 0}, {"runAsNonRoot", false}}},
      {"volumeMounts", {mount("mps", mps_folder, false)}},
  };
}

}  // namespace

std::string own_plugin_account(std::string_view module) {
  return "quartermaster-device-plugin" + (module == "pgpu" ? std::string() : "-" + std::string(module));
}

void refuse_settings_of_others(const module_spec& spec, std::string_view module, std::string_view product,
                               std::span<const std::string_view> allowed) {
  for (const auto& [name, value] : spec.settings)
    if (name != "plugin" && std::ranges::find(allowed, name) == allowed.end())
      throw invalid_policy({"status.settings.of_other",
                            {{"field", "spec.modules." + std::string(module) + ".settings." + name},
                             {"product", std::string(product)},
                             {"list", text::joined(allowed)}}});
}

json own_plugin_set(const own_plugin& plugin, const module_spec& spec, const facts& known) {
  auto containers = json::array({plugin_container(plugin, spec, known)});
  auto volumes =
      json::array({host_path("device-plugins", plugin_folder, "Directory"),
                   host_path("pod-resources", pod_resources, "Directory"), host_path("cdi", cdi, "DirectoryOrCreate")});
  const bool is_of_shares = plugin.cards.empty();
  if (is_of_shares) {
    containers.push_back(mps_container(spec, known));
    volumes.push_back(host_path("mps", mps_folder, "DirectoryOrCreate"));
  }
  auto set =
      daemon_set(plugin.module, plugin.daemon_set, spec, std::move(containers), std::move(volumes),
                 {"nvidia.com/gpu", is_of_shares ? std::string_view(plugin.shares.front().resource) : plugin.cards});
  auto& pod = set["spec"]["template"]["spec"];
  pod["serviceAccountName"] = own_plugin_account(plugin.module);
  pod["automountServiceAccountToken"] = true;
  if (is_of_shares) pod["hostPID"] = true;
  return set;
}

}  // namespace reconcilers::modules
