#include "reconcilers/nodes/node_pods.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace reconcilers {
namespace {

using testing::IsEmpty;

class lab {
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

TEST(node_pods, C61_a_slice_of_a_card_holds_it_and_a_name_that_nobody_lists_does_not) {
  lab it;
  it.pods.put(it.pod("team", "slice", "n1", nullptr, "nvidia.com/mig-1g.10gb"));
  it.pods.put(it.pod("team", "memory", "n1", nullptr, "nvidia.com/gpumem"));
  it.pods.put(it.pod("team", "nic", "n1", nullptr, "rdma/hca"));
  const auto node = named("n1", {{"nvidia.com/mig-1g.10gb", 0}, {"rdma/hca", 1}});
  for (const auto* mode : {"pgpu", "vgpu"}) {
    const auto held = it.index.holders(node, modules::offered_by(nullptr), modules::find(mode));
    ASSERT_EQ(held.size(), 1u) << mode;
    EXPECT_EQ(held[0].name(), "team/slice");
    EXPECT_EQ(held[0].of->name, "pgpu") << "of no other module's cards, whichever serves the node";
  }
  EXPECT_EQ(it.index.holders(node, modules::offered_by(nullptr), modules::find("share"))[0].of->name, "share")
      << "of the vendor's modules the one that serves the node";
}

TEST(node_pods, C62_says_which_pods_are_never_evicted) {
  kube::pod pod;
  EXPECT_THAT(why_it_stays(pod), testing::HasSubstr("lost"));
  pod.owners = {{"Foo", "other", {}, false}, {"ReplicaSet", "web", {}, true}};
  EXPECT_EQ(why_it_stays(pod), "");
  pod.owners[1].kind = "DaemonSet";
  EXPECT_THAT(why_it_stays(pod), testing::HasSubstr("DaemonSet"));
  pod.mirror = true;
  EXPECT_THAT(why_it_stays(pod), testing::HasSubstr("static"));
}

TEST(node_pods, knows_plugins_by_namespace_and_label_and_holders_by_what_they_ask_for) {
  lab it;
  it.pods.put(it.pod("quartermaster", "p", "n1", "pgpu", nullptr));
  it.pods.put(it.pod("team", "fake", "n1", "mps", nullptr));
  it.pods.put(it.pod("team", "train", "n1", nullptr, "nvidia.com/gpu"));
  it.pods.put(it.pod("team", "fpga", "n1", nullptr, "example.com/fpga"));
  it.pods.put(it.pod("team", "waiting", "", nullptr, "nvidia.com/gpu"));
  ASSERT_EQ(it.index.plugins("n1").size(), 1u);
  EXPECT_EQ(it.index.plugins("n1")[0].name, "quartermaster/p");
  ASSERT_EQ(it.index.holders(named("n1")).size(), 1u);
  EXPECT_EQ(it.index.holders(named("n1"))[0].name(), "team/train");
  EXPECT_EQ(it.index.holders(named("n1"))[0].of->name, "pgpu");
  EXPECT_EQ(it.index.holders(named("n1"))[0].stays, "has no controller and would be lost");
  EXPECT_THAT(it.index.plugins("n2"), IsEmpty());
  EXPECT_EQ(it.index.size(), 3u);
}

TEST(node_pods, S74_knows_the_device_plugins_of_others) {
  lab it;
  auto theirs = it.pod("gpu-operator", "p-1", "n1", nullptr, nullptr);
  theirs.owners = {{"DaemonSet", "nvidia-device-plugin-daemonset", {}, true}};
  EXPECT_FALSE(it.index.foreign("n1").gpu_operator);
  it.pods.put(theirs);
  ASSERT_EQ(it.index.foreign("n1").here.size(), 1u);
  EXPECT_EQ(it.index.foreign("n1").here[0].daemon_set, "gpu-operator/nvidia-device-plugin-daemonset");
  EXPECT_TRUE(it.index.foreign("n2").gpu_operator) << "on other nodes it is known, too";
  EXPECT_TRUE(it.index.gpu_operator_came_or_went(nullptr, &theirs));
  EXPECT_FALSE(it.index.gpu_operator_came_or_went(&theirs, &theirs));
  EXPECT_EQ(it.index.affected_by(nullptr, &theirs).size(), 1u);
  auto second = theirs;
  second.key.name = "p-2", second.node_name = "n2", second.resource_version = 100;
  it.pods.put(second);
  EXPECT_FALSE(it.index.gpu_operator_came_or_went(nullptr, &second)) << "it was known before";
  it.pods.erase(second), it.pods.erase(theirs);
  EXPECT_TRUE(it.index.gpu_operator_came_or_went(&theirs, nullptr));
  EXPECT_FALSE(it.index.foreign("n2").gpu_operator);
  auto ours = it.pod("quartermaster", "p", "n1", "pgpu", nullptr);
  ours.owners = {{"DaemonSet", "nvidia-device-plugin-ds", {}, true}};
  it.pods.put(ours);
  EXPECT_TRUE(it.index.foreign("n1").here.empty());
}

TEST(node_pods, S27_resources_of_a_policys_own_modules_are_held_like_any_other) {
  lab it;
  it.pods.put(it.pod("team", "fpga", "n1", nullptr, "example.com/fpga"));
  it.pods.put(it.pod("team", "train", "n1", nullptr, "nvidia.com/gpu"));
  std::map<std::string, module_spec, std::less<>> modules;
  modules["fpga"].device = R"({"resources":[{"name":"example.com/fpga"}]})";
  modules["hami"].settings["resourceName"] = "nvidia.com/gpu";
  const modules::offer offered(modules);
  const auto held = it.index.holders(named("n1"), offered);
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(held[0].of->name, "fpga");
  EXPECT_EQ(held[1].of->name, "pgpu");
  EXPECT_EQ(it.index.holders(named("n1"), offered, offered.find("hami"))[1].of->name, "hami")
      << "where two modules have one name for it, the one that serves the node";
}

TEST(node_pods, a_pod_that_has_ended_or_is_gone_counts_no_more) {
  lab it;
  it.pods.put(it.pod("team", "train", "n1", nullptr, "tencent.com/vcuda-core"));
  auto ended = it.pod("team", "train", "n1", nullptr, "tencent.com/vcuda-core");
  ended.phase = kube::pod_phase::succeeded;
  it.pods.put(ended);
  EXPECT_THAT(it.index.holders(named("n1")), IsEmpty());
  it.pods.put(it.pod("team", "other", "n1", nullptr, "nvidia.com/mps-core"));
  it.pods.erase(it.pod("team", "other", "n1", nullptr, "nvidia.com/mps-core"));
  EXPECT_EQ(it.index.size(), 0u);
}

TEST(node_pods, wakes_the_node_a_pod_is_on_and_only_for_pods_that_matter) {
  lab it;
  const auto train = it.pod("team", "train", "n1", nullptr, "nvidia.com/gpu"),
             web = it.pod("team", "web", "n1", nullptr, nullptr);
  EXPECT_THAT(it.index.affected_by(nullptr, &train), testing::ElementsAre(kube::object_key{{}, "n1"}));
  EXPECT_THAT(it.index.affected_by(&train, &train).size(), 1u);
  EXPECT_THAT(it.index.affected_by(&web, nullptr), IsEmpty());
}

TEST(node_pods, agrees_with_counting_over_random_histories) {
  lab it;
  std::mt19937 random(3);
  for (int turn = 0; turn < 3000; ++turn) {
    const auto name = std::to_string(random() % 20);
    const char* resources[] = {nullptr, "nvidia.com/gpu", "example.com/x"};
    auto pod = it.pod("team", name, "n" + std::to_string(random() % 3), nullptr, resources[random() % 3]);
    if (random() % 4 == 0) pod.phase = kube::pod_phase::failed;
    if (random() % 3 == 0 && it.pods.find(pod.key))
      it.pods.erase(pod);
    else
      it.pods.put(pod);
    std::size_t counted = 0;
    for (const auto& one : it.pods.all()) counted += it.index.matters(one) ? 1 : 0;
    ASSERT_EQ(it.index.size(), counted) << turn;
  }
}

}  // namespace
}  // namespace reconcilers
