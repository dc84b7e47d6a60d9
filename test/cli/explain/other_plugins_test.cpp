// Pods that ask for what another device plugin than ours offers: kube-scheduler compares such amounts, and so do
// simulate and explain pod.
#include "cli/explain/other_plugins.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/explain/answer_form.hpp"
#include "cli/explain/explain_pod.hpp"
#include "cli/explain/simulate.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace cli::other_plugins_test {
namespace {

using words::english;

using extender_test::container, extender_test::pod, extender_test::share;
using nlohmann::json;
using testing::HasSubstr;

constexpr auto nic = "rdma/hca";

/// Nodes a and b have a card each; b has four NICs, c has two NICs and no card.
struct other_plugins : testing::Test {
  picture cluster;
  std::ostringstream out, err;
  namespace_limits limits;

  other_plugins() {
    const auto begin = [](auto&... stores) { (stores.begin(), ...); };
    begin(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
          cluster.cards);
    cluster.nodes.put(extender_test::vgpu_node("a", 1));
    auto with_both = extender_test::vgpu_node("b", 1);
    with_both.allocatable.emplace_back(nic, 4);
    std::ranges::sort(with_both.allocatable);
    cluster.nodes.put(with_both);
    cluster.nodes.put(extender_test::node("c", {}, {{nic, 2}}));
  }
  void finish() {
    const auto commit = [](auto&... stores) { (stores.commit(), ...); };
    commit(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
           cluster.cards);
    cluster.finish();
  }
  static tried_pod tried(kube::pod pod) { return {{std::move(pod)}, node_rules(kube::described_pod())}; }
  json simulated(const std::vector<tried_pod>& pods, int expected) {
    out.str("");
    EXPECT_EQ(simulate(cluster, limits, pods, {"json"}, out), expected);
    return json::parse(out.str())["pods"];
  }
  std::pair<int, json> explained(const std::string& name) {
    out.str("");
    const int rc = explain_pod(cluster, {"lab", name}, {"json", "en"}, out, err, kube::described_pod());
    return {rc, json::parse(out.str())};
  }
};

kube::pod nics(const std::string& name, std::int64_t amount, const std::string& node = "") {
  return pod(name, {container("main", {{nic, amount}})}, node);
}

TEST_F(other_plugins, are_compared_with_what_pods_on_the_node_leave) {
  cluster.pods.put(nics("there", 3, "b"));
  auto ended = nics("ended", 2, "c");
  ended.phase = kube::pod_phase::succeeded;
  cluster.pods.put(ended);
  finish();
  const auto fits = simulated({tried(nics("p", 2))}, 0);
  EXPECT_EQ(fits[0]["asks"], false);
  EXPECT_EQ(fits[0]["why"], english("explain.simulate.other_plugin",
                                    {{"list", nic}, {"nodes", text::counted(1, "explain.nodes", text::language::en)}}))
      << "what has ended holds nothing";
  const auto nowhere = simulated({tried(nics("p", 3))}, 3);
  EXPECT_TRUE(nowhere[0]["node"].is_null());
  EXPECT_THAT(nowhere[0]["why"].get<std::string>(),
              HasSubstr(english("explain.closed_by.other_plugin",
                                {{"key", nic}, {"amount", "3"}, {"left", "1"}, {"all", "4"}})));
}

TEST_F(other_plugins, pods_of_one_file_take_from_each_other) {
  finish();
  const auto all = simulated({tried(nics("x", 4)), tried(nics("y", 2)), tried(nics("z", 1))}, 3);
  EXPECT_EQ(all[0]["asks"], false);
  EXPECT_EQ(all[1]["asks"], false);
  EXPECT_EQ(all[2]["asks"], true) << "nothing is left for it";
}

TEST_F(other_plugins, close_nodes_to_a_pod_with_cards) {
  finish();
  auto both = share("p", 20, 4);
  both.containers[0].limits.emplace_back(nic, 1);
  std::ranges::sort(both.containers[0].limits);
  EXPECT_EQ(simulated({tried(both)}, 0)[0]["node"], "b") << "a has no NIC";
}

TEST_F(other_plugins, that_have_given_all_away_close_nodes_to_a_pod_with_cards) {
  auto both = share("p", 20, 4);
  both.containers[0].limits.emplace_back(nic, 1);
  std::ranges::sort(both.containers[0].limits);
  cluster.pods.put(both);
  auto there = nics("there", 4, "b");
  cluster.pods.put(there);
  finish();
  EXPECT_TRUE(simulated({tried(both)}, 3)[0]["node"].is_null());
  const auto [rc, answer] = explained("p");
  EXPECT_EQ(rc, 3);
  EXPECT_EQ(answer["closed"].size(), 2U) << answer;
}

TEST_F(other_plugins, are_named_by_explain_pod) {
  cluster.pods.put(nics("small", 2));
  cluster.pods.put(nics("large", 5));
  cluster.pods.put(pod("plain", {container("main", {})}));
  finish();
  const auto [rc, small] = explained("small");
  EXPECT_EQ(rc, 0);
  EXPECT_EQ(small["obstacles"].back()["text"],
            english("explain.obstacle.other_plugin_has",
                    {{"list", nic}, {"nodes", text::counted(2, "explain.nodes", text::language::en)}}));
  const auto [large_rc, large] = explained("large");
  EXPECT_EQ(large_rc, 3);
  EXPECT_EQ(large["obstacles"][0]["code"], "other_plugin");
  EXPECT_EQ(explained("plain").first, 0);
}

TEST_F(other_plugins, keys_of_ours_and_those_that_no_node_has_are_none) {
  finish();
  const auto known = resources_of(cluster);
  const auto amounts = [&](const char* key) {
    return foreign_amounts(pod("p", {container("main", {{key, 1}})}), known, cluster);
  };
  EXPECT_EQ(amounts(nic), (kube::quantities{{nic, 1}}));
  EXPECT_TRUE(amounts("tencent.com/vcuda-core").empty());
  EXPECT_TRUE(amounts("example.com/none").empty());
}

}  // namespace
}  // namespace cli::other_plugins_test
