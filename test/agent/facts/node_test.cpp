// What is read of a node's files: runtimes and their formats, sources that differ between systems, hostile files.
#include "agent/facts/node.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/agent/facts/tree.hpp"
#include "text/escape.hpp"

namespace agent::facts {
namespace {

using testing::ElementsAre;

explained_cause about(check_cause code, const std::string& path) { return {code, {{"path", path}}}; }
explained_cause not_mounted(const tree& node, const std::string& path) {
  return {check_cause::not_mounted, {{"path", path}, {"place", node.root.string() + path}}};
}

explained_cause refused(const std::string& path, const std::string& line, const std::string& problem,
                        const std::string& value = {}) {
  return {check_cause::config_line, {{"path", path}, {"line", line}, {"problem", problem}, {"value", value}}};
}

container_runtime runtime_of(const tree& node) {
  const auto seen = node.seen();
  EXPECT_TRUE(seen.runtime);
  return seen.runtime.value_or(container_runtime());
}

TEST(runtimes, containerd_1_and_2_and_their_drop_ins) {
  const std::string cri = "[plugins.\"io.containerd.grpc.v1.cri\".";
  const tree node;
  node.system();
  auto runtime = runtime_of(node);
  EXPECT_THAT(runtime.names, ElementsAre("containerd"));
  EXPECT_EQ(runtime.default_runtime, "nvidia");
  EXPECT_EQ(runtime.program, "/usr/bin/nvidia-container-runtime");
  EXPECT_EQ(runtime.uses_cdi, true);
  EXPECT_TRUE(runtime.uses_systemd);
  node.put("etc/containerd/config.toml",
           "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\n"
           "  default_runtime_name = 'runc' # as it comes\n");
  runtime = runtime_of(node);
  EXPECT_EQ(runtime.default_runtime, "runc");
  EXPECT_FALSE(runtime.has_nvidia);
  EXPECT_EQ(runtime.uses_cdi, true) << "containerd 2 has CDI on by default";
  EXPECT_FALSE(runtime.uses_systemd);
  node.put("etc/containerd/config.toml",
           "version = 2\nimports = ['/etc/containerd/conf.d/*.toml', \"/etc/containerd/one\"]\n");
  node.put("etc/containerd/conf.d/nvidia.toml",
           cri + "containerd]\ndefault_runtime_name = \"nvidia\"\n" + cri + "containerd.runtimes.nvidia]\n");
  node.put("etc/containerd/conf.d/readme", "default_runtime_name = \"none\"\n");
  node.put("etc/containerd/one");
  EXPECT_EQ(runtime_of(node).default_runtime, "nvidia");
  EXPECT_EQ(runtime_of(node).uses_cdi, std::nullopt) << "no one says it";
  node.put("etc/containerd/one",
           cri + "containerd]\ndefault_runtime_name = \"runc\"\n" + cri + "containerd.runtimes.nvidia]\n");
  EXPECT_EQ(runtime_of(node).default_runtime, "runc") << "the last import wins";
  node.remove("etc/containerd");
  EXPECT_EQ(runtime_of(node).default_runtime, "runc") << "without a file";
}

TEST(runtimes, CRI_O_and_Docker_and_k3s_and_RKE2) {
  const tree node;
  node.system();
  node.put("run/crio/crio.sock");
  EXPECT_EQ(runtime_of(node).default_runtime, "crun");
  node.put("etc/crio/crio.conf.d/99-nvidia.conf",
           "[crio.runtime]\ndefault_runtime = \"nvidia\"\n[crio.runtime.runtimes.nvidia]\n"
           "runtime_path = \"/usr/bin/nvidia-container-runtime\"\n");
  EXPECT_EQ(runtime_of(node).default_runtime, "nvidia");
  EXPECT_EQ(runtime_of(node).program, "/usr/bin/nvidia-container-runtime");
  node.remove("run/crio");
  node.put("run/cri-dockerd.sock");
  node.put("etc/docker/daemon.json", R"({"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}},
                                         "exec-opts": ["native.cgroupdriver=systemd"]})");
  EXPECT_EQ(runtime_of(node).default_runtime, "runc");
  EXPECT_TRUE(runtime_of(node).has_nvidia);
  EXPECT_TRUE(runtime_of(node).uses_systemd);
  node.put("etc/docker/daemon.json", R"({"default-runtime": "nvidia"})");
  EXPECT_EQ(runtime_of(node).default_runtime, "nvidia");
  node.put("etc/docker/daemon.json", "{");
  EXPECT_EQ(runtime_of(node).default_runtime.error(), refused("/etc/docker/daemon.json", "1", "no_json"));
  node.put("etc/docker/daemon.json", "{\n  \"default-runtime\": 1}");
  EXPECT_EQ(runtime_of(node).default_runtime.error(),
            refused("/etc/docker/daemon.json", "2", "no_text", "default-runtime"));
  node.remove("run/cri-dockerd.sock");
  node.remove("run/containerd");
  node.put("run/k3s/containerd/containerd.sock");
  node.put("var/lib/rancher/rke2/agent/etc/containerd/config.toml", tree::containerd);
  EXPECT_EQ(runtime_of(node).default_runtime, "nvidia");
  node.remove("var");
  EXPECT_EQ(runtime_of(node).default_runtime.error(), not_mounted(node, "/var/lib/rancher"));
  node.remove("run/k3s");
  EXPECT_EQ(node.seen().runtime.error().code, check_cause::runtime_unseen_but_snaps);
}

