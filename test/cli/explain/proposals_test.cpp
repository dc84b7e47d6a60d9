// What `explain pod` proposes: in which order, with which command, and only what the engine would place then.

#include "cli/explain/proposals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "reconcilers/extender/reasons.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using extender_test::container;
using extender_test::node;
using extender_test::pod;
using extender_test::share;
using extender_test::vgpu_node;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using words::english;

struct proposals_test : testing::Test {
  picture cluster;
  std::ostringstream out, err;

  proposals_test() {
    const auto begin = [](auto&... stores) { (stores.begin(), ...); };
    begin(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
          cluster.cards);
  }
  void turn_on(std::initializer_list<const char*> modules, const std::string& own_plugin_of = "") {
    reconcilers::accelerator_policy policy;
    policy.key.name = "default";
    for (const auto* name : modules) policy.modules[name].enabled = true;
    if (!own_plugin_of.empty()) policy.modules[own_plugin_of].settings["plugin"] = "quartermaster";
    cluster.policies.put(policy);
  }
  static kube::node whole_cards(const std::string& name, std::int64_t cards) {
    return node(name, {{"quartermaster.io/module", "pgpu"}}, {{"nvidia.com/gpu", cards}});
  }
  static kube::node mps_node(const std::string& name, std::int64_t cards) {
    return node(name, {{"quartermaster.io/module", "mps"}},
                {{"nvidia.com/mps-core", 100 * cards}, {"nvidia.com/mps-memory", 16 * cards}});
  }
  static kube::pod asking(const std::string& key, std::int64_t amount, const std::string& node = "") {
    return pod("p-" + node, {container("main", {{key, amount}})}, node);
  }
  json explain(const kube::pod& waiting) {
    cluster.pods.put(waiting);
    if (!cluster.book) {
      const auto commit = [](auto&... stores) { (stores.commit(), ...); };
      commit(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
             cluster.cards);
      cluster.finish();
    }
    out.str("");
    explain_pod(cluster, waiting.key, {"json", "en"}, out, err);
    return json::parse(out.str())["changes"];
  }
  static std::vector<std::string> fields(const json& changes, const char* name) {
    std::vector<std::string> out;
    for (const auto& change : changes) out.push_back(change[name].is_null() ? "" : change[name].get<std::string>());
    return out;
  }
};

TEST_F(proposals_test, an_idle_node_in_another_mode_is_offered_with_its_command) {
  turn_on({"pgpu", "vgpu"});
  cluster.nodes.put(whole_cards("full", 1));
  cluster.nodes.put(vgpu_node("busy", 4));
  cluster.nodes.put(vgpu_node("idle", 4));
  cluster.pods.put(asking("nvidia.com/gpu", 1, "full"));
  cluster.pods.put(share("there", 10, 4, "busy"));
  const auto changes = explain(asking("nvidia.com/gpu", 1));
  ASSERT_THAT(fields(changes, "kind"), ElementsAre("mode", "card"));
  EXPECT_EQ(changes[0]["text"],
            english("explain.proposal.mode", {{"node", "idle"}, {"mode", "pgpu"}, {"current", "vgpu"}}));
  EXPECT_EQ(changes[0]["command"], "kubectl label node idle nvidia-device-enable=pgpu");
  EXPECT_THAT(fields(explain(asking("nvidia.com/gpu", 5)), "kind"), testing::Not(testing::Contains("mode")))
      << "it has four cards";
}

TEST_F(proposals_test, where_annotations_are_the_reason_no_answer_says_that_no_change_is_enough) {
  cluster.nodes.put(vgpu_node("a", 1));
  const auto asks = extender_test::annotated(share("p", 20, 4), {{"nvidia.com/use-gputype", "H100"}});
  const auto changes = explain(asks);
  ASSERT_THAT(fields(changes, "kind"), ElementsAre("pod"));
  EXPECT_THAT(changes[0]["text"].get<std::string>(), HasSubstr("nvidia.com/use-gputype"));
  const reconcilers::extender::pod_request request(asks, cluster.book->keys());
  const auto nodes = reconcilers::extender::candidates(cluster.book->book(), cluster.nodes);
  const auto explanation = quota::explain(request.containers(), nodes, request.only());
  ASSERT_FALSE(explanation.of_pod || explanation.of_node);
  EXPECT_EQ(json::parse(out.str())["explanation"]["text"],
            words_of_causes(explanation, nodes, request, text::language::en));
}

