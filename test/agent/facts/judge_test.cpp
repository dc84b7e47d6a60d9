// Defects of a node, one after the other, in a folder that plays the node. Each is found as one row, with what to do.
#include "agent/facts/judge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "agent/facts/status.hpp"
#include "test/agent/facts/tree.hpp"
#include "test/english.hpp"
#include "test/processor_time.hpp"

namespace agent::facts {
namespace {

using testing::HasSubstr;

std::string text_of(const std::vector<row>& rows) {
  std::string out;
  for (const auto& row : rows)
    out += row.name + " " + std::string(to_string(row.state)) + ": " + row.found + " | " + row.remedy + "\n";
  return out;
}

const row* row_of(const std::vector<row>& rows, std::string_view check) {
  const auto match = std::ranges::find(rows, check, &row::name);
  return match == rows.end() ? nullptr : &*match;
}

TEST(preflight, S1_a_node_in_order_passes_every_check) {
  const good_node node;
  const auto rows = node.rows();
  std::vector<std::string> checks;
  for (const auto& row : rows) {
    EXPECT_EQ(row.state, check_state::ok) << row.name << ": " << row.found;
    EXPECT_FALSE(row.found.empty()) << row.name;
    EXPECT_TRUE(row.remedy.empty()) << row.name;
    checks.push_back(row.name);
  }
  EXPECT_THAT(checks, testing::ElementsAre("cards", "nouveau", "kernel", "driver", "driver_library", "driver_branch",
                                           "kernel_module", "cuda", "device_nodes", "nvidia_uvm", "dev_char",
                                           "persistence", "fabric_manager", "fabric", "container_toolkit",
                                           "container_runtime", "default_runtime", "visible_devices", "cdi", "cgroup",
                                           "kubelet_device_plugins", "kubelet_pod_resources", "rdma", "rdma_ports",
                                           "peermem", "rdma_affinity", "machine"));
  EXPECT_EQ(row_of(rows, "rdma_affinity")->found, "0000:3d:00.0 PIX mlx5_0, 0000:9d:00.0 PIX mlx5_1");
  EXPECT_EQ(row_of(rows, "fabric_manager")->found, "550.90.07");
}

/// Facts without words: "cdi_incomplete{path=/etc/cdi/nvidia.yaml}", before it what the row found if that needs no
/// words.
std::string line_of(const row& row) {
  const bool has_words = !text::pattern_of("preflight_cause." + row.cause + ".found", text::language::en).empty();
  std::string list;
  for (const auto& [name, value] : row.parameters) list += (list.empty() ? "" : ",") + name + "=" + value;
  return (has_words ? "" : row.found + " ") + row.cause + "{" + list + "}";
}

struct defect {
  std::string name;
  std::function<void(good_node&)> seed;
  std::string check;
  check_state state;
  std::string line;              ///< line_of its row
  std::string other_check = {};  ///< a second row that says it, which the policy's containerRuntime.fix reads