// AKS: https://github.com/Azure/AgentBaker
TEST(runtimes, are_of_NVIDIA_by_their_program_and_not_by_their_name) {
  const tree node;
  node.system();
  for (const std::string program : {"nvidia-container-runtime", "/usr/bin/nvidia-container-runtime",
                                    "/usr/bin/nvidia-container-runtime.cdi", "/x/nvidia-container-runtime.legacy"}) {
    node.put("etc/containerd/config.toml",
             "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\ndefault_runtime_name = \"gpu.a\"\n"
             "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.\"gpu.a\".options]\nBinaryName = '" +
                 program + "'\n");
    const auto runtime = runtime_of(node);
    EXPECT_TRUE(is_nvidia_default(runtime.settings)) << program;
    EXPECT_EQ(runtime.program, program);
  }
  for (const std::string program : {"/usr/bin/crun", "/usr/bin/nvidia-container-runtime-hook", ""})
    EXPECT_FALSE(is_nvidia_program(program)) << program;
  node.remove("run/containerd");
  node.put("run/crio/crio.sock");
  node.put("etc/crio/crio.conf",
           "[crio.runtime]\ndefault_runtime = \"gpu\"\n[crio.runtime.runtimes.gpu]\n"
           "runtime_path = \"/usr/bin/nvidia-container-runtime\"\n");
  EXPECT_TRUE(is_nvidia_default(runtime_of(node).settings));
  node.remove("run/crio");
  node.put("run/cri-dockerd.sock");
  node.put("etc/docker/daemon.json",
           R"({"default-runtime": "gpu", "runtimes": {"gpu": {"path": "/usr/bin/nvidia-container-runtime"}}})");
  EXPECT_TRUE(is_nvidia_default(runtime_of(node).settings));
}

