#include "reconcilers/nodes/node_pods.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace reconcilers {
namespace {

using testing::IsEmpty;

class pods_lab {
 public:
  controller::store<kube::pod> pods;
  node_pods index{pods, "quartermaster"};

  kube::pod pod(std::string ns, std::string name, std::string node, const char* mode, const char* resource) {
    kube::pod out;
    out.key = {std::move(ns), std::move(name)};
    out.node_name = std::move(node);
    out.resource_version = ++version_;
    if (mode) out.labels = kube::packed_map::of({{"quartermaster.io/module", mode}});
    if (resource) out.containers = {{"c", kube::container::role::main, {{resource, 1}}, {{resource, 1}}}};
    return out;
  }

 private:
  std::uint64_t version_ = 0;
};

kube::node named(const char* name, kube::quantities listed = {}) {
  kube::node out;
  out.key.name = name;
  out.capacity = std::move(listed);
  return out;
}

TEST(node_pods, a_slice_of_a_card_holds_it_and_a_name_that_nobody_lists_does_not) {
  pods_lab lab;
  lab.pods.put(lab.pod("team", "slice", "n1", nullptr, "nvidia.com/mig-1g.10gb"));
  lab.pods.put(lab.pod("team", "memory", "n1", nullptr, "nvidia.com/gpumem"));
  lab.pods.put(lab.pod("team", "nic", "n1", nullptr, "rdma/hca"));
  const auto node = named("n1", {{"nvidia.com/mig-1g.10gb", 0}, {"rdma/hca", 1}});
  for (const auto* mode : {"pgpu", "vgpu"}) {
    const auto held = lab.index.holders(node, modules::offered_by(nullptr), modules::find(mode));
    ASSERT_EQ(held.size(), 1u) << mode;
    EXPECT_EQ(held[0].name(), "team/slice");
    EXPECT_EQ(held[0].mode->name, "pgpu") << "of no other module's cards, whichever serves the node";
  }
  EXPECT_EQ(lab.index.holders(node, modules::offered_by(nullptr), modules::find("share"))[0].mode->name, "share")
      << "of the vendor's modules the one that serves the node";
}

TEST(node_pods, says_which_pods_are_never_evicted) {
  kube::pod pod;
  EXPECT_EQ(why_it_stays(pod).key, "status.node.stays.no_controller");
  pod.owners = {{"Foo", "other", {}, false}, {"ReplicaSet", "web", {}, true}};
  EXPECT_TRUE(why_it_stays(pod).empty());
  pod.owners[1].kind = "DaemonSet";
  EXPECT_EQ(why_it_stays(pod).key, "status.node.stays.daemon_set");
  pod.mirror = true;
  EXPECT_EQ(why_it_stays(pod).key, "status.node.stays.static_pod");
}

TEST(node_pods, knows_plugins_by_namespace_and_label_and_holders_by_what_they_ask_for) {
  pods_lab lab;
  lab.pods.put(lab.pod("quartermaster", "p", "n1", "pgpu", nullptr));
  lab.pods.put(lab.pod("team", "fake", "n1", "mps", nullptr));
  lab.pods.put(lab.pod("team", "train", "n1", nullptr, "nvidia.com/gpu"));
  lab.pods.put(lab.pod("team", "fpga", "n1", nullptr, "example.com/fpga"));
  lab.pods.put(lab.pod("team", "waiting", "", nullptr, "nvidia.com/gpu"));
  ASSERT_EQ(lab.index.plugins("n1").size(), 1u);
  EXPECT_EQ(lab.index.plugins("n1")[0].name, "quartermaster/p");
  ASSERT_EQ(lab.index.holders(named("n1")).size(), 1u);
  EXPECT_EQ(lab.index.holders(named("n1"))[0].name(), "team/train");
  EXPECT_EQ(lab.index.holders(named("n1"))[0].mode->name, "pgpu");
  EXPECT_EQ(lab.index.holders(named("n1"))[0].stays.key, "status.node.stays.no_controller");
  EXPECT_THAT(lab.index.plugins("n2"), IsEmpty());
  EXPECT_EQ(lab.index.size(), 3u);
}

TEST(node_pods, S74_knows_the_device_plugins_of_others) {
  pods_lab lab;
  auto foreign_pod = lab.pod("gpu-operator", "p-1", "n1", nullptr, nullptr);
  foreign_pod.owners = {{"DaemonSet", "nvidia-device-plugin-daemonset", {}, true}};
  foreign_pod.mounts_plugin_folder = true;
  EXPECT_FALSE(lab.index.foreign("n1").gpu_operator);
  lab.pods.put(foreign_pod);
  ASSERT_EQ(lab.index.foreign("n1").here.size(), 1u);
  EXPECT_EQ(lab.index.foreign("n1").here[0].daemon_set, "gpu-operator/nvidia-device-plugin-daemonset");
  EXPECT_TRUE(lab.index.foreign("n2").gpu_operator) << "on other nodes it is known, too";
  EXPECT_TRUE(lab.index.gpu_operator_came_or_went(nullptr, &foreign_pod));
  EXPECT_FALSE(lab.index.gpu_operator_came_or_went(&foreign_pod, &foreign_pod));
  EXPECT_EQ(lab.index.affected_by(nullptr, &foreign_pod).size(), 1u);
  auto second = foreign_pod;
  second.key.name = "p-2", second.node_name = "n2", second.resource_version = 100;
  lab.pods.put(second);
  EXPECT_FALSE(lab.index.gpu_operator_came_or_went(nullptr, &second)) << "it was known before";
  lab.pods.erase(second), lab.pods.erase(foreign_pod);
  EXPECT_TRUE(lab.index.gpu_operator_came_or_went(&foreign_pod, nullptr));
  EXPECT_FALSE(lab.index.foreign("n2").gpu_operator);
  auto own_pod = lab.pod("quartermaster", "p", "n1", "pgpu", nullptr);
  own_pod.owners = {{"DaemonSet", "nvidia-device-plugin-ds", {}, true}};
  own_pod.mounts_plugin_folder = true;
  lab.pods.put(own_pod);
  EXPECT_TRUE(lab.index.foreign("n1").here.empty());
}

TEST(node_pods, S27_resources_of_a_policys_own_modules_are_held_like_any_other) {
  pods_lab lab;
  lab.pods.put(lab.pod("team", "fpga", "n1", nullptr, "example.com/fpga"));
  lab.pods.put(lab.pod("team", "train", "n1", nullptr, "nvidia.com/gpu"));
  std::map<std::string, module_spec, std::less<>> modules;
  modules["fpga"].device = R"({"resources":[{"name":"example.com/fpga"}]})";
  modules["hami"].settings["resourceName"] = "nvidia.com/gpu";
  const modules::offer offered(modules);
  const auto held = lab.index.holders(named("n1"), offered);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].mode->name, "fpga");
  EXPECT_EQ(held[1].mode->name, "pgpu");
  EXPECT_EQ(lab.index.holders(named("n1"), offered, offered.find("hami"))[1].mode->name, "hami")
      << "where two modules have one name for it, the one that serves the node";
}