TEST_F(proposals_test, a_node_that_is_cordoned_or_changing_or_used_is_not_changed) {
  turn_on({"pgpu", "vgpu"});
  auto cordoned = vgpu_node("cordoned", 4);
  cordoned.unschedulable = true;
  cluster.nodes.put(cordoned);
  cluster.nodes.put(extender_test::switching(vgpu_node("changing", 4)));
  cluster.nodes.put(vgpu_node("busy", 4));
  cluster.pods.put(pod("uncounted", {container("main", {{"tencent.com/vcuda-core", 20}})}, "busy"));
  EXPECT_THAT(fields(explain(asking("nvidia.com/gpu", 2)), "kind"), testing::Not(testing::Contains("mode")));
}

TEST_F(proposals_test, a_node_that_the_plugin_of_someone_else_serves_is_left_alone) {
  turn_on({"pgpu", "vgpu"});
  cluster.nodes.put(
      node("theirs", {{"nvidia.com/gpu.count", "1"}, {"nvidia.com/gpu.memory", "16384"}}, {{"nvidia.com/gpu", 1}}));
  EXPECT_THAT(fields(explain(share("p", 20, 4)), "kind"), IsEmpty());
}

TEST_F(proposals_test, a_mode_that_the_operator_would_refuse_is_not_proposed) {
  turn_on({"mps", "vgpu"});
  auto old = node("old",
                  {{"quartermaster.io/module", "vgpu"},
                   {"nvidia.com/gpu.compute.major", "6"},
                   {"nvidia.com/gpu.compute.minor", "1"}},
                  {{"tencent.com/vcuda-core", 100}, {"tencent.com/vcuda-memory", 64}});
  cluster.nodes.put(old);
  const auto asks = pod("p", {container("main", {{"nvidia.com/mps-core", 20}, {"nvidia.com/mps-memory", 2}})});
  EXPECT_THAT(fields(explain(asks), "kind"), ElementsAre("key")) << "MPS needs Volta";
}

TEST_F(proposals_test, what_only_has_to_be_used_again_comes_first) {
  turn_on({"pgpu", "vgpu"});
  auto cordoned = vgpu_node("cordoned", 1);
  cordoned.unschedulable = true;
  cordoned.taints.push_back({"node.kubernetes.io/unschedulable", "", "NoSchedule"});
  cluster.nodes.put(cordoned);
  cluster.nodes.put(vgpu_node("full", 1));
  cluster.nodes.put(node("new", {{"nvidia.com/gpu.count", "1"}, {"nvidia.com/gpu.memory", "16384"}}, {}));
  cluster.nodes.put(node("asked", {{"nvidia.com/gpu.count", "1"}, {"nvidia-device-enable", "none"}}, {}));
  cluster.nodes.put(whole_cards("whole", 1));
  cluster.pods.put(share("there", 90, 60, "full"));
  const auto changes = explain(share("p", 20, 4));
  EXPECT_THAT(fields(changes, "kind"), ElementsAre("uncordon", "label", "pod", "card"))
      << "how much memory cards of node whole have is not known";
  EXPECT_THAT(fields(changes, "command"),
              ElementsAre("kubectl uncordon cordoned", "kubectl label node new nvidia-device-enable=vgpu", "", ""));
}

TEST_F(proposals_test, a_limit_is_raised_by_what_is_missing) {
  cluster.nodes.put(vgpu_node("a", 1));
  cluster.quotas.put(extender_test::limits_of_lab(json::array({{{"units", "cores"}, {"max", 30}}})));
  cluster.pods.put(share("there", 20, 4, "a"));
  const auto changes = explain(share("p", 25, 4));
  ASSERT_THAT(fields(changes, "kind"), ElementsAre("quota"));
  EXPECT_EQ(
      changes[0]["text"],
      english("explain.proposal.quota",
              {{"subject", english("engine.limit.cores")}, {"namespace", "lab"}, {"amount", "15"}, {"limit", "45"}}));
  EXPECT_EQ(changes[0]["command"], "kubectl edit acceleratorquota -n lab q");
}

TEST_F(proposals_test, one_limit_of_two_that_refuse_is_no_help) {
  cluster.nodes.put(vgpu_node("a", 1));
  cluster.quotas.put(
      extender_test::limits_of_lab(json::array({{{"units", "cores"}, {"max", 10}}, {{"units", "cards"}, {"max", 0}}})));
  EXPECT_THAT(explain(share("p", 25, 4)), IsEmpty());
}