TEST(runtimes, in_inline_tables_and_dotted_keys_are_read_too) {
  const tree node;
  node.system();
  const std::string plugin = "[plugins.'io.containerd.cri.v1.runtime'.containerd";
  for (const auto& lines :
       {plugin + "]\ndefault_runtime_name = 'gpu'\nruntimes.gpu = {runtime_type = 'io.containerd.runc.v2', options = { "
                 "BinaryName = \"/usr/bin/nvidia-container-runtime\", SystemdCgroup = true }}\n",
        plugin + "]\ndefault_runtime_name = 'gpu'\n" + plugin +
            ".runtimes.gpu]\nruntime_type = 'io.containerd.runc.v2'\n" +
            "options.BinaryName = '/usr/bin/nvidia-container-runtime'\noptions.SystemdCgroup = true\n"}) {
    node.put("etc/containerd/config.toml", "version = 3\n" + lines);
    const auto runtime = runtime_of(node);
    const auto* entry = runtime.settings.find("gpu");
    ASSERT_TRUE(entry) << lines;
    EXPECT_EQ(entry->type, "io.containerd.runc.v2");
    EXPECT_EQ(entry->systemd, "true");
    EXPECT_TRUE(is_nvidia_default(runtime.settings)) << lines;
  }
  std::string nested = "a = ";
  for (int i = 0; i < 20'000; ++i) nested += "{a = ";
  node.put("etc/containerd/config.toml", nested);
  EXPECT_EQ(runtime_of(node).default_runtime.error(), refused("/etc/containerd/config.toml", "1", "too_deep"));
}

// Containerd's configMigration: a section of the new name goes before that of the old one, as a whole.
TEST(runtimes, of_a_file_are_read_from_the_sections_of_its_version) {
  const tree node;
  node.system();
  const std::string main = "etc/containerd/config.toml";
  const auto section = [](const std::string& plugin, const std::string& name) {
    return "[plugins.'" + plugin + "'.containerd]\ndefault_runtime_name = '" + name + "'\n";
  };
  const std::string old_name = "io.containerd.grpc.v1.cri", new_name = "io.containerd.cri.v1.runtime";
  const auto default_of = [&](const std::string& text) {
    node.put(main, text);
    const auto runtime = runtime_of(node);
    if (runtime.default_runtime) return *runtime.default_runtime;
    return std::string(to_string(runtime.default_runtime.error().code));
  };
  EXPECT_EQ(default_of(section("cri", "a")), "a");
  EXPECT_EQ(default_of("version = 1\n" + section("cri", "a")), "a");
  EXPECT_EQ(default_of(section(old_name, "a")), "section_other_version");
  EXPECT_EQ(default_of("version = 2\n" + section(old_name, "a")), "a");
  EXPECT_EQ(default_of("version = 2\n" + section("cri", "a")), "plugin_unnamed");
  EXPECT_EQ(default_of("version = 2\n" + section(new_name, "a")), "section_other_version");
  EXPECT_EQ(default_of("version = 3\n" + section(old_name, "a") + section("cri", "b")), "runc");
  EXPECT_EQ(default_of("version = 4\n" + section(new_name, "a") + section(old_name, "b")), "a");
  EXPECT_EQ(default_of("version = 5\n"), "config_version_other");
  EXPECT_EQ(default_of(""), "runc");
  node.put("etc/containerd/a.toml", section("cri", "a"));
  EXPECT_EQ(default_of("version = 3\nimports = ['a.toml']\n"), "a") << "without a version it is of version 1";
  node.put("etc/containerd/a.toml", section(new_name, "a") + section(old_name, "b"));
  EXPECT_EQ(default_of("version = 3\nimports = ['a.toml']\n"), "a");
  node.put("etc/containerd/a.toml", "version = 3\n" + section(old_name, "b"));
  EXPECT_EQ(default_of("version = 3\nimports = ['a.toml']\n"), "runc");
  EXPECT_EQ(default_of("version = 4\nimports = ['a.toml']\n"), "b") << "containerd 2.3 and newer read it there";
  EXPECT_EQ(default_of("\xEF\xBB\xBFversion = 2\n"), "config_line_later");
  EXPECT_EQ(default_of("\xEF\xBB\xBFversion = 3\n"), "config_line");
  EXPECT_EQ(default_of("[plugins]\na.b = 1\n[plugins.a]\n"), "config_line_later");
  EXPECT_EQ(default_of("version = 3\n[plugins]\na.b = 1\n[plugins.a]\n"), "config_line");
  EXPECT_EQ(default_of("[crio.runtime]\n"), "file_of_crio");
}

// containerd 2.4.2 reads the section; up to 2.2, where version 3 is the last one, none is taken over.
TEST(runtimes, of_the_old_section_in_version_3_depend_on_the_version_of_containerd) {
  const std::string folder = TEST_DATA "/agent/facts/recorded/old_section_in_version_3",
                    main = "etc/containerd/config.toml";
  const auto text_of = [](const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  };
  const auto old = text_of(folder + ".toml");
  const tree node;
  node.system();
  node.put(main, text_of(folder + ".containerd-2.4.2.toml"));
  EXPECT_EQ(runtime_of(node).default_runtime, "nvidia");
  EXPECT_FALSE(defect_of(runtime_of(node).settings, true));

  node.put(main, old);
  auto runtime = runtime_of(node);
  EXPECT_TRUE(runtime.has_nvidia) << "a newer containerd has it";
  EXPECT_EQ(runtime.program, "/usr/bin/nvidia-container-runtime");
  auto defect = defect_of(runtime.settings, true);
  ASSERT_TRUE(defect);
  EXPECT_EQ(defect->cause.code, check_cause::runtime_since);
  EXPECT_TRUE(defect->is_repairable());
  const auto* by_default = stray_default(runtime.settings);
  ASSERT_TRUE(by_default);
  EXPECT_EQ(by_default->since, "2.3");

  node.put(main, old + "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.kata]\n");
  defect = defect_of(runtime_of(node).settings, true);
  ASSERT_TRUE(defect);
  EXPECT_EQ(defect->cause.code, check_cause::runtime_misplaced) << "the other section goes before it, as a whole";
  node.put(main, "version = 4" + old.substr(old.find('\n')));
  defect = defect_of(runtime_of(node).settings, true);
  ASSERT_TRUE(defect);
  EXPECT_EQ(defect->cause.code, check_cause::runtime_misplaced) << "nothing of it is taken over in version 4";
}

TEST(runtimes, an_import_that_was_read_is_skipped_and_one_in_turn_is_followed) {
  const tree node;
  node.system();
  node.put("etc/containerd/config.toml",
           "version = 3\nimports = ['/etc/containerd/a.toml', '/etc/containerd/config.toml']\n"
           "[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'runc'\n");
  node.put("etc/containerd/a.toml",
           "imports = ['../containerd/b.toml', 'a.toml']\n[plugins.cri.containerd]\ndefault_runtime_name = 'a'\n");
  EXPECT_EQ(runtime_of(node).default_runtime.error().code, check_cause::import_missing);
  node.put("etc/containerd/b.toml");
  EXPECT_EQ(runtime_of(node).default_runtime, "a") << "the main file is not read again";
  node.put("etc/containerd/b.toml",
           "imports = ['config.toml']\n[plugins.cri.containerd]\ndefault_runtime_name = 'b'\n");
  EXPECT_EQ(runtime_of(node).default_runtime, "b");
}

TEST(runtimes, k0s_and_MicroK8s) {
  const tree node;
  node.system();
  node.remove("run/containerd");
  node.put("run/k0s/containerd.sock");
  node.put("etc/k0s/containerd.toml", "# k0s_managed=true\nversion = 2\nimports = ['/run/k0s/containerd-cri.toml']\n");
  EXPECT_EQ(runtime_of(node).default_runtime.error().code, check_cause::import_missing);
  node.put("run/k0s/containerd-cri.toml", "version = 2\n");
  EXPECT_EQ(runtime_of(node).default_runtime, "runc");
  node.put("etc/k0s/containerd.d/nvidia.toml", tree::containerd);
  EXPECT_THAT(runtime_of(node).names, ElementsAre("k0s"));
  EXPECT_EQ(runtime_of(node).default_runtime, "nvidia");
  node.remove("run/k0s");
  node.put("var/snap/microk8s/common/run/containerd.sock");
  node.put("var/snap/microk8s/current/args/containerd.toml", tree::containerd);
  EXPECT_THAT(runtime_of(node).names, ElementsAre("microk8s"));
  EXPECT_EQ(runtime_of(node).default_runtime, "nvidia");
}

TEST(sources, of_the_toolkit_version) {
  const tree node;
  node.system();
  EXPECT_EQ(node.seen().toolkit, "1.17.8");
  node.put("usr/lib64/libnvidia-container.so.1.9.0");
  EXPECT_EQ(node.seen().toolkit, "1.17.8") << "17 is more than 9";
  node.remove("usr/lib64");
  node.remove("usr/lib/x86_64-linux-gnu");
  EXPECT_EQ(node.seen().toolkit.error(),
            about(check_cause::toolkit_without_version, "/usr/bin/nvidia-container-runtime"));
  node.remove("usr/bin/nvidia-container-runtime");
  EXPECT_EQ(node.seen().toolkit, "missing");
  node.put("usr/local/nvidia/toolkit/libnvidia-container.so.1.16.2");
  EXPECT_EQ(node.seen().toolkit, "1.16.2") << "the GPU Operator's";
}

TEST(sources, of_the_driver_and_its_flavor) {
  const tree node;
  node.system();
  EXPECT_EQ(node.seen().module_version, "");
  node.driver("550.90.07", 1, false);
  EXPECT_EQ(node.seen().module_version, "550.90.07");
  EXPECT_FALSE(node.seen().is_open_module);
  node.remove("sys/module/nvidia");
  EXPECT_EQ(node.seen().module_version, "550.90.07") << "as /proc/driver/nvidia/version says";
  node.driver("570.124.06", 1, true);
  node.remove("sys/module/nvidia");
  EXPECT_EQ(node.seen().module_version, "570.124.06");
  EXPECT_TRUE(node.seen().is_open_module);
  EXPECT_EQ(node.seen().uvm_major, "511");
}

TEST(sources, of_a_driver_in_a_container_of_the_GPU_Operator) {
  const tree node;
  node.system();
  node.driver("550.90.07", 1);
  EXPECT_THAT(*node.seen().libraries, ElementsAre("550.90.07"));
  node.remove("usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.90.07");
  node.remove("dev");
  node.folder("dev/char");
  node.put("run/nvidia/driver/usr/lib64/libnvidia-ml.so.550.90.12");
  node.put("run/nvidia/driver/dev/nvidia0", "", 0666);
  EXPECT_THAT(*node.seen().libraries, ElementsAre("550.90.12"));
  EXPECT_EQ(node.seen().devices->size(), 1U);
}

TEST(sources, of_PCI_devices_that_are_no_cards_of_their_own) {
  const good_node node;
  node.pci("pci0000:3a", "0000:3d:00.4", "0x10de", "0x2330", "0x030200", "");
  node.link("sys/bus/pci/devices/0000:3d:00.4/physfn", "../0000:3d:00.0");
  node.pci("pci0000:00", "0000:00:0a.0", "0x10de", "0x0057", "0x068000", "forcedeth");
  node.pci("pci0000:3a", "0000:3d:00.1", "0x10de", "0x22a4", "0x040300", "snd_hda_intel");
  const auto devices = node.seen().pci.value();
  EXPECT_EQ(std::ranges::count_if(devices, &pci_device::is_card), 2);
  EXPECT_EQ(std::ranges::count_if(devices, &pci_device::is_switch), 1);
}

TEST(sources, of_kernels_that_have_a_driver) {
  const tree node;
  node.system("6.1.0-21-amd64");
  node.put("usr/lib/modules/6.8.0-45-generic/kernel/nvidia-550/nvidia.ko");
  node.put("usr/lib/modules/5.14.0-427.el9.x86_64/extra/nvidia.ko.xz");
  node.put("usr/lib/modules/6.1.0-22-amd64/kernel/drivers/video/nvidiafb.ko");
  EXPECT_THAT(*node.seen().driver_kernels, ElementsAre("5.14.0-427.el9.x86_64", "6.1.0-21-amd64", "6.8.0-45-generic"));
  node.remove("usr/lib/modules");
  node.put("lib/modules/4.18.0/weak-updates/nvidia/nvidia.ko");
  EXPECT_THAT(*node.seen().driver_kernels, ElementsAre("4.18.0")) << "where /lib is no part of /usr";
}

TEST(sources, of_the_cgroup_mode) {
  const tree node;
  node.system();
  EXPECT_EQ(node.seen().cgroup, "v2");
  node.put("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(node.seen().cgroup, "v2");
  node.put("proc/self/cgroup", "12:devices:/kubepods\n1:name=systemd:/\n0::/system.slice\n");
  EXPECT_EQ(node.seen().cgroup, "v1") << "both at once";
  node.put("proc/self/cgroup", "3:cpu,cpuacct:/\n2:memory:/\n");
  EXPECT_EQ(node.seen().cgroup, "v1");
  node.put("proc/self/cgroup", "");
  EXPECT_FALSE(node.seen().cgroup);
}

TEST(sources, of_CDI_specifications_in_YAML_and_JSON) {
  const tree node;
  node.system();
  node.put("etc/cdi/nvidia.yaml", specification("550.90.07", 2));
  node.put("run/cdi/k8s.device-plugin.nvidia.com-gpu.json",
           R"({"cdiVersion":"0.5.0","kind":"k8s.device-plugin.nvidia.com/gpu","devices":[{"containerEdits":
               {"deviceNodes":[{"path":"/dev/nvidia0"},{"path":"/dev/nvidia-uvm"},{"path":"/dev/nvidia-caps/nvidia-cap3"}]}}]})");
  node.put("run/cdi/intel.yaml", "cdiVersion: 0.5.0\nkind: intel.com/gpu\n");
  const auto specs = node.seen().cdi.value();
  ASSERT_EQ(specs.size(), 2U);
  EXPECT_THAT(specs[0].drivers, ElementsAre("550.90.07"));
  EXPECT_THAT(specs[0].devices, ElementsAre("nvidia0", "nvidia1"));
  EXPECT_TRUE(specs[1].is_complete);
  EXPECT_THAT(specs[1].devices, ElementsAre("nvidia0"));
}

