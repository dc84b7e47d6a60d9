#pragma once
// A node for tests: a folder with the files of a machine that is in order. It has two H100 behind NVSwitches, each next
// to an RDMA adapter. A test changes files and asks which rows are then not in order.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "agent/facts/judge.hpp"

namespace agent::facts {

class tree {
 public:
  tree() {
    auto pattern = (std::filesystem::temp_directory_path() / "facts.XXXXXX").string();
    root = mkdtemp(pattern.data());
  }
  ~tree() { std::filesystem::remove_all(root); }
  tree(const tree&) = delete;
  tree& operator=(const tree&) = delete;

  void put(const std::string& path, const std::string& text = "", unsigned mode = 0644) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::filesystem::remove_all(root / path);
    std::ofstream(root / path) << text;
    ::chmod((root / path).c_str(), mode);
  }
  std::string text(const std::string& path) const {
    std::ostringstream out;
    out << std::ifstream(root / path).rdbuf();
    return out.str();
  }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories((root / path).parent_path());
    std::filesystem::remove_all(root / path);
    std::filesystem::create_symlink(target, root / path);
  }
  void folder(const std::string& path) const { std::filesystem::create_directories(root / path); }
  void remove(const std::string& path) const { std::filesystem::remove_all(root / path); }

  /// A PCI device below a bridge, as sysfs has it.
  void pci(const std::string& place, const std::string& address, const std::string& vendor, const std::string& device,
           const std::string& class_code, const std::string& driver, int numa = 0) const {
    const auto path = "sys/devices/" + place + "/" + address;
    put(path + "/vendor", vendor + "\n");
    put(path + "/device", device + "\n");
    put(path + "/class", class_code + "\n");
    put(path + "/numa_node", std::to_string(numa) + "\n");
    bind(address, path, driver);
    link("sys/bus/pci/devices/" + address, "../../../devices/" + place + "/" + address);
  }
  void bind(const std::string& address, const std::string& path, const std::string& driver) const {
    const auto link_path = path.empty() ? "sys/bus/pci/devices/" + address + "/driver" : path + "/driver";
    std::error_code ignored;
    std::filesystem::remove(root / link_path, ignored);
    if (driver.empty() || !std::filesystem::exists((root / link_path).parent_path())) return;
    folder("sys/bus/pci/drivers/" + driver);
    const auto folder_path = std::filesystem::canonical((root / link_path).parent_path());
    const auto target = std::filesystem::relative(root / "sys/bus/pci/drivers" / driver, folder_path);
    std::filesystem::create_symlink(target, root / link_path);
  }
  void adapter(const std::string& name, const std::string& address, const std::string& state = "4: ACTIVE") const {
    const auto path = "sys/class/infiniband/" + name;
    put(path + "/ports/1/state", state + "\n");
    link(path + "/device", "/sys/bus/pci/devices/" + address);
  }

  /// The driver, loaded, with that many cards.
  void driver(const std::string& version, int count, bool is_open = true) const {
    put("proc/driver/nvidia/version",
        "NVRM version: NVIDIA UNIX " +
            std::string(is_open ? "Open Kernel Module for x86_64  " : "x86_64 Kernel Module  ") + version +
            "  Release Build\nGCC version:  none\n");
    put("sys/module/nvidia/version", version + "\n");
    folder("sys/module/nvidia_uvm");
    put("proc/devices", "Character devices:\n195 nvidia\n511 nvidia-uvm\n\nBlock devices:\n");
    put("usr/lib/x86_64-linux-gnu/libnvidia-ml.so." + version);
    link("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "libnvidia-ml.so." + version);
    put("dev/nvidiactl", "", 0666);
    put("dev/nvidia-uvm", "", 0666);
    link("dev/char/195:255", "../nvidiactl");
    link("dev/char/511:0", "../nvidia-uvm");
    for (int i = 0; i < count; ++i) {
      const auto number = std::to_string(i);
      put("dev/nvidia" + number, "", 0666);
      link("dev/char/195:" + number, "../nvidia" + number);
    }
  }
  /// Everything else of a node in order.
  void system(const std::string& kernel = "5.15.0-105-generic") const {
    put("proc/sys/kernel/osrelease", kernel + "\n");
    put("proc/self/cgroup", "0::/kubepods.slice/pod1\n");
    put("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse\n");
    put("sys/class/dmi/id/sys_vendor", "NVIDIA\n");
    put("sys/class/dmi/id/product_name", "DGXH100\n");
    put("usr/lib/modules/" + kernel + "/updates/dkms/nvidia.ko");
    put("usr/lib/x86_64-linux-gnu/libnvidia-container.so.1.17.8");
    put("usr/bin/nvidia-container-runtime");
    put("etc/containerd/config.toml", containerd);
    put(toolkit_config, "# as it should be\naccept-nvidia-visible-devices-envvar-when-unprivileged = false\n");
    put("run/containerd/containerd.sock");
    put("var/lib/kubelet/device-plugins/kubelet.sock");
    put("var/lib/kubelet/pod-resources/kubelet.sock");
  }

  static constexpr const char* toolkit_config = "etc/nvidia-container-runtime/config.toml";
  static constexpr const char* containerd = R"(version = 2
imports = [
  "/etc/containerd/conf.d/*.toml", # drop-ins
]
[plugins."io.containerd.grpc.v1.cri"]
  enable_cdi = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "nvidia"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
        BinaryName = "/usr/bin/nvidia-container-runtime"
        SystemdCgroup = true
)";

  machine_facts seen() const { return read({root, root}); }

  std::filesystem::path root;
};