std::string words_of_keys(const std::string& after, const std::string& before, std::size_t nodes) {
  const auto list = english("explain.proposal.container", {{"name", "main"}, {"after", after}, {"before", before}});
  return english("explain.proposal.key",
                 {{"list", list}, {"nodes", text::counted(nodes, "explain.nodes", text::language::en)}});
}

TEST_F(proposals_test, keys_of_the_same_meaning_are_proposed_with_their_amounts) {
  cluster.nodes.put(mps_node("a", 1));
  cluster.nodes.put(mps_node("b", 1));
  const auto changes = explain(share("p", 30, 13));
  ASSERT_THAT(fields(changes, "kind"), ElementsAre("key"));
  EXPECT_EQ(changes[0]["text"], words_of_keys("nvidia.com/mps-core: 30, nvidia.com/mps-memory: 4 (GiB)",
                                              "tencent.com/vcuda-core: 30, tencent.com/vcuda-memory: 13 (256 MiB)", 2));
}

TEST_F(proposals_test, other_keys_that_would_fit_nowhere_are_not_proposed) {
  cluster.nodes.put(mps_node("a", 1));
  EXPECT_THAT(explain(share("p", 30, 80)), IsEmpty()) << "20 GiB of a card of 16";
}

TEST_F(proposals_test, memory_without_cores_is_written_in_slots) {
  turn_on({"hami"});
  cluster.nodes.put(node("h", {{"quartermaster.io/module", "hami"}}, {{"nvidia.com/gpualloc", 10}},
                         {{"hami.io/node-nvidia-register", "GPU-1,10,16384,100,NVIDIA-Tesla T4,0,true:"}}));
  cluster.nodes.put(mps_node("a", 1));
  const auto changes = explain(pod("p", {container("main", {{"aliyun.com/gpu-mem", 4}})}));
  ASSERT_THAT(fields(changes, "kind"), ElementsAre("key"));
  EXPECT_EQ(changes[0]["text"],
            words_of_keys("nvidia.com/gpualloc: 1, nvidia.com/gpumem: 4096 (MiB)", "aliyun.com/gpu-mem: 4 (GiB)", 1));
}

/// Each proposal of another key, written into a pod, is placed.
TEST_F(proposals_test, what_is_proposed_is_placed) {
  cluster.nodes.put(vgpu_node("a", 2));
  const auto waits = pod("p", {container("main", {{"nvidia.com/mps-core", 30}, {"nvidia.com/mps-memory", 3}})});
  ASSERT_THAT(explain(waits).at(0).at("text").get<std::string>(),
              HasSubstr("tencent.com/vcuda-core: 30, tencent.com/vcuda-memory: 12"));
  cluster.pods.put(share("written", 30, 12));
  EXPECT_EQ(explain_pod(cluster, {"lab", "written"}, {}, out, err), 0);
}

/// Nodes that the pod's selector closes to it are no place for a smaller pod either.
TEST_F(proposals_test, what_fits_on_nodes_that_are_closed_to_the_pod_is_not_proposed) {
  cluster.nodes.put(vgpu_node("small", 1));
  const auto waits = share("p", 20, 80);
  ASSERT_THAT(fields(explain(waits), "kind"), ElementsAre("pod"));
  kube::described_pod whole{waits};
  whole.rules.selector = {{"zone", "x"}};
  out.str("");
  EXPECT_EQ(explain_pod(cluster, waits.key, {"json", "en"}, out, err, whole), 3);
  EXPECT_EQ(json::parse(out.str())["changes"], json::array());
}

TEST_F(proposals_test, in_text_each_has_a_line_and_its_command_below) {
  turn_on({"pgpu", "vgpu"});
  cluster.nodes.put(vgpu_node("idle", 1));
  const auto waits = asking("nvidia.com/gpu", 1);
  explain(waits);
  for (const auto& [language, locale] : {std::pair("en", text::language::en), std::pair("zh", text::language::zh)}) {
    out.str("");
    EXPECT_EQ(explain_pod(cluster, waits.key, {"text", language}, out, err), 3);
    const auto change =
        text::message("explain.proposal.mode", locale, {{"node", "idle"}, {"mode", "pgpu"}, {"current", "vgpu"}});
    EXPECT_THAT(out.str(), HasSubstr(text::message("explain.would_place", locale, {{"change", change}}) +
                                     "\n  kubectl label node idle nvidia-device-enable=pgpu\n"));
    EXPECT_FALSE(language == std::string("zh") && words::has_english_sentence(out.str())) << out.str();
  }
}

}  // namespace
}  // namespace cli