// What someone else put there: nothing hangs, nothing crashes, nothing outside is read.
TEST(hostile_files, are_values) {
  const good_node node;
  node.remove("etc/containerd/config.toml");
  ASSERT_EQ(::mkfifo((node.root / "etc/containerd/config.toml").c_str(), 0644), 0);
  EXPECT_EQ(runtime_of(node).default_runtime.error(),
            about(check_cause::no_regular_file, "/etc/containerd/config.toml"));
  node.remove("etc/containerd/config.toml");
  node.folder("etc/containerd/config.toml");
  EXPECT_EQ(runtime_of(node).default_runtime.error(),
            about(check_cause::no_regular_file, "/etc/containerd/config.toml"));
  node.put("etc/containerd/config.toml", std::string("imports = [\n\"/etc/containerd/a*\n[[[\n= \n[\"\n\0\xff", 40));
  node.put("etc/cdi/nvidia.yaml", std::string(5'000'000, '/'));
  node.put("proc/driver/nvidia/version", "  \n");
  node.put("proc/devices", " nvidia-uvm\n");
  node.put("sys/bus/pci/devices/0000:3d:00.0/vendor", "0xzz");
  node.link("etc/docker", "docker");
  node.put("var/lib/dpkg/status", "\nPackage: nvidia-fabricmanager-550");
  for (const auto& row : node.rows()) EXPECT_FALSE(row.name.empty());
}