  friend void PrintTo(const defect& defect, std::ostream* out) { *out << defect.name; }
};

const std::string first_card = "0000:3d:00.0";

void device_of(const good_node& node, const std::string& device) {
  node.put("sys/bus/pci/devices/" + first_card + "/device", device + "\n");
}

/// The driver of another version, everywhere.
void driver_is(good_node& node, const std::string& version, bool is_open = true) {
  node.remove("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.90.07");
  node.driver(version, 2, is_open);
  node.inventory.driver = version;
  node.put("etc/cdi/nvidia.yaml", specification(version, 2));
  node.put("var/lib/dpkg/status");
}

/// Everywhere in containerd's file.
void replace(const good_node& node, const std::string& before, const std::string& after) {
  auto text = node.text("etc/containerd/config.toml");
  auto begin = text.find(before);
  ASSERT_NE(begin, std::string::npos) << before;
  for (; begin != std::string::npos; begin = text.find(before, begin + after.size()))
    text.replace(begin, before.size(), after);
  node.put("etc/containerd/config.toml", text);
}

const std::vector<defect> defects{
    // Cards and what drives them.
    {"no card",
     [](good_node& n) {
       n.remove("sys/bus/pci/devices");
       n.folder("sys/bus/pci/devices");
       n.unload();
     },
     "cards", check_state::failed, "cards_absent{}"},
    {"a card is passed through", [](good_node& n) { n.bind(first_card, "", "vfio-pci"); }, "cards",
     check_state::warning, "cards_passed_through{cards=0000:3d:00.0}"},
    {"all cards are passed through",
     [](good_node& n) {
       for (const auto* a : {"0000:3d:00.0", "0000:9d:00.0"}) n.bind(a, "", "vfio-pci");
     },
     "cards", check_state::failed, "cards_passed_through{cards=0000:3d:00.0, 0000:9d:00.0}"},
    {"no driver takes a card", [](good_node& n) { n.bind(first_card, "", ""); }, "cards", check_state::failed,
     "cards_without_driver{cards=0000:3d:00.0}"},
    {"nouveau drives the cards",
     [](good_node& n) {
       n.unload();
       n.folder("sys/module/nouveau");
       n.bind(first_card, "", "nouveau");
     },
     "nouveau", check_state::failed, "nouveau_bound{cards=0000:3d:00.0}"},
    {"nouveau is loaded instead of the driver",
     [](good_node& n) {
       n.unload();
       n.folder("sys/module/nouveau");
     },
     "nouveau", check_state::failed, "nouveau_loaded{}"},
    {"nouveau is loaded next to the driver", [](good_node& n) { n.folder("sys/module/nouveau"); }, "nouveau",
     check_state::warning, "nouveau_loaded{}"},
    {"the kernel changed since the driver was built",
     [](good_node& n) {
       n.unload();
       n.put("proc/sys/kernel/osrelease", "5.15.0-119-generic\n");
       n.folder("usr/lib/modules/5.15.0-119-generic");
     },
     "kernel", check_state::failed, "kernel_other{kernel=5.15.0-119-generic,kernels=5.15.0-105-generic}"},
    {"the kernel changed, and the driver is Ubuntu's signed one",
     [](good_node& n) {
       n.unload();
       n.remove("usr/lib/modules/5.15.0-105-generic");
       n.put("usr/lib/modules/5.15.0-91-generic/kernel/nvidia-550/nvidia.ko.zst");
     },
     "kernel", check_state::failed, "kernel_other{kernel=5.15.0-105-generic,kernels=5.15.0-91-generic}"},
    {"the driver is installed and not loaded", [](good_node& n) { n.unload(); }, "driver", check_state::failed,
     "driver_not_loaded{}"},
    {"no driver",
     [](good_node& n) {
       n.unload();
       n.remove("usr/lib/modules/5.15.0-105-generic/updates");
     },
     "driver", check_state::failed, "driver_absent{}"},
    {"the driver was upgraded while it was loaded",
     [](good_node& n) {
       n.remove("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.90.07");
       n.put("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.570.124.06");
     },
     "driver_library", check_state::failed, "library_other{libraries=570.124.06,loaded=550.90.07}"},
    {"an earlier driver has left its libraries", [](good_node& n) { n.put("usr/lib64/libnvidia-ml.so.535.54.03"); },
     "driver_library", check_state::warning, "libraries_mixed{libraries=550.90.07, 535.54.03}"},
    {"a driver too old for an H100",
     [](good_node& n) {
       driver_is(n, "470.256.02", false);
       n.remove("sys/class/infiniband");
       n.remove("sys/bus/pci/devices/0000:3e:00.0");
       n.remove("sys/bus/pci/devices/0000:9e:00.0");
     },
     "driver_branch", check_state::failed,
     "driver_too_old_for_card{architecture=Hopper,card=0000:3d:00.0,driver=470.256.02,needed=520.61.05}"},
    {"a driver too old for a B200", [](good_node& n) { device_of(n, "0x2901"); }, "driver_branch", check_state::failed,
     "driver_too_old_for_card{architecture=Blackwell,card=0000:3d:00.0,driver=550.90.07,needed=570.26}"},
    {"a driver too old for an L40S, which it leaves alone",
     [](good_node& n) {
       driver_is(n, "515.43.04");
       device_of(n, "0x26b9");
       n.put("sys/bus/pci/devices/0000:9d:00.0/device", "0x20b2\n");
       n.bind(first_card, "", "");
     },
     "driver_branch", check_state::failed,
     "driver_too_old_for_card{architecture=Ada,card=0000:3d:00.0,driver=515.43.04,needed=520.61.05}"},
    {"a driver too new for a V100",
     [](good_node& n) {
       driver_is(n, "590.44.01", false);
       device_of(n, "0x1db6");
     },
     "driver_branch", check_state::failed,
     "driver_too_new_for_card{architecture=Volta,branch=580,card=0000:3d:00.0,driver=590.44.01}"},
    {"the open module on a V100", [](good_node& n) { device_of(n, "0x1db6"); }, "kernel_module", check_state::failed,
     "open_module_unfit{architecture=Volta,card=0000:3d:00.0}"},
    {"the proprietary module on a B200",
     [](good_node& n) {
       driver_is(n, "570.124.06", false);
       device_of(n, "0x2901");
     },
     "kernel_module", check_state::failed, "proprietary_module_unfit{architecture=Blackwell,card=0000:3d:00.0}"},
    // What containers open.
    {"a device node is missing",
     [](good_node& n) {
       n.remove("dev/nvidia1");
       n.remove("etc/cdi/nvidia.yaml");
     },
     "device_nodes", check_state::failed, "devices_missing{devices=/dev/nvidia1}"},
    {"the control device is missing", [](good_node& n) { n.remove("dev/nvidiactl"); }, "device_nodes",
     check_state::failed, "devices_missing{devices=/dev/nvidiactl}"},
    {"a device node is for root only", [](good_node& n) { n.put("dev/nvidia0", "", 0600); }, "device_nodes",
     check_state::warning, "/dev/nvidia0 0600 devices_closed{}"},
    {"nvidia-uvm is not loaded",
     [](good_node& n) {
       n.remove("dev/nvidia-uvm");
       n.remove("sys/module/nvidia_uvm");
     },
     "nvidia_uvm", check_state::warning, "uvm_not_loaded{}"},
    {"nvidia-uvm has no device node", [](good_node& n) { n.remove("dev/nvidia-uvm"); }, "nvidia_uvm",
     check_state::failed, "uvm_device_missing{}"},
    {"nvidia-uvm is for root only", [](good_node& n) { n.put("dev/nvidia-uvm", "", 0660); }, "nvidia_uvm",
     check_state::warning, "/dev/nvidia-uvm 0660 uvm_closed{}"},
    {"no links in /dev/char",
     [](good_node& n) {
       n.remove("dev/char");
       n.folder("dev/char");
     },
     "dev_char", check_state::warning, "links_missing{links=195:255, 195:0, 195:1, 511:0}"},
    {"a card without its link", [](good_node& n) { n.remove("dev/char/195:1"); }, "dev_char", check_state::warning,
     "links_missing{links=195:1}"},
    {"persistence mode is off", [](good_node& n) { n.inventory.without_persistence = 2; }, "persistence",
     check_state::warning, "persistence_off{number=2,total=2}"},
    {"no fabric manager",
     [](good_node& n) {
       n.remove("usr/bin/nv-fabricmanager");
       n.remove("run/systemd/units/invocation:nvidia-fabricmanager.service");
       n.inventory.fabric = "not started";
     },
     "fabric_manager", check_state::failed, "fabric_manager_absent{branch=550,driver=550.90.07}"},
    {"the fabric manager has ended",
     [](good_node& n) { n.remove("run/systemd/units/invocation:nvidia-fabricmanager.service"); }, "fabric_manager",
     check_state::failed, "fabric_manager_ended{branch=550,driver=550.90.07}"},
    {"a fabric manager of another version",
     [](good_node& n) {
       n.put("var/lib/dpkg/status", "Package: a\n\nPackage: nvidia-fabricmanager-550\nVersion: 550.54.15-1\n\n");
     },
     "fabric_manager", check_state::failed, "550.54.15 fabric_manager_other{branch=550,driver=550.90.07}"},
    {"the fabric has not been started", [](good_node& n) { n.inventory.fabric = "not started"; }, "fabric",
     check_state::failed, "not started fabric_not_joined{}"},
    {"the fabric is being joined", [](good_node& n) { n.inventory.fabric = "in progress"; }, "fabric",
     check_state::warning, "fabric_joining{}"},
    // Containers.
    {"no toolkit",
     [](good_node& n) {
       n.remove("usr/lib/x86_64-linux-gnu/libnvidia-container.so.1.17.8");
       n.remove("usr/bin/nvidia-container-runtime");
       n.put("etc/containerd/config.toml", "version = 3\n");
     },
     "container_toolkit", check_state::failed, "missing toolkit_too_old{needed=1.7.0}"},
    {"an old toolkit",
     [](good_node& n) {
       n.remove("usr/lib/x86_64-linux-gnu/libnvidia-container.so.1.17.8");
       n.put("usr/lib64/libnvidia-container.so.1.6.0");
     },
     "container_toolkit", check_state::failed, "1.6.0 toolkit_too_old{needed=1.7.0}"},
    {"the runtime's program is not there",
     [](good_node& n) {
       replace(n, "/usr/bin/nvidia-container-runtime", "/usr/local/nvidia/toolkit/nvidia-container-runtime");
     },
     "container_runtime", check_state::failed,
     "runtime_program_missing{advice=install_toolkit,names=containerd,program=/usr/local/nvidia/toolkit/"
     "nvidia-container-runtime,runtime=nvidia}"},
    {"the runtime has no type", [](good_node& n) { replace(n, "runtime_type = \"io.containerd.runc.v2\"", ""); },
     "container_runtime", check_state::failed,
     "runtime_without_type{advice=fix_runtime,names=containerd,runtime=nvidia}", "default_runtime"},
    {"the runtime has the type of an old containerd",
     [](good_node& n) { replace(n, "io.containerd.runc.v2", "io.containerd.runtime.v1.linux"); }, "container_runtime",
     check_state::failed,
     "runtime_other_type{advice=fix_runtime,names=containerd,needed=io.containerd.runc.v2,runtime=nvidia,type=io."
     "containerd.runtime.v1.linux}",
     "default_runtime"},
    {"the runtime has no program",
     [](good_node& n) { replace(n, "BinaryName = \"/usr/bin/nvidia-container-runtime\"", ""); }, "container_runtime",
     check_state::failed, "runtime_without_program{advice=fix_runtime,key=BinaryName,names=containerd,runtime=nvidia}",
     "default_runtime"},
    {"the default has no entry",
     [](good_node& n) {
       n.put("etc/containerd/config.toml",
             "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'nvidia'\n");
     },
     "container_runtime", check_state::failed, "runtime_undefined{advice=fix_runtime,names=containerd}",
     "default_runtime"},
    {"the runtime called nvidia is another one",
     [](good_node& n) {
       replace(n, "/usr/bin/nvidia-container-runtime", "/opt/wrapper");
       replace(n, "default_runtime_name = \"nvidia\"", "");
     },
     "container_runtime", check_state::failed,
     "runtime_other_program{advice=rename_runtime,names=containerd,program=/opt/wrapper}"},
    {"the runtime has other cgroups than runc",
     [](good_node& n) {
       n.put("etc/containerd/conf.d/99.toml",
             "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]\nSystemdCgroup = true\n"
             "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\nSystemdCgroup = false\n");
     },
     "container_runtime", check_state::warning,
     "cgroups_other{advice=fix_runtime,names=containerd,needed=true,runtime=nvidia,source=runc,value=false}",
     "default_runtime"},
    {"two containerd",
     [](good_node& n) {
       n.put("run/k3s/containerd/containerd.sock");
       n.put("var/lib/rancher/k3s/agent/etc/containerd/config.toml", tree::containerd);
     },
     "container_runtime", check_state::warning, "k3s, containerd two_containerd{}"},
    {"containers may name their cards, as the toolkit comes", [](good_node& n) { n.put(tree::toolkit_config, ""); },
     "visible_devices", check_state::warning, "environment_open{path=/etc/nvidia-container-runtime/config.toml}"},
    {"containers may name their cards, and it says so",
     [](good_node& n) {
       n.put(tree::toolkit_config, "accept-nvidia-visible-devices-envvar-when-unprivileged = true\n");
     },
     "visible_devices", check_state::warning, "environment_open{path=/etc/nvidia-container-runtime/config.toml}"},
    {"only another table of the toolkit says no",
     [](good_node& n) {
       n.put(tree::toolkit_config, "[x]\naccept-nvidia-visible-devices-envvar-when-unprivileged = false\n");
     },
     "visible_devices", check_state::warning, "environment_open{path=/etc/nvidia-container-runtime/config.toml}"},
    {"runc is the default",
     [](good_node& n) {
       n.remove("etc/cdi");
       n.folder("etc/cdi");
       replace(n, "default_runtime_name = \"nvidia\"", "default_runtime_name = \"runc\"");
     },
     "default_runtime", check_state::warning, "runc default_other{}"},
    {"no runtime of NVIDIA at all",
     [](good_node& n) {
       n.remove("etc/cdi");
       n.folder("etc/cdi");
       n.put("etc/containerd/config.toml", "version = 2\n");
     },
     "default_runtime", check_state::warning, "runc default_without_nvidia{advice=set_default}"},
    {"a drop-in takes the default away",
     [](good_node& n) {
       n.remove("etc/cdi");
       n.folder("etc/cdi");
       n.put("etc/containerd/conf.d/99.toml",
             "[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndefault_runtime_name = 'runc'\n"
             "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia]\n");
     },
     "default_runtime", check_state::warning, "runc default_other{}"},
    {"the default stands at the top",
     [](good_node& n) {
       n.remove("etc/cdi");
       n.folder("etc/cdi");
       replace(n, "default_runtime_name = \"nvidia\"", "");
       replace(n, "version = 2\n", "version = 2\ndefault_runtime_name = \"nvidia\"\n");
     },
     "default_runtime", check_state::warning,
     "runc "
     "default_misplaced{advice=set_default,key=default_runtime_name,line=2,path=/etc/containerd/config.toml,table=}"},
    // Files that containerd does not read, or reads otherwise than it was meant.
    {"the version is a text", [](good_node& n) { replace(n, "version = 2", "version = \"2\""); }, "container_runtime",
     check_state::failed, "config_line{line=1,path=/etc/containerd/config.toml,problem=no_number,value=version}",
     "default_runtime"},
    {"a table is there twice",
     [](good_node& n) {
       replace(n, "[plugins.\"io.containerd.grpc.v1.cri\"]", "[plugins.a.b.c.d]\n[plugins.a.b.c.d]");
     },
     "container_runtime", check_state::failed,
     "config_line{line=6,path=/etc/containerd/config.toml,problem=table_twice,value=d}", "default_runtime"},
    {"the plugin is disabled",
     [](good_node& n) { replace(n, "version = 2", "version = 2\ndisabled_plugins = ['cri']"); }, "container_runtime",
     check_state::failed, "plugin_disabled{line=2,path=/etc/containerd/config.toml,plugin=cri}", "default_runtime"},
    {"the tables lack quotes",
     [](good_node& n) {
       replace(n, "[plugins.\"io.containerd.grpc.v1.cri\".containerd]",
               "[plugins.io.containerd.grpc.v1.cri.containerd]");
     },
     "container_runtime", check_state::failed, "plugin_unnamed{line=7,path=/etc/containerd/config.toml,plugin=io}",
     "default_runtime"},
    {"an import is not there",
     [](good_node& n) { replace(n, "  \"/etc/containerd/conf.d/*.toml\"", "  \"/etc/containerd/a.toml\""); },
     "container_runtime", check_state::failed,
     "import_missing{line=2,path=/etc/containerd/config.toml,pattern=/etc/containerd/a.toml}", "default_runtime"},
    {"an import has the section too",
     [](good_node& n) {
       n.put("etc/containerd/conf.d/10.toml", "[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = 'a'\n");
     },
     "container_runtime", check_state::warning,
     "section_twice{path=/etc/containerd/conf.d/10.toml,table=plugins.\"io.containerd.grpc.v1.cri\"}",
     "default_runtime"},
    {"there is no version", [](good_node& n) { replace(n, "version = 2\n", ""); }, "container_runtime",
     check_state::warning,
     "section_other_version{line=6,needed=2,path=/etc/containerd/"
     "config.toml,table=plugins.\"io.containerd.grpc.v1.cri\"."
     "containerd,version=1}",
     "default_runtime"},
    {"the runtime is in a table that is not read",
     [](good_node& n) { replace(n, "cri\".containerd.runtimes.nvidia", "cri\".runtimes.nvidia"); }, "container_runtime",
     check_state::failed,
     "runtime_misplaced{advice=fix_runtime,key=runtime_type,line=10,names=containerd,path=/etc/containerd/config.toml,"
     "table=plugins.\"io.containerd.grpc.v1.cri\".runtimes.nvidia}",
     "default_runtime"},
    {"the runtime is in the section that newer containerds alone read",
     [](good_node& n) { replace(n, "version = 2", "version = 3"); }, "container_runtime", check_state::warning,
     "runtime_since{advice=fix_runtime,key=runtime_type,line=10,names=containerd,path=/etc/containerd/config.toml,"
     "since=2.3,table=plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia}",
     "default_runtime"},
    {"the file is one of CRI-O",
     [](good_node& n) {
       n.put("etc/containerd/config.toml",
             "[crio.runtime.runtimes.nvidia]\nruntime_path = 'nvidia-container-runtime'\n");
     },
     "container_runtime", check_state::failed, "file_of_crio{line=1,path=/etc/containerd/config.toml}",
     "default_runtime"},
    {"containerd 2 would refuse a line", [](good_node& n) { replace(n, "version = 2", "\xEF\xBB\xBFversion = 2"); },
     "container_runtime", check_state::warning,
     "config_line_later{line=1,path=/etc/containerd/config.toml,problem=byte_order_mark,value=}", "default_runtime"},
    {"the cgroups are next to the options",
     [](good_node& n) {
       replace(n, "SystemdCgroup = true", "");
       replace(n, "runtime_type =", "SystemdCgroup = true\nruntime_type =");
     },
     "container_runtime", check_state::warning,
     "cgroups_misplaced{advice=fix_runtime,key=SystemdCgroup,line=10,names=containerd,path=/etc/containerd/config.toml,"
     "runtime=nvidia,table=plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia}",
     "default_runtime"},
    {"the cgroups of runc are next to its options",
     [](good_node& n) {
       replace(n, "SystemdCgroup = true", "");
       n.put("etc/containerd/config.toml",
             n.text("etc/containerd/config.toml") +
                 "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\nSystemdCgroup = true\n");
     },
     "container_runtime", check_state::warning,
     "cgroups_misplaced{advice=move_cgroups,key=SystemdCgroup,line=15,names=containerd,path=/etc/containerd/"
     "config.toml,"
     "runtime=runc,table=plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc}",
     ""},
    {"a CDI specification of an earlier driver",
     [](good_node& n) { n.put("etc/cdi/nvidia.yaml", specification("535.54.03", 2)); }, "cdi", check_state::failed,
     "cdi_other_driver{driver=550.90.07,drivers=535.54.03,path=/etc/cdi/nvidia.yaml}"},
    {"a CDI specification with a card that is gone",
     [](good_node& n) { n.put("etc/cdi/nvidia.yaml", specification("550.90.07", 3)); }, "cdi", check_state::failed,
     "cdi_device_missing{device=/dev/nvidia2,path=/etc/cdi/nvidia.yaml}"},
    {"half a CDI specification", [](good_node& n) { n.put("run/cdi/nvidia.json", "{\"cdiVersion\": \"0.5.0\", \"ki"); },
     "cdi", check_state::failed, "cdi_incomplete{path=/run/cdi/nvidia.json}"},
    {"CDI is switched off", [](good_node& n) { replace(n, "enable_cdi = true", "enable_cdi = false"); }, "cdi",
     check_state::warning, "cdi_switched_off{}"},
    {"limits by the driver, and cgroup v1",
     [](good_node& n) {
       driver_is(n, "615.71.09");
       n.put("proc/self/cgroup", "5:memory:/kubepods/pod1\n4:cpu,cpuacct:/kubepods/pod1\n");
     },
     "memory_limits", check_state::warning, "limits_need_cgroup_v2{driver=615.71.09}"},
    {"the kubelet's registration socket is missing",
     [](good_node& n) { n.remove("var/lib/kubelet/device-plugins/kubelet.sock"); }, "kubelet_device_plugins",
     check_state::failed, "plugin_socket_missing{path=/var/lib/kubelet/device-plugins/kubelet.sock}"},
    {"no pod resources", [](good_node& n) { n.remove("var/lib/kubelet/pod-resources/kubelet.sock"); },
     "kubelet_pod_resources", check_state::failed,
     "pods_socket_missing{path=/var/lib/kubelet/pod-resources/kubelet.sock}"},
    // Network and machine.
    {"an adapter without its RDMA modules", [](good_node& n) { n.remove("sys/class/infiniband"); }, "rdma",
     check_state::warning, "rdma_not_loaded{}"},
    {"a driver too old for RDMA",
     [](good_node& n) {
       driver_is(n, "470.256.02", false);
       for (const auto* a : {"0000:3d:00.0", "0000:9d:00.0"})
         n.put("sys/bus/pci/devices/" + std::string(a) + "/device", "0x20b2\n");
     },
     "rdma", check_state::warning, "rdma_driver_too_old{needed=471}"},
    {"a driver too old for device plugins",
     [](good_node& n) {
       driver_is(n, "375.26", false);
       n.remove("sys/class/infiniband");
       n.remove("sys/bus/pci/devices/0000:3e:00.0");
       n.remove("sys/bus/pci/devices/0000:9e:00.0");
     },
     "driver", check_state::failed, "375.26 driver_too_old{needed=384.81}"},
    {"a port is down", [](good_node& n) { n.adapter("mlx5_1", "0000:9e:00.0", "1: DOWN"); }, "rdma_ports",
     check_state::warning, "mlx5_1 port 1: DOWN ports_idle{}"},
    {"a port has no subnet manager", [](good_node& n) { n.adapter("mlx5_1", "0000:9e:00.0", "2: INIT"); }, "rdma_ports",
     check_state::warning, "mlx5_1 port 1: INIT ports_idle{}"},
    {"no peer memory",
     [](good_node& n) {
       n.remove("sys/module/nvidia_peermem");
       n.driver(good_node::version, 2, false);
     },
     "peermem", check_state::warning, "peermem_missing{}"},
    {"an adapter far from a card", [](good_node& n) { n.remove("sys/class/infiniband/mlx5_1"); }, "rdma_affinity",
     check_state::warning, "0000:3d:00.0 PIX mlx5_0, 0000:9d:00.0 SYS mlx5_0 adapters_far{cards=0000:9d:00.0}"},
    {"NVIDIA vGPU",
     [](good_node& n) {
       n.put("etc/nvidia/ClientConfigToken/client.tok");
       for (auto& card : n.inventory.cards) card.model = "NVIDIA A40-48Q";
     },
     "machine", check_state::warning, "machine_vgpu{model=NVIDIA A40-48Q}"},
};

class defects_of_a_node : public testing::TestWithParam<defect> {};

TEST_P(defects_of_a_node, S1_S73_S92_are_found_each_as_one_row_with_what_to_do) {
  const auto& defect = GetParam();
  good_node node;
  defect.seed(node);
  const auto rows = node.rows();
  std::vector<std::string> bad;
  for (const auto& row : rows)
    if (row.state == check_state::failed || row.state == check_state::warning) bad.push_back(row.name);
  std::vector<std::string> expected{defect.check};
  if (!defect.other_check.empty()) expected.push_back(defect.other_check);
  EXPECT_EQ(bad, expected) << text_of(rows);
  const auto* found = row_of(rows, defect.check);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(to_string(found->state), to_string(defect.state));
  EXPECT_EQ(line_of(*found), defect.line);
  EXPECT_NE(found->remedy, "");
  for (const auto& row : rows)
    EXPECT_TRUE(row.state != check_state::unknown || !row.found.empty())
        << row.name << " is unknown and does not say why";
}

INSTANTIATE_TEST_SUITE_P(seeded, defects_of_a_node, testing::ValuesIn(defects), [](const auto& info) {
  std::string name;
  for (const char c : info.param.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

TEST(preflight, files_of_another_vendor_that_mention_NVIDIA_are_no_specification_of_its_cards) {
  good_node node;
  const auto before = text_of(node.rows());
  node.put("run/cdi/quartermaster.io-nvidia.com-gpu-d-1.json",
           R"({"cdiVersion": "0.6.0", "kind": "quartermaster.io/nvidia.com-gpu", "devices": []})");
  EXPECT_EQ(text_of(node.rows()), before);
}

// What people read: in the object, which is English, and where the row is shown in Chinese.
TEST(preflight, golden_words_of_each_defect_are_those_of_the_file) {
  std::string text;
  for (const auto& defect : defects) {
    good_node node;
    defect.seed(node);
    text += "== " + defect.name + "\n";
    for (const auto& row : node.rows()) {
      if (row.state != check_state::failed && row.state != check_state::warning) continue;
      text += row.name + " " + std::string(to_string(row.state)) + ": " + row.found + "\n  " + row.remedy + "\n";
      text += "  " + found_text(row, text::language::zh) + "\n  " + remedy_text(row, text::language::zh) + "\n";
      EXPECT_FALSE(words::has_english_sentence(remedy_text(row, text::language::zh))) << row.name;
      EXPECT_EQ(found_text(row, text::language::en), row.found);
      EXPECT_EQ(remedy_text(row, text::language::en), row.remedy);
    }
  }
  const auto path = std::string(TEST_DATA) + "/golden/preflight/defects.txt";
  if (const char* write = std::getenv("QM_GOLDEN"); write && std::string_view(write) == "write")
    std::ofstream(path) << text;
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), text) << path << ": QM_GOLDEN=write takes over what is made now";
}

// The table of checks (api/check.hpp) says how a check can end, and each such end has a defect here.
TEST(preflight, every_end_of_the_table_is_reached_and_no_other) {
  std::map<std::string, api::check_ends> reached;
  const auto take = [&](const good_node& node) {
    for (const auto& row : node.rows()) {
      auto& ends = reached[row.name];
      ends.judges = true;
      ends.warns = ends.warns || row.state == check_state::warning;
      ends.fails = ends.fails || row.state == check_state::failed;
    }
  };
  for (const auto& defect : defects) {
    good_node node;
    defect.seed(node);
    take(node);
  }
  good_node rented;  // a vGPU without a license
  for (auto& card : rented.inventory.cards) card.model = "NVIDIA A40-48Q";
  take(rented);
  std::map<std::string, api::check_ends> expected;
  for (const auto& entry : api::checks())
    if (entry.by_agent.judges) expected[std::string(entry.name)] = entry.by_agent;
  for (const auto& [name, ends] : expected) {
    EXPECT_EQ(reached[name].judges, ends.judges) << name;
    EXPECT_EQ(reached[name].warns, ends.warns) << name;
    EXPECT_EQ(reached[name].fails, ends.fails) << name;
  }
  EXPECT_EQ(reached.size(), expected.size());
}

TEST(preflight, S1_the_first_and_the_last_driver_of_a_card_drive_it) {
  const std::vector<std::pair<std::string, std::string>> pairs{
      {"0x1db6", "384.81"}, {"0x1db6", "580.126.09"}, {"0x2330", "520.61.05"}, {"0x2901", "570.26"}};
  for (const auto& [device, driver] : pairs) {
    good_node node;
    driver_is(node, driver, false);
    device_of(node, device);
    node.put("sys/bus/pci/devices/0000:9d:00.0/device", device + "\n");
    const auto rows = node.rows();
    const auto* row = row_of(rows, "driver_branch");
    ASSERT_NE(row, nullptr) << text_of(rows);
    EXPECT_EQ(to_string(row->state), to_string(check_state::ok)) << device << " " << row->found;
  }
}

TEST(preflight, S1_forty_defects_and_more_are_seeded) { EXPECT_GE(defects.size(), 40U); }

TEST(preflight, S87_a_vgpu_without_a_license_is_found) {
  good_node node;
  for (auto& card : node.inventory.cards) card.model = "GRID T4-16C";
  const auto rows = node.rows();
  ASSERT_NE(row_of(rows, "vgpu_license"), nullptr) << text_of(rows);
  EXPECT_EQ(row_of(rows, "vgpu_license")->state, check_state::failed);
  EXPECT_EQ(row_of(rows, "vgpu_license")->cause, "license_missing");
  node.put("etc/nvidia/gridd.conf", "# ServerAddress=\nServerAddress=license.example.com\n");
  EXPECT_EQ(row_of(node.rows(), "vgpu_license")->state, check_state::ok);
  node.put("etc/nvidia/gridd.conf", "ServerAddress=\nServerPort=7070\n");
  EXPECT_EQ(row_of(node.rows(), "vgpu_license")->state, check_state::failed);
}

TEST(preflight, a_configuration_of_the_toolkit_that_is_no_file_is_unknown) {
  good_node node;
  node.remove(tree::toolkit_config);
  node.folder(tree::toolkit_config);
  const auto rows = node.rows();
  EXPECT_EQ(row_of(rows, "visible_devices")->state, check_state::unknown) << text_of(rows);
  EXPECT_THAT(line_of(*row_of(rows, "visible_devices")), testing::MatchesRegex("no_regular_file.path=.*config.toml."));
}

TEST(preflight, models_that_end_in_letters_are_no_vgpus) {
  good_node node;
  for (const auto* model : {"NVIDIA A100-SXM4-80GB", "NVIDIA A10G", "NVIDIA H100 80GB HBM3", "Tesla T4", "NVIDIA L40S",
                            "NVIDIA H20-3e", "Q", "", "7C", "A-C"}) {
    node.inventory.cards[0].model = model;
    EXPECT_EQ(row_of(node.rows(), "machine")->state, check_state::ok) << model;
  }
}

// Each folder that the DaemonSet does not mount: what it would say is unknown, names the folder, and is no failure.
TEST(preflight, a_folder_that_is_not_mounted_is_unknown_and_named) {
  for (const std::string folder : {"dev", "etc", "run", "usr", "var"}) {
    good_node node;
    node.remove(folder);
    std::size_t unknown = 0;
    for (const auto& row : node.rows()) {
      EXPECT_NE(row.state, check_state::failed) << folder << ": " << row.name << " " << row.found;
      EXPECT_NE(row.state, check_state::warning) << folder << ": " << row.name << " " << row.found;
      if (row.state != check_state::unknown) continue;
      ++unknown;
      EXPECT_THAT(line_of(row), HasSubstr("not_mounted{path=/" + folder)) << row.name;
    }
    EXPECT_GT(unknown, 0U) << folder;
  }
}

TEST(preflight, before_NVML_has_answered_files_alone_are_judged) {
  const good_node node;
  const auto rows = judge(node.seen(), nullptr);
  for (const auto& row : rows)
    EXPECT_TRUE(row.state == check_state::ok || row.name == "cuda") << row.name << ": " << row.found;
  EXPECT_EQ(row_of(rows, "cuda")->state, check_state::unknown);
  EXPECT_EQ(row_of(rows, "driver")->found, "550.90.07");
}

TEST(preflight, an_empty_machine_has_rows_and_no_crash) {
  const tree nothing;
  const auto rows = judge(nothing.seen(), nullptr);
  EXPECT_GT(rows.size(), 5U);
  for (const auto& row : rows) EXPECT_TRUE(row.state == check_state::unknown || row.name == "machine") << row.name;
}

TEST(preflight, facts_are_read_in_much_less_than_300_ms) {
  const good_node node;
  const auto begin = test::processor_seconds();
  constexpr int times = 20;
  for (int i = 0; i < times; ++i) node.rows();
  const auto each = 1000 * (test::processor_seconds() - begin) / times;
  RecordProperty("milliseconds", std::to_string(each));
  EXPECT_LT(each, 100) << "with sanitizers";
}

}  // namespace
}  // namespace agent::facts
