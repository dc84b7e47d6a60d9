#include "agent/facts/node.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ranges>

#include "agent/facts/other_cards.hpp"
#include "agent/facts/runtime.hpp"
#include "text/text.hpp"

namespace agent::facts {
namespace {

constexpr unsigned nvidia_vendor = 0x10de;
/// No node has more versions, devices, kernels or specifications; what is beyond would only take time.
constexpr std::size_t most_listed = 256, most_specs = 64, most_bytes_of_spec = 1 << 20;

std::string line_of(const files& files, const std::string& path) {
  const auto text = files.text(path);
  if (!text || !*text) return {};
  return std::string(text::trimmed(std::string_view(**text).substr(0, (*text)->find('\n'))));
}

unsigned hexadecimal(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  unsigned out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out, 16);
  return out;
}

/// The digits and dots at the start.
std::string version_at(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (std::isdigit(static_cast<unsigned char>(text[length])) || text[length] == '.'))
    ++length;
  while (length > 0 && text[length - 1] == '.') --length;
  return std::string(text.substr(0, length));
}

void add_once(std::vector<std::string>& list, std::string item) {
  if (!item.empty() && list.size() < most_listed && std::ranges::find(list, item) == list.end())
    list.push_back(std::move(item));
}

fact<std::vector<pci_device>> read_pci(const files& kernel) {
  const std::string folder = "/sys/bus/pci/devices";
  const auto addresses = kernel.names(folder);
  if (!addresses) return std::unexpected(addresses.error());
  std::vector<pci_device> out;
  for (const auto& address : *addresses) {
    const auto path = folder + "/" + address;
    pci_device device;
    device.address = address;
    device.vendor = hexadecimal(line_of(kernel, path + "/vendor"));
    device.class_code = hexadecimal(line_of(kernel, path + "/class"));
    constexpr unsigned network = 0x02;
    const bool is_other_card = !vendor_of_card(device).empty();
    if (device.vendor != nvidia_vendor && device.class_code >> 16 != network && !is_other_card) continue;
    if (kernel.exists(path + "/physfn").value_or(false)) continue;  // what SR-IOV has made of a device, for a guest
    device.device = hexadecimal(line_of(kernel, path + "/device"));
    device.driver = kernel.link_name(path + "/driver");
    device.path = kernel.target(path);
    const auto numa = line_of(kernel, path + "/numa_node");
    std::from_chars(numa.data(), numa.data() + numa.size(), device.numa);
    if (is_other_card) device.product = line_of(kernel, path + "/product_name");  // of amdgpu, on cards for servers
    out.push_back(std::move(device));
  }
  return out;
}

/// All that are loaded or built in and have parameters.
fact<std::vector<std::string>> read_modules(const files& kernel) { return kernel.names("/sys/module"); }

constexpr const char* module_folders[] = {
    "/updates/dkms", "/updates", "/extra", "/extra/nvidia", "/weak-updates/nvidia", "/kernel/drivers/video", "/nvidia"};

bool has_module(const files& node, const std::string& folder) {
  const auto is_driver = [](const std::string& name) { return name.starts_with("nvidia.ko"); };
  for (const auto* place : module_folders) {
    const auto names = node.names(folder + place);
    if (names && std::ranges::any_of(*names, is_driver)) return true;
  }
  // Ubuntu's signed modules: kernel/nvidia-550/nvidia.ko or nvidia/nvidia-550/nvidia.ko.
  for (const auto* place : {"/kernel", "/kernel/nvidia"}) {
    const auto folders = node.names(folder + place);
    if (!folders) continue;
    for (const auto& name : *folders) {
      if (!name.starts_with("nvidia")) continue;
      const auto names = node.names(folder + place + "/" + name);
      if (names && std::ranges::any_of(*names, is_driver)) return true;
    }
  }
  return false;
}

fact<std::vector<std::string>> read_driver_kernels(const files& node) {
  // /lib is a part of /usr on most systems, and then only /usr has to be mounted.
  auto folder = std::string("/usr/lib/modules");
  auto releases = node.names(folder);
  if (!releases || releases->empty()) {
    folder = "/lib/modules";
    auto others = node.names(folder);
    if (others || !releases) releases = std::move(others);
  }
  if (!releases) return std::unexpected(releases.error());
  std::vector<std::string> out;
  for (const auto& release : *releases | std::views::take(most_listed))
    if (has_module(node, folder + "/" + release)) out.push_back(release);
  return out;
}

