#include "cli/placements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "test/reconcilers/extender/rig.hpp"

namespace cli {
namespace {

using extender_test::container;
using extender_test::pod;
using extender_test::share;
using extender_test::vgpu_node;
using nlohmann::json;
using testing::HasSubstr;

struct placements_test : testing::Test {
  placements in;
  std::ostringstream out, err;

  placements_test() {
    const auto begin = [](auto&... stores) { (stores.begin(), ...); };
    begin(in.pods, in.nodes, in.policies, in.rules, in.quotas, in.old_quotas, in.cards);
    in.nodes.put(vgpu_node("a", 1));
    in.nodes.put(vgpu_node("b", 1));
  }
  int explain(const std::string& name, const std::string& output = "text") {
    if (!in.book) finish();
    return explain_pod(in, name, output, out, err);
  }
  void finish() {
    const auto commit = [](auto&... stores) { (stores.commit(), ...); };
    commit(in.pods, in.nodes, in.policies, in.rules, in.quotas, in.old_quotas, in.cards);
    in.finish();
  }
};

TEST_F(placements_test, S90_a_waiting_pod_is_explained_with_the_smallest_change) {
  in.pods.put(share("there", 90, 60, "a"));
  in.pods.put(share("there2", 90, 60, "b"));
  in.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p"), 3);
  EXPECT_THAT(out.str(), HasSubstr("Pod lab/p waits: its cards fit on 0 of 2 nodes."));
  EXPECT_THAT(out.str(), HasSubstr("no card with enough cores left"));
  EXPECT_THAT(out.str(), HasSubstr("container main"));
  EXPECT_THAT(out.str(), HasSubstr("Smallest change of the pod: "));
  EXPECT_THAT(out.str(), HasSubstr("of container main from"));
  EXPECT_THAT(out.str(), HasSubstr("Smallest change of a node: "));
}

TEST_F(placements_test, what_the_old_config_map_of_quotas_refuses_is_shown_where_it_stands) {
  kube::config_map old;
  old.key = {"kube-system", "gpuquota"};
  old.data = kube::packed_map::of({{"gpu_quota", R"({"lab": {"quota": {"Tesla-T4": 0}}})"}});
  in.old_quotas.put(old);
  in.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p"), 3);
  EXPECT_THAT(out.str(), HasSubstr("kubectl get configmap -n kube-system gpuquota -o yaml"));
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("acceleratorquota")));
}

TEST_F(placements_test, an_old_config_map_of_quotas_that_cannot_be_read_is_said) {
  kube::config_map old;
  old.key = {"kube-system", "gpuquota"};
  old.data = kube::packed_map::of({{"gpu_quota", R"({"lab": 3})"}});
  in.old_quotas.put(old);
  in.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p"), 0);
  EXPECT_THAT(err.str(), HasSubstr("kube-system/gpuquota does not count: lab is no object; allowed is"));
}

TEST_F(placements_test, as_json_the_same) {
  in.pods.put(share("there", 90, 60, "a"));
  in.pods.put(share("there2", 90, 60, "b"));
  in.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p", "json"), 3);
  const auto read = json::parse(out.str());
  EXPECT_EQ(read["waits"], true);
  EXPECT_EQ(read["explanation"]["fitting"], 0);
  EXPECT_EQ(read["explanation"]["causes"][0]["container"], "main");
  EXPECT_TRUE(read["explanation"]["changeOfPod"].is_string());
  EXPECT_TRUE(read["quota"].is_null());
}

TEST_F(placements_test, a_bound_pod_says_what_it_holds) {
  in.pods.put(share("there", 90, 60, "a"));
  EXPECT_EQ(explain("lab/there"), 0);
  EXPECT_THAT(out.str(), HasSubstr("a/0"));
  EXPECT_THAT(out.str(), HasSubstr("90 cores, 15360 MiB"));
  EXPECT_THAT(out.str(), HasSubstr("a guess"));
}

TEST_F(placements_test, what_is_not_cards_is_said_to_be_the_schedulers) {
  in.pods.put(pod("plain", {container("main", {})}));
  in.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/plain"), 0);
  EXPECT_THAT(out.str(), HasSubstr("kubectl describe pod -n lab plain"));
  EXPECT_EQ(explain("lab/p"), 0);
  EXPECT_THAT(out.str(), HasSubstr("Cards are not what it waits for"));
  EXPECT_EQ(explain("lab/none"), 1);
  EXPECT_THAT(err.str(), HasSubstr("there is no pod lab/none"));
}

TEST_F(placements_test, pods_are_simulated_one_after_the_other) {
  in.pods.put(share("there", 60, 8, "a"));
  finish();
  const kube::pod list[] = {share("x", 60, 8), share("y", 60, 8), pod("z", {container("main", {})})};
  EXPECT_EQ(simulate(in, list, "json", out), 3);
  const auto read = json::parse(out.str());
  EXPECT_EQ(read["pods"][0]["node"], "b");
  EXPECT_EQ(read["pods"][0]["holds"][0]["card"], "b/0");
  EXPECT_TRUE(read["pods"][1]["node"].is_null());
  EXPECT_THAT(read["pods"][1]["why"].get<std::string>(), HasSubstr("cores"));
  EXPECT_EQ(read["pods"][2]["asks"], false);
  std::ostringstream table;
  const kube::pod more[] = {share("v", 10, 8), share("w", 60, 8)};
  simulate(in, more, "text", table);
  EXPECT_THAT(table.str(), HasSubstr("1 of 2 pods fit."));
}

TEST_F(placements_test, what_a_quota_refuses_does_not_fit) {
  const json spec{{"hard", {{{"units", "cards"}, {"max", 1}}}}};
  in.quotas.put(*reconcilers::accelerator_quota::decode(
      json{{"metadata", {{"name", "q"}, {"namespace", "lab"}}}, {"spec", spec}}.dump()));
  finish();
  const kube::pod list[] = {share("x", 10, 8), share("y", 10, 8)};
  EXPECT_EQ(simulate(in, list, "text", out), 3);
  EXPECT_THAT(out.str(), HasSubstr("1 of 2 pods fit."));
  EXPECT_THAT(out.str(), HasSubstr("cards"));
}

}  // namespace
}  // namespace cli
