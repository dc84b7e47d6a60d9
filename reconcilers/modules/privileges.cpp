#include "reconcilers/modules/privileges.hpp"

#include <nlohmann/json.hpp>
#include <set>

namespace reconcilers::modules {
namespace {

using nlohmann::json;

constexpr std::string_view registers =
    "the kubelet's registration socket is there, and plugins put theirs beside it (device plugin API)";

constexpr privilege table[] = {
    {"pgpu", "nvidia-device-plugin-ctr", "write /var/lib/kubelet/device-plugins", registers},
    {"pgpu", "nvidia-device-plugin-ctr", "root", "that folder belongs to root"},

    {"vgpu", "", "hostPID",
     "counts a container's use of a card by the process ids that NVML reports, which are the host's"},
    {"vgpu", "", "token", "finds the pod an allocation is for, and writes on it which cards it got"},
    {"vgpu", "gpu-manager", "privileged",
     "opens every /dev/nvidia* without NVIDIA's container runtime, and enters no other device"},
    {"vgpu", "gpu-manager", "root", "as above"},
    {"vgpu", "gpu-manager", "write /var/lib/kubelet/device-plugins", registers},
    {"vgpu", "gpu-manager", "write /etc/gpu-manager/vdriver",
     "copies of the driver's libraries that pods with shares mount"},
    {"vgpu", "gpu-manager", "write /etc/gpu-manager/vm",
     "one folder a pod: its limits and the socket its library calls"},
    {"vgpu", "gpu-manager", "write /etc/gpu-manager/checkpoint", "what was given to whom, over a restart"},
    {"vgpu", "gpu-manager", "write /etc/gpu-manager/log", "its log files"},
    {"vgpu", "gpu-manager", "read /run/containerd", "asks containerd which processes a container has"},
    {"vgpu", "gpu-manager", "read /sys/fs/cgroup", "reads cgroup.procs of containers with shares"},
    {"vgpu", "gpu-manager", "read /usr", "finds the driver's libraries, whose place differs by distribution"},

    {"mps", "", "hostPID", "the control daemon tells clients apart by their host process ids"},
    {"mps", "nvidia-mps-device-plugin", "write /var/lib/kubelet/device-plugins", registers},
    {"mps", "nvidia-mps-device-plugin", "read /run/nvidia/mps",
     "asks the control daemon for the limits before it advertises"},
    {"mps", "nvidia-mps-device-plugin", "root", "the plugin folder belongs to root"},
    {"mps", "mps-control-daemon", "privileged", "sets the compute mode of cards to EXCLUSIVE_PROCESS"},
    {"mps", "mps-control-daemon", "root", "as above"},
    {"mps", "mps-control-daemon", "write /run/nvidia/mps", "pipes and logs of the daemon, which client pods mount"},
    {"mps", "mps-control-daemon", "write /run/nvidia/mps/shm", "shared memory between the daemon and its clients"},
    {"mps", "mps-mount-shm", "privileged", "mounts a tmpfs for that shared memory"},
    {"mps", "mps-mount-shm", "root", "as above"},
    {"mps", "mps-mount-shm", "write /run/nvidia/mps", "the place of that tmpfs"},
    {"mps", "mps-mount-shm", "share /run/nvidia/mps", "the daemon and the clients must see the tmpfs"},
};

bool flag(const json& of, const char* name) { return of.is_object() && of.value(name, false); }

void add_mounts(const json& container, const json& pod, const std::string& prefix, std::set<std::string>& out) {
  for (const auto& mount : container.value("volumeMounts", json::array())) {
    for (const auto& volume : pod.value("volumes", json::array())) {
      if (volume.at("name") != mount.at("name") || !volume.contains("hostPath")) continue;
      const auto path = volume.at("hostPath").at("path").get<std::string>();
      out.insert(prefix + (flag(mount, "readOnly") ? "read " : "write ") + path);
      if (mount.value("mountPropagation", "None") == "Bidirectional") out.insert(prefix + "share " + path);
    }
  }
}

void add_container(const json& container, const json& pod, std::set<std::string>& out) {
  const auto prefix = container.at("name").get<std::string>() + ": ";
  const auto context = container.value("securityContext", json::object());
  if (flag(context, "privileged")) out.insert(prefix + "privileged");
  const auto capabilities = context.value("capabilities", json::object());
  for (const auto& one : capabilities.value("add", json::array())) out.insert(prefix + "add " + one.get<std::string>());
  const auto dropped = capabilities.value("drop", json::array());
  if (!flag(context, "privileged") && std::ranges::find(dropped, json("ALL")) == dropped.end())
    out.insert(prefix + "add (the runtime's default set)");
  if (!flag(context, "runAsNonRoot")) out.insert(prefix + "root");
  for (const auto& port : container.value("ports", json::array())) {
    if (port.contains("hostPort")) out.insert(prefix + "hostPort");
  }
  add_mounts(container, pod, prefix, out);
}

}  // namespace

std::span<const privilege> privileges() { return table; }

std::vector<std::string> privileges_in(const json& pod) {
  std::set<std::string> out;
  for (const auto* name : {"hostPID", "hostNetwork", "hostIPC"}) {
    if (flag(pod, name)) out.insert(name);
  }
  if (pod.value("automountServiceAccountToken", true)) out.insert("token");
  for (const auto* group : {"initContainers", "containers"}) {
    for (const auto& container : pod.value(group, json::array())) add_container(container, pod, out);
  }
  return {out.begin(), out.end()};
}

}  // namespace reconcilers::modules