TEST(hostile_files, are_reported_as_UTF_8_of_the_length_that_fits) {
  const good_node node;
  std::string long_name = "a";
  for (int i = 0; i < 4'000; ++i) long_name += "\xc3\xbc";
  for (const auto& name : {std::string("\xff\xfe"), long_name}) {
    node.put("etc/containerd/config.toml", "[plugins.cri.containerd]\ndefault_runtime_name = \"" + name + "\"\n");
    for (const auto& row : node.rows()) {
      EXPECT_EQ(text::utf8_clean(row.found), row.found) << row.name;
      EXPECT_LE(row.found.size(), 1024U) << row.name;
      EXPECT_LE(row.remedy.size(), 1024U) << row.name;
      EXPECT_LE(row.parameters.size(), api::most_check_parameters) << row.name;
      for (const auto& [parameter, value] : row.parameters) {
        EXPECT_EQ(text::utf8_clean(value), value) << row.name << " " << parameter;
        EXPECT_LE(value.size(), api::longest_check_parameter) << row.name << " " << parameter;
      }
    }
  }
}

// Copies of nested JSON are recursive, and end the program when there is no stack left.
TEST(hostile_files, of_Docker_may_be_nested_without_end) {
  const tree node;
  node.system();
  node.remove("run/containerd");
  node.put("run/cri-dockerd.sock");
  for (const auto* key : {"exec-opts", "runtimes"}) {
    node.put("etc/docker/daemon.json", "{\"default-runtime\": \"nvidia\", \"" + std::string(key) +
                                           "\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}");
    const auto runtime = runtime_of(node);
    if (key == std::string_view("runtimes"))
      EXPECT_EQ(runtime.default_runtime.error(), refused("/etc/docker/daemon.json", "1", "no_table", "runtimes"));
    else
      EXPECT_EQ(runtime.default_runtime, "nvidia");
  }
}

// Time and memory have a limit whatever a file says: the unit test would take minutes without one.
TEST(hostile_files, of_many_entries_are_read_in_part) {
  const good_node node;
  std::string imports = "imports = [", devices;
  for (int i = 0; i < 8'000; ++i) imports += "'/etc/containerd/config.toml',";
  for (int i = 0; i < 100'000; ++i) devices += "/dev/nvidia" + std::to_string(i) + " libcuda.so.1." + std::to_string(i);
  node.put("etc/containerd/config.toml", imports + "]\n");
  node.put("etc/cdi/nvidia.yaml", devices);
  for (int i = 0; i < 100; ++i) node.put("etc/cdi/" + std::to_string(i) + ".yaml", "nvidia");
  const auto seen = node.seen();
  ASSERT_TRUE(seen.cdi);
  EXPECT_LE(seen.cdi->size(), 64U);
  for (const auto& spec : *seen.cdi) EXPECT_LE(std::max(spec.devices.size(), spec.drivers.size()), 256U);
}

TEST(hostile_files, an_absolute_link_begins_at_the_root) {
  const tree node, elsewhere;
  elsewhere.put("secret", "of this machine");
  node.put("etc/inside", "of the node");
  node.link("etc/link", "/etc/inside");
  node.link("etc/out", (elsewhere.root / "secret").string());
  node.link("etc/folder", "/");
  const files seen(node.root.string());
  if (!seen.text("/etc/link")->has_value()) GTEST_SKIP() << "this kernel has no openat2";
  EXPECT_EQ(**seen.text("/etc/link"), "of the node");
  EXPECT_EQ(*seen.mode("/etc/link"), 0644U);
  EXPECT_EQ(seen.target("/etc/link"), "/etc/inside");
  EXPECT_EQ(seen.link_name("/etc/out"), "secret");
  EXPECT_EQ(seen.text("/etc/out").error(), about(check_cause::link_leads_out, "/etc/out"));
  EXPECT_EQ(seen.target("/etc/out"), "");
  EXPECT_EQ(*seen.names("/etc/folder"), std::vector<std::string>{"etc"});
}

TEST(hostile_files, a_link_that_leads_out_of_the_mounts_is_unknown_and_not_missing) {
  const good_node node;
  node.link("etc/containerd", "/opt/somewhere/containerd");
  EXPECT_EQ(runtime_of(node).default_runtime.error(), about(check_cause::link_leads_out, "/etc/containerd"));
}

// The DaemonSet mounts one folder of /var: the others are not said to be missing.
TEST(sources, of_single_folders_below_var) {
  const tree node;
  node.system();
  node.remove("var/lib/kubelet/pod-resources");
  EXPECT_EQ(node.seen().device_plugin_socket, true);
  EXPECT_EQ(node.seen().pod_resources_socket.error(), not_mounted(node, "/var/lib/kubelet/pod-resources"));
  node.remove("var/lib/kubelet/device-plugins/kubelet.sock");
  EXPECT_EQ(node.seen().device_plugin_socket, false);
}

TEST(hostile_files, what_may_not_be_read_is_unknown) {
  if (::geteuid() == 0) {
    // Root reads everything: the words of the error are what is compared.
    const files root("/");
    EXPECT_FALSE(root.text("/proc/self/mem"));
    return;
  }
  const good_node node;
  node.put("etc/containerd/config.toml", tree::containerd, 0);
  auto unreadable = about(check_cause::unreadable, "/etc/containerd/config.toml");
  unreadable.parameters.push_back({"error", "Permission denied"});
  EXPECT_EQ(runtime_of(node).default_runtime.error(), unreadable);
}

}  // namespace
}  // namespace agent::facts