constexpr const char* library_folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                           "/usr/lib"};

/// Versions at the end of the names of a library: libnvidia-ml.so.550.90.07.
fact<std::vector<std::string>> versions_of(const files& node, const std::vector<std::string>& folders,
                                           const std::string& library) {
  std::vector<std::string> out;
  for (const auto& folder : folders) {
    const auto names = node.names(folder);
    if (!names) return std::unexpected(names.error());
    for (const auto& name : *names) {
      if (!name.starts_with(library + ".so.")) continue;
      const auto version = version_at(std::string_view(name).substr(library.size() + 4));
      if (version.contains('.')) add_once(out, version);
    }
  }
  return out;
}

std::vector<std::string> folders_with_libraries() { return {std::begin(library_folders), std::end(library_folders)}; }

/// Where the GPU Operator's container has the driver, if it has.
constexpr const char* driver_container = "/run/nvidia/driver";

fact<std::vector<std::string>> read_libraries(const files& node) {
  auto own = versions_of(node, folders_with_libraries(), "libnvidia-ml");
  if (own && !own->empty()) return own;
  auto folders = folders_with_libraries();
  for (auto& folder : folders) folder.insert(0, driver_container);
  auto others = versions_of(node, folders, "libnvidia-ml");
  return others && !others->empty() ? others : own;
}

fact<std::map<std::string, unsigned>> read_devices(const files& node, const std::string& folder) {
  const auto names = node.names(folder);
  if (!names) return std::unexpected(names.error());
  std::map<std::string, unsigned> out;
  for (const auto& name : *names) {
    if (!name.starts_with("nvidia")) continue;
    const auto mode = node.mode(folder + "/" + name);
    if (!mode) return std::unexpected(mode.error());
    if (*mode) out[name] = **mode;
  }
  return out;
}

/// The major number of "nvidia-uvm", which the kernel gives out when it loads the module.
std::string read_uvm_major(const files& kernel) {
  const auto text = kernel.text("/proc/devices");
  if (!text || !*text) return {};
  const auto end = (*text)->find(" nvidia-uvm\n");
  if (end == std::string::npos) return {};
  const auto begin = (*text)->rfind('\n', end) + 1;
  return std::string(text::trimmed(std::string_view(**text).substr(begin, end - begin)));
}

/// A process is in one group of cgroup v2, or in one per controller of v1. Both at once is v1 for Kubernetes.
fact<std::string> read_cgroup(const files& kernel) {
  const auto text = kernel.text("/proc/self/cgroup");
  if (!text) return std::unexpected(text.error());
  if (!*text || (*text)->empty())
    return std::unexpected(explained_cause{check_cause::file_empty, {{"path", "/proc/self/cgroup"}}});
  return (*text)->starts_with("0::") && (*text)->find('\n') + 1 >= (*text)->size() ? "v2" : "v1";
}

/// Names of packages and their versions, where dpkg keeps them.
std::string packaged_version(const files& node, const std::string& prefix) {
  const auto text = node.text("/var/lib/dpkg/status");
  if (!text || !*text) return {};
  const auto begin = (*text)->find("\nPackage: " + prefix);
  const auto end = (*text)->find("\n\n", begin);
  const auto mark = begin == std::string::npos ? begin : (*text)->find("\nVersion: ", begin);
  if (mark == std::string::npos || mark > end) return {};
  return version_at(std::string_view(**text).substr(mark + 10));
}

/// libnvidia-container comes with each toolkit in the same version.
fact<std::string> read_toolkit(const files& node) {
  auto folders = folders_with_libraries();
  folders.emplace_back("/usr/local/nvidia/toolkit");  // the GPU Operator's
  const auto versions = versions_of(node, folders, "libnvidia-container");
  if (!versions) return std::unexpected(versions.error());
  if (!versions->empty()) return std::ranges::max(*versions, {}, version_parts);
  for (const auto* program : {"/usr/bin/nvidia-container-runtime", "/usr/bin/nvidia-ctk",
                              "/usr/local/nvidia/toolkit/nvidia-container-runtime"}) {
    if (node.exists(program).value_or(false))
      return std::unexpected(explained_cause{check_cause::toolkit_without_version, {{"path", program}}});
  }
  return "missing";
}

