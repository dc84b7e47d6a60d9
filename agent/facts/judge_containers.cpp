// How cards come into containers: runtime, toolkit, CDI, cgroups, and the kubelet's sockets.

#include <algorithm>

#include "agent/facts/judge.hpp"
#include "agent/facts/runtime.hpp"
#include "text/list.hpp"

namespace agent::facts {
namespace {

judgement toolkit_judgement(const machine_facts& node) {
  if (!node.toolkit) return {check_state::unknown, node.toolkit.error(), {}};
  const auto& found = *node.toolkit;
  const std::string oldest(entry_of(check::container_toolkit).version);
  const auto remedy = "install nvidia-container-toolkit " + oldest + " or newer on the node";
  const bool is_good = found != "missing" && version_parts(found) >= version_parts(oldest);
  return {is_good ? check_state::ok : check_state::failed, found, is_good ? "" : remedy};
}

/// Of k3s, k0s or MicroK8s; empty: of none of them.
std::string remedy_of_distribution(const container_runtime& runtime) {
  for (const auto& name : runtime.names)
    if (const auto remedy = distribution_remedy(name); !remedy.empty()) return std::string(remedy);
  return {};
}

judgement runtime_judgement(const machine_facts& node) {
  if (!node.runtime) return {check_state::unknown, node.runtime.error(), {}};
  const auto& runtime = *node.runtime;
  const auto found = text::joined(runtime.names);
  if (!node.has_program) return {check_state::unknown, node.has_program.error(), {}};
  const auto remedy = remedy_of_distribution(runtime);
  const bool is_known = runtime.default_runtime.has_value();
  if (const auto defect = is_known ? defect_of(runtime.settings, node.has_program) : std::nullopt) {
    // Pods run with other cgroups than the kubelet's, and come and go.
    const bool is_usable = defect->type == runtime_defect::kind::cgroups;
    return {is_usable ? check_state::warning : check_state::failed, found + ": " + defect->text,
            defect->is_repairable() && !remedy.empty() ? remedy : defect->remedy()};
  }
  const bool has_containerd = std::ranges::find(runtime.names, "containerd") != runtime.names.end();
  if (!remedy.empty() && has_containerd)
    return {check_state::warning, found,
            "two containerd run here, each with files of its own: what is changed for one does not hold for the other"};
  return {check_state::ok, found, {}};
}

/// Whether a pod gets cards that it did not ask for. NVIDIA's README: https://github.com/NVIDIA/k8s-device-plugin
judgement visible_devices_judgement(const machine_facts& node) {
  if (!node.runtime) return {check_state::unknown, node.runtime.error(), {}};
  if (!node.runtime->has_nvidia) return {check_state::ok, "there is no runtime nvidia", {}};
  if (!node.has_program) return {check_state::unknown, node.has_program.error(), {}};
  if (!*node.has_program) return {check_state::unknown, "the program of the runtime nvidia is not there", {}};
  if (!node.reads_environment) return {check_state::unknown, node.reads_environment.error(), {}};
  if (*node.reads_environment == false) return {check_state::ok, "unprivileged containers may not name cards", {}};
  return {
      check_state::warning, "containers get the cards that NVIDIA_VISIBLE_DEVICES names",
      "once the plugin of this node gives cards by CDI or volume mounts (docs/agent.md, \"Who may choose cards by the "
      "environment?\"), set accept-nvidia-visible-devices-envvar-when-unprivileged = false in " +
          toolkit_config(*node.runtime) + "; until then admission.visibleDevices: Deny of the chart refuses pods"};
}

bool has_cdi(const machine_facts& node) {
  if (!node.runtime || node.runtime->uses_cdi != true || !node.cdi) return false;
  return std::ranges::any_of(*node.cdi, &cdi_spec::is_complete);
}

judgement default_runtime_judgement(const machine_facts& node) {
  if (!node.runtime) return {check_state::unknown, node.runtime.error(), {}};
  const auto& runtime = *node.runtime;
  if (!runtime.default_runtime) return {check_state::unknown, runtime.default_runtime.error(), {}};
  const auto& found = *runtime.default_runtime;
  const auto remedy = remedy_of_distribution(runtime);
  const auto defect = defect_of(runtime.settings, node.has_program);
  const bool is_broken = defect && defect->is_repairable();
  if (is_nvidia_default(runtime.settings) && !is_broken) return {check_state::ok, found, {}};
  if (is_nvidia_default(runtime.settings))
    return {check_state::warning, found, defect->text + ": " + (remedy.empty() ? defect->remedy() : remedy)};
  if (has_cdi(node)) return {check_state::ok, "cdi", {}};
  if (runtime.has_nvidia)
    return {check_state::warning, found,
            "pods see no card unless they name the RuntimeClass nvidia: " +
                (remedy.empty() ? "make nvidia the default (on the node, as root: quartermaster agent fix-runtime "
                                  "--set-default), or name the RuntimeClass in the AcceleratorPolicy"
                                : "name it in the AcceleratorPolicy; " + remedy)};
  return {check_state::warning, found,
          "pods see no card: " +
              (remedy.empty() ? "on the node, as root, run quartermaster agent fix-runtime --set-default and restart "
                                "the runtime"
                              : remedy) +
              ", or write a CDI specification (nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml)"};
}

judgement cdi_judgement(const machine_facts& node, const std::string& driver) {
  if (!node.cdi) return {check_state::unknown, node.cdi.error(), {}};
  const std::string renew = "nvidia-ctk cdi generate --output=";
  for (const auto& spec : *node.cdi) {
    if (!spec.is_complete)
      return {check_state::failed, spec.path + " is no complete CDI specification", renew + spec.path};
    const bool is_old =
        !driver.empty() && !spec.drivers.empty() && std::ranges::find(spec.drivers, driver) == spec.drivers.end();
    if (is_old)
      return {check_state::failed,
              spec.path + " is of driver " + text::joined(spec.drivers) + ", and " + driver + " runs",
              "containers do not start with libraries that are gone: " + renew + spec.path};
    if (!node.devices) continue;
    for (const auto& device : spec.devices)
      if (!node.devices->contains(device))
        return {check_state::failed, spec.path + " names /dev/" + device + ", which is not there", renew + spec.path};
  }
  if (!node.cdi->empty() && node.runtime && node.runtime->uses_cdi == false)
    return {check_state::warning, "specifications are there, and the runtime has CDI switched off",
            "set enable_cdi = true in containerd's configuration (nvidia-ctk runtime configure --cdi.enabled) and "
            "restart it, or remove the specifications"};
  if (node.cdi->empty()) return {check_state::ok, "none", {}};
  std::vector<std::string> paths;
  for (const auto& spec : *node.cdi) paths.push_back(spec.path);
  return {check_state::ok, text::some_of(paths), {}};
}

judgement cgroup_judgement(const machine_facts& node) {
  if (!node.cgroup) return {check_state::unknown, node.cgroup.error(), {}};
  return {check_state::ok, *node.cgroup, {}};
}

judgement socket_judgement(const fact<bool>& socket, const std::string& path, const std::string& remedy) {
  if (!socket) return {check_state::unknown, socket.error(), {}};
  if (*socket) return {check_state::ok, path, {}};
  return {check_state::failed, path + " is not there", remedy};
}

}  // namespace

void judge_containers(const machine_facts& node, std::vector<row>& rows) {
  add(rows, check::container_toolkit, toolkit_judgement(node));
  add(rows, check::container_runtime, runtime_judgement(node));
  add(rows, check::default_runtime, default_runtime_judgement(node));
  add(rows, check::visible_devices, visible_devices_judgement(node));
  add(rows, check::cdi, cdi_judgement(node, node.module_version));
  add(rows, check::cgroup, cgroup_judgement(node));
  const std::string folder = "/var/lib/kubelet/";
  add(rows, check::kubelet_device_plugins,
      socket_judgement(node.device_plugin_socket, folder + "device-plugins/kubelet.sock",
                       "plugins register there: restart the kubelet; its path does not follow --root-dir"));
  add(rows, check::kubelet_pod_resources,
      socket_judgement(node.pod_resources_socket, folder + "pod-resources/kubelet.sock",
                       "take KubeletPodResources=false out of the kubelet's feature gates and restart it"));
}

}  // namespace agent::facts
