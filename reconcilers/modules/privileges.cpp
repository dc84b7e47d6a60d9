#include "reconcilers/modules/privileges.hpp"

#include <nlohmann/json.hpp>
#include <set>

namespace reconcilers::modules {
namespace {

using nlohmann::json;

constexpr std::string_view registers =
    "the kubelet's registration socket is there, and plugins put theirs next to it (device plugin API)";

constexpr privilege table[] = {
    {"pgpu", "nvidia-device-plugin-ctr", "write /var/lib/kubelet/device-plugins", registers},
    {"pgpu", "nvidia-device-plugin-ctr", "root", "that folder belongs to root"},
    {"pgpu", "nvidia-device-plugin-ctr", "privileged", "PASS_DEVICE_SPECS: opens device nodes to hand them over"},
    {"pgpu", "nvidia-device-plugin-ctr", "add SYS_ADMIN", "MIG_STRATEGY: reads the MIG devices of a card"},
    {"pgpu", "nvidia-device-plugin-ctr", "read /run/nvidia/driver",
     "NVIDIA_DRIVER_ROOT: finds the driver's files for CDI"},
    {"pgpu", "nvidia-device-plugin-ctr", "write /var/run/cdi",
     "DEVICE_LIST_STRATEGY with cdi: the specification that the container runtime reads"},
    {"pgpu", "", "token",
     "configMap: the sidecar reads which configuration the node's label names; plugin: quartermaster: it reads the "
     "pods "
     "of its node, their placements and the agent's report"},
    {"pgpu", "quartermaster-device-plugin", "write /var/lib/kubelet/device-plugins", registers},
    {"pgpu", "quartermaster-device-plugin", "root", "plugin: quartermaster: those folders belong to root"},
    {"pgpu", "quartermaster-device-plugin", "read /var/lib/kubelet/pod-resources",
     "plugin: quartermaster: the kubelet's socket says which container has which device"},
    {"pgpu", "quartermaster-device-plugin", "write /run/cdi",
     "plugin: quartermaster: by a file there the runtime gives one container its cards"},
    {"pgpu", "nvidia-device-plugin-init", "root", "configMap: writes what the plugin, which is root, reads"},
    {"pgpu", "nvidia-device-plugin-sidecar", "root", "configMap: signals the plugin, which is root"},
    {"pgpu", "nvidia-device-plugin-sidecar", "privileged",
     "PASS_DEVICE_SPECS: only a process with as much may signal one with much"},
    {"pgpu", "nvidia-device-plugin-sidecar", "add SYS_ADMIN",
     "MIG_STRATEGY: only a process with as much may signal one with much"},
    {"pgpu", "gpu-feature-discovery-ctr", "root", "featureDiscovery: that folder belongs to root"},
    {"pgpu", "gpu-feature-discovery-ctr", "write /etc/kubernetes/node-feature-discovery/features.d",
     "featureDiscovery: the file that Node Feature Discovery makes labels of"},
    {"pgpu", "gpu-feature-discovery-ctr", "read /sys", "featureDiscovery: the machine's type"},
    {"pgpu", "gpu-feature-discovery-ctr", "add SYS_ADMIN", "MIG_STRATEGY: reads the MIG devices of a card"},

    {"vgpu", "", "hostPID",
     "counts a container's use of a card by the process ids that NVML reports, which are the host's"},
    {"vgpu", "", "token",
     "finds the pod an allocation is for, and writes on it which cards it got; plugin: quartermaster: it reads the "
     "pods of "
     "its node, their placements and the agent's report"},
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

    {"vgpu", "quartermaster-device-plugin", "write /var/lib/kubelet/device-plugins", registers},
    {"vgpu", "quartermaster-device-plugin", "root", "plugin: quartermaster: those folders belong to root"},
    {"vgpu", "quartermaster-device-plugin", "read /var/lib/kubelet/pod-resources", "as for module mps"},
    {"vgpu", "quartermaster-device-plugin", "write /run/cdi", "as for module mps"},
    {"vgpu", "quartermaster-device-plugin", "read /run/quartermaster/mps", "as for module mps"},
    {"vgpu", "quartermaster-mps", "privileged", "as for module mps"},
    {"vgpu", "quartermaster-mps", "root", "as for module mps"},
    {"vgpu", "quartermaster-mps", "write /run/quartermaster/mps", "as for module mps"},

    {"mps", "", "hostPID", "the control daemon tells clients apart by their host process ids"},
    {"mps", "", "token", "the plugin reads the pods of its node, their placements and the agent's report"},
    {"mps", "quartermaster-device-plugin", "write /var/lib/kubelet/device-plugins", registers},
    {"mps", "quartermaster-device-plugin", "root", "those folders belong to root"},
    {"mps", "quartermaster-device-plugin", "read /var/lib/kubelet/pod-resources",
     "the kubelet's socket says which container has which device"},
    {"mps", "quartermaster-device-plugin", "write /run/cdi",
     "by a file there the runtime gives one container its card"},
    {"mps", "quartermaster-device-plugin", "read /run/quartermaster/mps",
     "asks the program that keeps MPS which cards are in order, and for the ceilings of a share"},
    {"mps", "quartermaster-mps", "privileged", "sets the compute mode of cards to EXCLUSIVE_PROCESS"},
    {"mps", "quartermaster-mps", "root", "as above; and only root sets limits of a control daemon"},
    {"mps", "quartermaster-mps", "write /run/quartermaster/mps",
     "pipes and logs of the daemons, of which client pods mount the pipes of one card"},

    {"hami", "", "hostPID", "the monitor counts use by the process ids that NVML reports, which are the host's"},
    {"hami", "", "token",
     "finds the pod an allocation is for, and writes on node and pod what there is and was given; plugin: "
     "quartermaster: it reads the pods of its node, their placements and the agent's report"},
    {"hami", "device-plugin", "privileged", "opens every /dev/nvidia* to read what cards there are"},
    {"hami", "device-plugin", "root", "as above"},
    {"hami", "device-plugin", "write /var/lib/kubelet/device-plugins", registers},
    {"hami", "device-plugin", "write /usr/local/vgpu", "its library, which pods with shares mount, and a folder a pod"},
    {"hami", "device-plugin", "write /tmp/vgpulock", "the lock by which processes on one card take turns"},
    {"hami", "device-plugin", "write /var/run/cdi", "the specification that the container runtime reads"},
    {"hami", "device-plugin", "read /usr/bin", "finds nvidia-smi of the host"},
    {"hami", "vgpu-monitor", "add SYS_ADMIN", "reads the shared memory of other containers' libraries"},
    {"hami", "vgpu-monitor", "root", "as above"},
    {"hami", "vgpu-monitor", "write /usr/local/vgpu/containers", "removes the folders of pods that are gone"},
    {"hami", "vgpu-monitor", "write /tmp/vgpulock", "takes its turn as they do"},
    {"hami", "vgpu-monitor", "read /run/containerd", "asks containerd which processes a container has"},
    {"hami", "vgpu-monitor", "read /sys", "reads cgroup.procs of containers with shares"},
    {"hami", "vgpu-monitor", "read /var", "finds the kubelet's folders of those containers"},
    {"hami", "quartermaster-device-plugin", "write /var/lib/kubelet/device-plugins", registers},
    {"hami", "quartermaster-device-plugin", "root", "plugin: quartermaster: those folders belong to root"},
    {"hami", "quartermaster-device-plugin", "read /var/lib/kubelet/pod-resources", "as for module mps"},
    {"hami", "quartermaster-device-plugin", "write /run/cdi", "as for module mps"},
    {"hami", "quartermaster-device-plugin", "read /run/quartermaster/mps", "as for module mps"},
    {"hami", "quartermaster-mps", "privileged", "as for module mps"},
    {"hami", "quartermaster-mps", "root", "as for module mps"},
    {"hami", "quartermaster-mps", "write /run/quartermaster/mps", "as for module mps"},

    {"share", "nvidia-device-plugin-ctr", "write /var/lib/kubelet/device-plugins", registers},
    {"share", "nvidia-device-plugin-ctr", "root", "that folder belongs to root"},

    {"gpushare", "", "hostNetwork", "asks the kubelet of its node for pods, on the node's own address"},
    {"gpushare", "", "hostPID", "plugin: quartermaster: as for module mps"},
    {"gpushare", "", "token",
     "finds the pod an allocation is for, and writes gpu-count into the node's status; plugin: quartermaster: it reads "
     "the pods of its node, their placements and the agent's report"},
    {"gpushare", "gpushare", "write /var/lib/kubelet/device-plugins", registers},
    {"gpushare", "gpushare", "root", "that folder belongs to root"},
    {"gpushare", "gpushare", "read /root/nvidia-mps", "mps: the pipe of the MPS server that pods get"},
    {"gpushare", "quartermaster-device-plugin", "write /var/lib/kubelet/device-plugins", registers},
    {"gpushare", "quartermaster-device-plugin", "root", "plugin: quartermaster: those folders belong to root"},
    {"gpushare", "quartermaster-device-plugin", "read /var/lib/kubelet/pod-resources", "as for module mps"},
    {"gpushare", "quartermaster-device-plugin", "write /run/cdi", "as for module mps"},
    {"gpushare", "quartermaster-device-plugin", "read /run/quartermaster/mps", "as for module mps"},
    {"gpushare", "quartermaster-mps", "privileged", "as for module mps"},
    {"gpushare", "quartermaster-mps", "root", "as for module mps"},
    {"gpushare", "quartermaster-mps", "write /run/quartermaster/mps", "as for module mps"},

    // Of a policy's own module; all else that its pods may do stands in the policy, and nowhere but there.
    {"", "device-plugin", "write /var/lib/kubelet/device-plugins", registers},
    {"", "device-plugin", "root", "that folder belongs to root"},
};

bool flag(const json& object, const char* name) { return object.is_object() && object.value(name, false); }

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
  for (const auto& capability : capabilities.value("add", json::array()))
    out.insert(prefix + "add " + capability.get<std::string>());
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