/// The word after a key, in YAML and in JSON: `kind: nvidia.com/gpu`, `"kind": "nvidia.com/gpu"`.
std::string word_after(std::string_view text, std::string_view key) {
  const auto begin = text.find(key);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + key.size());
  text.remove_prefix(std::min(text.find_first_not_of("\"': "), text.size()));
  return std::string(text.substr(0, text.find_first_of("\"', \r\n")));
}

/// Devices of another vendor, which may mention NVIDIA: our own plugin's files do.
bool is_of_another(std::string_view text) {
  const auto kind = word_after(text, "kind");
  return !kind.empty() && !kind.contains("nvidia.com/");
}

cdi_spec spec_in(const std::string& path, std::string_view text) {
  cdi_spec out;
  out.path = path;
  out.is_complete = !word_after(text, "cdiVersion").empty() && word_after(text, "kind").contains("nvidia.com/");
  for (const std::string_view library : {"libcuda.so.", "libnvidia-ml.so."}) {
    for (auto begin = text.find(library); begin != std::string_view::npos; begin = text.find(library, begin + 1)) {
      auto version = version_at(text.substr(begin + library.size()));
      if (version.contains('.')) add_once(out.drivers, std::move(version));
    }
  }
  constexpr std::string_view folder = "/dev/nvidia";
  for (auto begin = text.find(folder); begin != std::string_view::npos; begin = text.find(folder, begin + 1)) {
    const auto number = version_at(text.substr(begin + folder.size()));
    if (!number.empty()) add_once(out.devices, "nvidia" + number);
  }
  return out;
}

fact<std::vector<cdi_spec>> read_cdi(const files& node) {
  std::vector<cdi_spec> out;
  for (const std::string folder : {"/etc/cdi", "/run/cdi"}) {
    const auto names = node.names(folder);
    if (!names) return std::unexpected(names.error());
    std::size_t looked_at = 0;
    for (const auto& name : *names) {
      if (!name.ends_with(".yaml") && !name.ends_with(".json")) continue;
      if (++looked_at > most_specs) break;
      const auto path = folder + "/" + name;
      const auto text = node.text(path, most_bytes_of_spec);
      if (!text) return std::unexpected(text.error());
      if (*text && ((*text)->contains("nvidia") || name.contains("nvidia")) && !is_of_another(**text))
        out.push_back(spec_in(path, **text));
    }
  }
  return out;
}

/// systemd keeps a link per unit that is active.
fact<bool> is_active(const files& node, const std::string& unit) {
  return node.exists("/run/systemd/units/invocation:" + unit);
}

fact<std::string> read_fabric_manager(const files& node) {
  const auto active = is_active(node, "nvidia-fabricmanager.service");
  if (!active) return std::unexpected(active.error());
  if (*active) return "active";
  const auto program = node.exists("/usr/bin/nv-fabricmanager");
  if (!program) return std::unexpected(program.error());
  if (node.exists(std::string(driver_container) + "/usr/bin/nv-fabricmanager").value_or(false))
    return std::unexpected(explained_cause{check_cause::fabric_manager_elsewhere});
  return *program ? "inactive" : "missing";
}

fact<std::vector<rdma_device>> read_rdma(const files& kernel) {
  const std::string folder = "/sys/class/infiniband";
  const auto names = kernel.names(folder);
  if (!names) return std::unexpected(names.error());
  std::vector<rdma_device> out;
  for (const auto& name : *names) {
    rdma_device device;
    device.name = name;
    const auto path = folder + "/" + name;
    device.path = kernel.target(path + "/device");
    const auto numa = line_of(kernel, path + "/device/numa_node");
    std::from_chars(numa.data(), numa.data() + numa.size(), device.numa);
    for (const auto& port : kernel.names(path + "/ports").value_or(std::vector<std::string>())) {
      const auto state = line_of(kernel, path + "/ports/" + port + "/state");  // "4: ACTIVE"
      const auto word = state.substr(std::min(state.find(": "), state.size()));
      if (!word.empty() && word != ": ACTIVE") device.idle_ports.push_back(port + word);
    }
    out.push_back(std::move(device));
  }
  return out;
}

fact<bool> read_license(const files& node) {
  const auto tokens = node.names("/etc/nvidia/ClientConfigToken");
  if (!tokens) return std::unexpected(tokens.error());
  if (std::ranges::any_of(*tokens, [](const std::string& name) { return name.ends_with(".tok"); })) return true;
  const auto text = node.text("/etc/nvidia/gridd.conf");
  if (!text) return std::unexpected(text.error());
  const std::string config = "\n" + text->value_or("");
  const auto server = config.find("\nServerAddress=");
  return server != std::string::npos && config.find_first_not_of(" \t\n", server + 15) == server + 15;
}

