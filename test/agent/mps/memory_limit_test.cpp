// Limits of memory by the driver, on the stand-in of test/nvml and a tree of folders in place of cgroup v2.
#include "agent/mps/memory_limit.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <optional>

#include "test/agent/cards/machine.hpp"

namespace agent::mps {
namespace {

namespace fs = std::filesystem;
namespace call = cards::call;
using testing::HasSubstr;

constexpr const char *limited_uid = "6f0c2e0e-0d3c-4f53-9d6e-2f6a1c1b7e01",
                     *limited_card = "GPU-74000000-0000-4000-8000-000000000000";

struct cgroup_tree : testing::Test {
  std::string root = made_folder();

  ~cgroup_tree() override { fs::remove_all(root); }
  static std::string made_folder() {
    auto pattern = (fs::temp_directory_path() / "cgroups.XXXXXX").string();
    return ::mkdtemp(pattern.data());
  }
  std::string folder(const std::string& path) const {
    fs::create_directories(root + path);
    return root + path;
  }
};

TEST_F(cgroup_tree, has_a_pods_folder_by_the_systemd_driver) {
  const std::string id = "6f0c2e0e_0d3c_4f53_9d6e_2f6a1c1b7e01";
  for (const auto& path : {"/kubepods.slice/kubepods-pod" + id + ".slice",
                           "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + id + ".slice",
                           "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + id + ".slice"}) {
    const auto expected = folder(path);
    EXPECT_EQ(cgroup_of_pods(root).value_or(""), root + "/kubepods.slice");
    EXPECT_EQ(cgroup_of_pod(root, limited_uid).value_or(""), expected);
    fs::remove(expected);
  }
}

TEST_F(cgroup_tree, has_a_pods_folder_by_the_cgroupfs_driver) {
  for (const auto& path :
       {std::string("/kubepods/pod") + limited_uid, std::string("/kubepods/burstable/pod") + limited_uid,
        std::string("/kubepods/besteffort/pod") + limited_uid}) {
    const auto expected = folder(path);
    EXPECT_EQ(cgroup_of_pod(root, limited_uid).value_or(""), expected);
    fs::remove(expected);
  }
}

TEST_F(cgroup_tree, has_a_containers_folder_in_its_pods) {
  const auto pod = folder(std::string("/kubepods/pod") + limited_uid);
  const std::string id(64, 'a');
  EXPECT_THAT(cgroup_of_container(root, limited_uid, id).error(), HasSubstr("has no cgroup in " + pod));
  for (const auto& name : {id, "cri-containerd-" + id + ".scope", "crio-" + id + ".scope"}) {
    fs::create_directory(pod + "/" + name);
    EXPECT_EQ(cgroup_of_container(root, limited_uid, id).value_or(""), pod + "/" + name);
    fs::remove(pod + "/" + name);
  }
  fs::create_directory(root + "/kubepods/other");
  EXPECT_THAT(cgroup_of_container(root, limited_uid, "../other").error(), HasSubstr("no container has the ID"));
}

TEST_F(cgroup_tree, is_tried_where_this_program_is) {
  const auto self = root + "/" + std::to_string(::getpid());
  fs::create_directory(self);
  folder("/kubepods.slice");
  std::ofstream(self + "/cgroup") << "0::/\n";
  EXPECT_EQ(cgroup_for_trial(root, root).value_or(""), root + "/kubepods.slice") << "no pod, or it cannot be seen";
  const std::string pod = "/kubepods.slice/kubepods-pod6f0c2e0e_0d3c_4f53_9d6e_2f6a1c1b7e01.slice";
  std::ofstream(self + "/cgroup") << "0::" << pod << "/cri-containerd-" << std::string(64, 'b') << ".scope\n";
  EXPECT_FALSE(cgroup_for_trial(root, root)) << "its own is not in the tree";
  folder(pod);
  EXPECT_EQ(cgroup_for_trial(root, root).value_or(""), root + pod);
}

TEST_F(cgroup_tree, without_exactly_one_folder_of_the_pod_is_refused) {
  EXPECT_THAT(cgroup_of_pod(root, limited_uid).error(), HasSubstr("no cgroup of pods")) << "as with cgroup v1";
  folder("/kubepods/besteffort");
  EXPECT_THAT(cgroup_of_pod(root, limited_uid).error(), HasSubstr("has 0 cgroups"));
  folder(std::string("/kubepods/besteffort/pod") + limited_uid);
  folder(std::string("/kubepods/pod") + limited_uid);
  EXPECT_THAT(cgroup_of_pod(root, limited_uid).error(), HasSubstr("has 2 cgroups"));
  folder("/kubepods.slice");
  EXPECT_THAT(cgroup_of_pods(root).error(), HasSubstr("both"));
}

TEST_F(cgroup_tree, is_not_left_by_a_uid_that_is_a_path) {
  folder("/kubepods/pod");
  folder("/other");
  for (const auto* text : {"", "/../../other", "..", "6f0c2e0e/besteffort", "x"})
    EXPECT_THAT(cgroup_of_pod(root, text).error(), HasSubstr("no pod has the UID")) << text;
}

struct memory_limit : cgroup_tree {
  cards::machine machine{"t4"};
  std::string pods = folder("/kubepods"), pod = folder(std::string("/kubepods/besteffort/pod") + limited_uid);
  std::optional<cards::nvml_library> nvml;

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root sets limits";
    driver("615.71.09");
    auto library = cards::nvml_library::load(machine.root);
    ASSERT_TRUE(library) << library.error();
    nvml.emplace(*library);
    ASSERT_EQ((*nvml)(call::init), nvml::success);
    ASSERT_EQ(cards::text_at(machine.content(), "/cards/0/uuid"), limited_card);
  }
  void TearDown() override {
    if (nvml) (*nvml)(call::shutdown);
  }
  template <class Change>
  void change(Change change) const {
    auto content = machine.content();
    change(content);
    machine.replace(content);
  }
  void driver(const char* version) const {
    change([&](nlohmann::json& content) { content["driver"]["version"] = version; });
  }
  /// Of the card for the cgroup: soft and hard limit in MiB; "none", or NVML's number for why not.
  std::string limits(const std::string& cgroup) const {
    nvml::device device = nullptr;
    EXPECT_EQ((*nvml)(call::handle_by_uuid, limited_card, &device), nvml::success);
    nvml::memory_limits_in_use out{cgroup.c_str(), 1, 1, 1};
    const auto code = (*nvml)(call::memory_limits, device, &out);
    if (code != nvml::success) return std::to_string(code);
    if (out.most == nvml::no_memory_limit) return std::to_string(out.reserved >> 20) + " none";
    return std::to_string(out.reserved >> 20) + " " + std::to_string(out.most >> 20);
  }
  std::string refusal() const {
    const auto done = mps::limit_memory(*nvml, limited_card, pod, 4096);
    return done ? "" : done.error();
  }
};

TEST_F(memory_limit, of_a_pod_is_set_and_read_back_and_reserves_nothing) {
  ASSERT_TRUE(mps::limit_memory(*nvml, limited_card, pod, 4096));
  EXPECT_EQ(limits(pod), "0 4096");
  ASSERT_TRUE(mps::limit_memory(*nvml, limited_card, pod, 6144))
      << "at the start of the next container it is set again";
  EXPECT_EQ(limits(pod), "0 6144");
}

TEST_F(memory_limit, that_a_driver_does_not_keep_is_an_error) {
  change([](nlohmann::json& content) { content["cards"][0]["memory_limits"] = "ignored"; });
  EXPECT_THAT(refusal(), testing::AllOf(HasSubstr("does not keep"), HasSubstr(pod)));
  change([](nlohmann::json& content) { content["cards"][0]["memory_limits"] = "off"; });
  EXPECT_THAT(refusal(), testing::AllOf(HasSubstr("refuses a limit"), HasSubstr(pod)));
  change([](nlohmann::json& content) {
    content["cards"][0].erase("memory_limits");
    content["cards"][0]["errors"] = {{"nvmlDeviceGetMemoryLimits_v1", "unknown"}};
  });
  EXPECT_THAT(refusal(), HasSubstr("cannot be read back"));
}

TEST_F(memory_limit, is_an_error_where_driver_card_or_cgroup_is_not_there) {
  EXPECT_THAT(mps::limit_memory(*nvml, limited_card, pod + "x", 4096).error(), HasSubstr("refuses"));
  EXPECT_THAT(mps::limit_memory(*nvml, "GPU-0", pod, 4096).error(), HasSubstr("does not find the card"));
  EXPECT_THAT(mps::limit_memory(*nvml, limited_card, pod, 0).error(), HasSubstr("without memory"));
  driver("580.126.09");
  EXPECT_THAT(refusal(), HasSubstr("R615"));
}

TEST_F(memory_limit, is_tried_and_leaves_nothing) {
  ASSERT_TRUE(mps::try_memory_limit(*nvml, limited_card, pods, 15360));
  EXPECT_EQ(limits(pods), "0 none");
  ASSERT_TRUE(mps::limit_memory(*nvml, limited_card, pods, 9000));
  ASSERT_TRUE(mps::try_memory_limit(*nvml, limited_card, pods, 15360));
  EXPECT_EQ(limits(pods), "0 9000") << "someone's limit of all pods stays";
}

TEST_F(memory_limit, is_not_there_with_an_old_driver_or_one_that_does_not_keep_it) {
  driver("580.126.09");
  EXPECT_THAT(mps::try_memory_limit(*nvml, limited_card, pods, 15360).error(), HasSubstr("R615"));
  driver("615.71.09");
  for (const auto* way : {"ignored", "off"}) {
    change([&](nlohmann::json& content) { content["cards"][0]["memory_limits"] = way; });
    EXPECT_FALSE(mps::try_memory_limit(*nvml, limited_card, pods, 15360)) << way;
  }
}

}  // namespace
}  // namespace agent::mps