TEST(node_pods, a_pod_that_has_ended_or_is_gone_counts_no_more) {
  pods_lab lab;
  lab.pods.put(lab.pod("team", "train", "n1", nullptr, "tencent.com/vcuda-core"));
  auto ended = lab.pod("team", "train", "n1", nullptr, "tencent.com/vcuda-core");
  ended.phase = kube::pod_phase::succeeded;
  lab.pods.put(ended);
  EXPECT_THAT(lab.index.holders(named("n1")), IsEmpty());
  lab.pods.put(lab.pod("team", "other", "n1", nullptr, "nvidia.com/mps-core"));
  lab.pods.erase(lab.pod("team", "other", "n1", nullptr, "nvidia.com/mps-core"));
  EXPECT_EQ(lab.index.size(), 0u);
}

TEST(node_pods, wakes_the_node_a_pod_is_on_and_only_for_pods_that_matter) {
  pods_lab lab;
  const auto train = lab.pod("team", "train", "n1", nullptr, "nvidia.com/gpu"),
             web = lab.pod("team", "web", "n1", nullptr, nullptr);
  EXPECT_THAT(lab.index.affected_by(nullptr, &train), testing::ElementsAre(kube::object_key{{}, "n1"}));
  EXPECT_THAT(lab.index.affected_by(&train, &train).size(), 1u);
  EXPECT_THAT(lab.index.affected_by(&web, nullptr), IsEmpty());
}

TEST(node_pods, agrees_with_counting_over_random_histories) {
  pods_lab lab;
  std::mt19937 random(3);
  for (int turn = 0; turn < 3000; ++turn) {
    const auto name = std::to_string(random() % 20);
    const char* resources[] = {nullptr, "nvidia.com/gpu", "example.com/x"};
    auto pod = lab.pod("team", name, "n" + std::to_string(random() % 3), nullptr, resources[random() % 3]);
    if (random() % 4 == 0) pod.phase = kube::pod_phase::failed;
    if (random() % 3 == 0 && lab.pods.find(pod.key))
      lab.pods.erase(pod);
    else
      lab.pods.put(pod);
    std::size_t counted = 0;
    for (const auto& entry : lab.pods.all()) counted += lab.index.matters(entry) ? 1 : 0;
    ASSERT_EQ(lab.index.size(), counted) << turn;
  }
}

}  // namespace
}  // namespace reconcilers