void read_driver(const files& kernel, const files& node, machine_facts& out) {
  const std::string path = "/proc/sys/kernel/osrelease";
  const auto release = kernel.text(path);
  if (!release)
    out.kernel = std::unexpected(release.error());
  else if (!*release)
    out.kernel = std::unexpected(explained_cause{check_cause::file_absent, {{"path", path}}});
  else
    out.kernel = std::string(text::trimmed(**release));
  out.driver_kernels = read_driver_kernels(node);
  out.modules = read_modules(kernel);
  out.module_version = line_of(kernel, "/sys/module/nvidia/version");
  const auto version = line_of(kernel, "/proc/driver/nvidia/version");
  out.is_open_module = version.contains("Open Kernel Module");
  if (out.module_version.empty()) {
    // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.90.07  Fri ..."; the open one ends "Module for x86_64".
    for (auto mark = version.find("  "); mark != std::string::npos; mark = version.find("  ", mark + 1)) {
      const auto number = version_at(std::string_view(version).substr(mark + 2));
      if (number.contains('.')) out.module_version = number;
      if (number.contains('.')) break;
    }
  }
  out.pci = read_pci(kernel);
  out.libraries = read_libraries(node);
  out.devices = read_devices(node, "/dev");
  const auto others = read_devices(node, std::string(driver_container) + "/dev");
  if (out.devices && out.devices->empty() && others) out.devices = others;
  out.char_links = node.names("/dev/char");
  out.uvm_major = read_uvm_major(kernel);
}

}  // namespace

std::vector<int> version_parts(std::string_view version) {
  std::vector<int> out;
  for (int part = 0;;) {
    const auto [end, failed] = std::from_chars(version.data(), version.data() + version.size(), part);
    if (failed != std::errc()) return out;
    out.push_back(part);
    version.remove_prefix(static_cast<std::size_t>(end - version.data()));
    if (!version.starts_with('.')) return out;
    version.remove_prefix(1);
  }
}

bool pci_device::is_card() const {
  constexpr unsigned vga = 0x0300, controller_3d = 0x0302;
  return vendor == nvidia_vendor && (class_code >> 8 == vga || class_code >> 8 == controller_3d);
}

bool pci_device::is_switch() const {
  // NVIDIA's old chipsets have bridges of this class, too.
  constexpr unsigned other_bridge = 0x0680, of_a100 = 0x1af1, of_h100 = 0x22a3;
  return vendor == nvidia_vendor && class_code >> 8 == other_bridge &&
         (driver == "nvidia-nvswitch" || device == of_a100 || device == of_h100);
}

machine_facts read(const folders& folders) {
  const files kernel(folders.kernel), files(folders.node);
  machine_facts out;
  read_driver(kernel, files, out);
  out.cgroup = read_cgroup(kernel);
  out.runtime = read_runtime(files);
  out.has_program = has_program(files, out.runtime ? out.runtime->program : "");
  out.toolkit = read_toolkit(files);
  if (out.runtime)
    out.reads_environment = read_environment_rule(files, *out.runtime);
  else
    out.reads_environment = std::unexpected(out.runtime.error());
  out.cdi = read_cdi(files);
  out.fabric_manager = read_fabric_manager(files);
  if (out.fabric_manager && *out.fabric_manager != "missing")
    out.fabric_manager_version = packaged_version(files, "nvidia-fabricmanager");
  out.rdma = read_rdma(kernel);
  out.machine = line_of(kernel, "/sys/class/dmi/id/sys_vendor");
  if (const auto product = line_of(kernel, "/sys/class/dmi/id/product_name"); !product.empty())
    out.machine += (out.machine.empty() ? "" : " ") + product;
  const auto processors = kernel.text("/proc/cpuinfo", 4096);  // the first is enough, and of many it is a long text
  out.is_virtual = processors && *processors && (*processors)->contains(" hypervisor");
  out.has_license = read_license(files);
  out.device_plugin_socket = files.exists("/var/lib/kubelet/device-plugins/kubelet.sock");
  out.pod_resources_socket = files.exists("/var/lib/kubelet/pod-resources/kubelet.sock");
  return out;
}

}  // namespace agent::facts
