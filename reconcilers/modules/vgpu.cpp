// vgpu: shares of a card by GPU-Manager (tkestack/gpu-manager v1.1.5; facts: its gpu-manager.yaml, build/start.sh,
// pkg/server, and TKE's manifests). Narrower than upstream: a ServiceAccount with the few rights it uses (the chart's,
// not */*), the container runtime's folder instead of all of /var/run, no kernel module loading.

#include <nlohmann/json.hpp>

#include "reconcilers/modules/plugin.hpp"

namespace reconcilers::modules {
namespace {

using nlohmann::json;

constexpr std::string_view values[] = {"vgpu", "enable"};
constexpr std::string_view resources[] = {"tencent.com/vcuda-core", "tencent.com/vcuda-memory"};
constexpr std::string_view architectures[] = {"amd64"};
constexpr std::string_view name = "gpu-manager-daemonset";
constexpr std::string_view account = "gpu-manager";
constexpr std::string_view image = "tkestack/gpu-manager:v1.1.5";
constexpr int metrics_port = 5678;

/// The image's start script takes further flags as one variable, so the policy's args are joined.
std::string flags(const module_spec& spec) {
  std::string out = "--container-runtime-endpoint=/var/run/containerd/containerd.sock --cgroup-driver=systemd";
  if (!spec.args.empty()) {
    for (const auto& one : json::parse(spec.args)) out += " " + one.get<std::string>();
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

std::vector<json> objects(const module_spec& spec, const facts&) {
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
  auto set = daemon_set("vgpu", name, spec, json::array({plugin(spec)}), volumes, {"tencent.com/vcuda-core"});
  auto& pod = set["spec"]["template"]["spec"];
  pod["hostPID"] = true;
  pod["serviceAccountName"] = account;
  pod["automountServiceAccountToken"] = true;
  set["spec"]["minReadySeconds"] = 10;
  json service_account = {{"apiVersion", "v1"},
                          {"kind", "ServiceAccount"},
                          {"metadata", {{"name", account}}},
                          {"automountServiceAccountToken", false}};
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
  return {std::move(service_account), std::move(metrics), std::move(set)};
}

}  // namespace

constinit const module_type vgpu = {"vgpu", "shares of a card by GPU-Manager", values, resources,
                                    name,   {architectures, 0, 0, false},      objects};

}  // namespace reconcilers::modules
