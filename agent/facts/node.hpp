#pragma once
// What the files of a node say of its driver, its container runtime and its network: facts, without a verdict. No
// process is started and nothing is written; it takes a few milliseconds.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/facts/files.hpp"
#include "agent/facts/nvidia_runtime.hpp"

namespace agent::facts {

/// Where files are. In a pod, the kernel's are those of the pod itself, and the node's are mounted.
struct folders {
  std::string kernel = "/";  ///< has proc and sys
  std::string node = "/";    ///< has dev, etc, run, usr, lib and var
};

struct pci_device {
  std::string address;  ///< "0000:3b:00.0"
  std::string driver;   ///< that is bound to it; empty: none
  std::string path;     ///< "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0"
  std::string product;  ///< as the driver of a card of another vendor calls it; empty: it does not say
  unsigned vendor = 0, device = 0, class_code = 0;
  int numa = -1;
  bool is_card() const;    ///< of NVIDIA
  bool is_switch() const;  ///< an NVSwitch
};

/// A file of the Container Device Interface that is about NVIDIA's cards.
struct cdi_spec {
  std::string path;
  bool is_complete = false;          ///< it has a version and a kind
  std::vector<std::string> drivers;  ///< versions of the driver's libraries that it names
  std::vector<std::string> devices;  ///< "nvidia0" of /dev
};

struct container_runtime {
  std::vector<std::string> names;     ///< by their sockets: "containerd", "k3s", "k0s", "microk8s", "cri-o", "docker"
  fact<std::string> default_runtime;  ///< "runc"
  runtime_settings settings;          ///< as far as default_runtime is known
  bool has_nvidia = false;            ///< a runtime of NVIDIA's is configured, whatever it is called
  std::string program;                ///< of that runtime; empty: not said
  std::optional<bool> uses_cdi;       ///< nothing: not said
  bool uses_systemd = false;          ///< for the cgroups of containers
  bool is_linked = false;             ///< what fix-runtime would write over is a link
};

struct rdma_device {
  std::string name;  ///< "mlx5_0"
  std::string path;  ///< as of pci_device
  int numa = -1;
  std::vector<std::string> idle_ports;  ///< "1: DOWN"
};

struct machine_facts {
  fact<std::string> kernel;                       ///< that runs: "5.15.0-105-generic"
  fact<std::vector<std::string>> driver_kernels;  ///< those that a driver is built for
  std::string module_version;                     ///< of the driver that is loaded; empty: none is
  bool is_open_module = false;                    ///< its open flavor
  fact<std::vector<std::string>> modules;         ///< all that are loaded
  fact<std::vector<pci_device>> pci;
  fact<std::vector<std::string>> libraries;       ///< versions of libnvidia-ml on the node
  fact<std::map<std::string, unsigned>> devices;  ///< mode by name: "nvidia0"
  fact<std::vector<std::string>> char_links;      ///< names in /dev/char
  std::string uvm_major;                          ///< of /proc/devices; empty: none
  fact<std::string> cgroup;                       ///< "v1", "v2"
  fact<container_runtime> runtime;
  fact<bool> has_program;     ///< of NVIDIA's runtime
  fact<std::string> toolkit;  ///< its version; "missing"
  /// The runtime nvidia gives an unprivileged container the cards that its environment names; nothing: not said, which
  /// means true.
  fact<std::optional<bool>> reads_environment;
  fact<std::vector<cdi_spec>> cdi;
  fact<std::string> fabric_manager;    ///< "active", "inactive", "missing"
  std::string fabric_manager_version;  ///< empty: not known
  fact<std::vector<rdma_device>> rdma;
  std::string machine;  ///< "VMware, Inc. VMware7,1"
  bool is_virtual = false;
  fact<bool> has_license;                                 ///< of NVIDIA vGPU: a token or a server is configured
  fact<bool> device_plugin_socket, pod_resources_socket;  ///< of the kubelet
};

machine_facts read(const folders& folders);

/// "550.90.07" part by part; text after the numbers does not count.
std::vector<int> version_parts(std::string_view version);

}  // namespace agent::facts
