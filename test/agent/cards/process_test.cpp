#include "agent/cards/process.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace agent::cards {
namespace {

const std::string container(64, 'a');
const std::string uid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", uid_of_slice = "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0";

struct cgroup_case {
  const char* name;
  std::string text;
  owner_kind kind;
  std::string container, pod_uid;
  friend void PrintTo(const cgroup_case& cgroup_case, std::ostream* out) { *out << cgroup_case.name; }
};

class cgroups : public testing::TestWithParam<cgroup_case> {};

TEST_P(cgroups, name_the_container) {
  const auto& expected = GetParam();
  const auto owner = owner_in(expected.text);
  EXPECT_EQ(owner.kind, expected.kind);
  EXPECT_EQ(owner.container, expected.container);
  EXPECT_EQ(owner.pod_uid, expected.pod_uid);
}

constexpr auto pod = owner_kind::pod, host = owner_kind::host;
const std::string slices =
    "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + uid_of_slice + ".slice";

INSTANTIATE_TEST_SUITE_P(
    process, cgroups,
    testing::Values(
        cgroup_case{"containerd_systemd", slices + "/cri-containerd-" + container + ".scope\n", pod, container, uid},
        cgroup_case{"crio", slices + "/crio-" + container + ".scope\n", pod, container, uid},
        cgroup_case{"docker", slices + "/docker-" + container + ".scope\n", pod, container, uid},
        cgroup_case{"guaranteed_has_no_class",
                    "0::/kubepods.slice/kubepods-pod" + uid_of_slice + ".slice/crio-" + container + ".scope\n", pod,
                    container, uid},
        cgroup_case{"cgroupfs", "0::/kubepods/besteffort/pod" + uid + "/" + container + "\n", pod, container, uid},
        cgroup_case{"version_1",
                    "12:pids:/kubepods/burstable/pod" + uid + "/" + container + "\n11:devices:/kubepods/burstable/pod" +
                        uid + "/" + container + "\n1:name=systemd:/\n0::/\n",
                    pod, container, uid},
        cgroup_case{
            "relative_to_the_reader",
            "0::/../../kubepods-burstable-pod" + uid_of_slice + ".slice/cri-containerd-" + container + ".scope\n", pod,
            container, uid},
        cgroup_case{"cgroups_of_the_container's_own",
                    slices + "/cri-containerd-" + container + ".scope/init.scope/" + std::string(64, 'b') + "\n", pod,
                    container, uid},
        cgroup_case{"below_another_root", "0::/outer/kubelet.slice/kubepods/pod" + uid + "/" + container, pod,
                    container, uid},
        cgroup_case{"drivers_that_differ",
                    "5:devices:/system.slice/containerd.service/kubepods-besteffort-pod" + uid_of_slice +
                        ".slice:cri-containerd:" + container + "\n",
                    pod, container, uid},
        cgroup_case{"static_pod", "0::/kubepods/pod0123456789abcdef0123456789abcdef/" + container, pod, container,
                    "0123456789abcdef0123456789abcdef"},
        cgroup_case{"no_container_yet", slices + "\n", pod, "", uid},
        cgroup_case{"service", "0::/system.slice/nvidia-persistenced.service\n", host, "", ""},
        cgroup_case{"container_of_no_pod", "0::/system.slice/docker-" + container + ".scope\n", host, "", ""},
        cgroup_case{"folder_with_a_similar_name", "0::/podman/" + container + "\n", host, "", ""},
        cgroup_case{"root", "0::/\n", host, "", ""}, cgroup_case{"nothing", "", owner_kind::unseen, "", ""},
        cgroup_case{"no_cgroup_line", "nonsense\n:\n", owner_kind::unseen, "", ""}),
    [](const auto& info) {
      std::string name = info.param.name;
      std::erase(name, '\'');
      return name;
    });

TEST(process, is_read_from_proc) {
  namespace files = std::filesystem;
  auto pattern = (files::temp_directory_path() / "proc.XXXXXX").string();
  const files::path proc = mkdtemp(pattern.data());
  const auto add = [&](const char* pid, const std::string& cgroup, const char* name) {
    files::create_directory(proc / pid);
    std::ofstream(proc / pid / "cgroup") << cgroup;
    std::ofstream(proc / pid / "comm") << name << "\n";
  };
  add("7", slices + "/crio-" + container + ".scope\n", "python3");
  add("8", slices + "/crio-" + container + ".scope\n", "nvidia-cuda-mps");
  EXPECT_EQ(owner_of(proc, 7), (process_owner{pod, container, uid}));
  EXPECT_EQ(owner_of(proc, 8).kind, owner_kind::mps_server);
  EXPECT_EQ(owner_of(proc, 9), process_owner());
  files::remove_all(proc);
  EXPECT_NE(owner_of("/proc", static_cast<unsigned>(getpid())).kind, owner_kind::unseen);
}

}  // namespace
}  // namespace agent::cards