inline std::string specification(const std::string& driver, int count) {
  std::string out = "---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n";
  for (int i = 0; i < count; ++i)
    out += "- name: \"" + std::to_string(i) + "\"\n  containerEdits:\n    deviceNodes:\n    - path: /dev/nvidia" +
           std::to_string(i) + "\n";
  return out + "containerEdits:\n  mounts:\n  - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so." + driver + "\n";
}

/// The machine of the head of this file.
struct good_node : tree {
  static constexpr const char* version = "550.90.07";
  good_node() {
    system();
    driver(version, 2);
    pci("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:00.0", "0000:3d:00.0", "0x10de", "0x2330", "0x030200", "nvidia");
    pci("pci0000:3a/0000:3a:00.0/0000:3b:00.0/0000:3c:01.0", "0000:3e:00.0", "0x15b3", "0x1021", "0x020700",
        "mlx5_core");
    pci("pci0000:9a/0000:9a:00.0/0000:9b:00.0/0000:9c:00.0", "0000:9d:00.0", "0x10de", "0x2330", "0x030200", "nvidia",
        1);
    pci("pci0000:9a/0000:9a:00.0/0000:9b:00.0/0000:9c:01.0", "0000:9e:00.0", "0x15b3", "0x1021", "0x020700",
        "mlx5_core", 1);
    pci("pci0000:00/0000:00:01.0", "0000:05:00.0", "0x10de", "0x22a3", "0x068000", "nvidia-nvswitch");
    adapter("mlx5_0", "0000:3e:00.0");
    adapter("mlx5_1", "0000:9e:00.0");
    folder("sys/module/nvidia_peermem");
    put("etc/cdi/nvidia.yaml", specification(version, 2));
    put("usr/bin/nv-fabricmanager");
    link("run/systemd/units/invocation:nvidia-fabricmanager.service", "0123456789abcdef");
    put("var/lib/dpkg/status",
        "Package: bash\nVersion: 5.1\n\nPackage: nvidia-fabricmanager-550\nStatus: install ok installed\n"
        "Version: 550.90.07-1\n\nPackage: zlib1g\nVersion: 1:1.2\n\n");
    inventory.driver = version;
    inventory.cuda = "12.4";
    inventory.fabric = "completed";
    for (int i = 0; i < 2; ++i) {
      cards::card card;
      card.uuid = "GPU-" + std::to_string(i);
      card.model = "NVIDIA H100 80GB HBM3";
      card.bus_id = i == 0 ? "00000000:3D:00.0" : "00000000:9D:00.0";
      card.compute_capability = "9.0";
      card.minor = i;
      inventory.cards.push_back(card);
    }
  }
  /// The driver is gone, and NVML says so.
  void unload() {
    remove("sys/module/nvidia");
    remove("proc/driver");
    inventory = {};
    inventory.problem = "the NVIDIA driver does not start: Driver Not Loaded";
    for (const auto* address : {"0000:3d:00.0", "0000:9d:00.0"}) bind(address, "", "");
  }
  std::vector<row> rows() const { return judge(seen(), &inventory); }

  cards::inventory inventory;
};

}  // namespace agent::facts
