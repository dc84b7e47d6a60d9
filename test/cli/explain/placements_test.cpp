#include "cli/cluster/pod_target.hpp"
#include "cli/explain/explain_pod.hpp"
#include "cli/explain/simulate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/lint/lint.hpp"
#include "kube/projections/from_json.hpp"
#include "test/english.hpp"
#include "test/reconcilers/extender/rig.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using extender_test::container;
using extender_test::pod;
using extender_test::share;
using extender_test::vgpu_node;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using words::begin_of;
using words::chinese;
using words::english;

std::string nodes_of(std::size_t number) { return text::counted(number, "explain.nodes", text::language::en); }
std::string fitting(std::size_t number, std::size_t pods) {
  return english("explain.simulate.sum", {{"fitting", std::to_string(number)}, {"pods", std::to_string(pods)}});
}
std::string other_mode(const std::string& mode, const std::string& key) {
  return english("explain.mode.one", {{"mode", mode}, {"key", key}});
}

struct placements_test : testing::Test {
  picture cluster;
  std::ostringstream out, err;
  namespace_limits limits;

  placements_test() {
    const auto begin = [](auto&... stores) { (stores.begin(), ...); };
    begin(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
          cluster.cards);
    cluster.nodes.put(vgpu_node("a", 1));
    cluster.nodes.put(vgpu_node("b", 1));
  }
  int explain(const std::string& name, const std::string& output = "text", const std::string& language = "en") {
    if (!cluster.book) finish();
    return explain_pod(cluster, pod_named(name, "")->key, {output, language}, out, err);
  }
  static tried_pod tried(kube::pod pod, const json& spec = json::object()) {
    return {{std::move(pod)}, node_rules(described({{"spec", spec}}))};
  }
  static kube::described_pod described(json pod) {
    pod["metadata"]["name"] = "p";
    const auto made = kube::from_json<kube::described_pod>(pod.dump());
    EXPECT_TRUE(made) << pod;
    return made.value_or(kube::described_pod());
  }
  /// The pods of a file.
  static std::vector<tried_pod> in_file(const std::string& text, const std::string& ns = "") {
    std::vector<tried_pod> all;
    const auto file = text::yaml::read("pods.yaml", text);
    EXPECT_TRUE(file);
    for (const auto& entry : manifests_in(*file)) EXPECT_EQ(add_pods(entry, ns, all, text::language::en), "");
    return all;
  }
  void finish() {
    const auto commit = [](auto&... stores) { (stores.commit(), ...); };
    commit(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
           cluster.cards);
    cluster.finish();
  }
};

TEST_F(placements_test, a_waiting_pod_is_explained_with_the_smallest_change) {
  cluster.pods.put(share("there", 90, 60, "a"));
  cluster.pods.put(share("there2", 90, 60, "b"));
  cluster.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p"), 3);
  EXPECT_THAT(out.str(),
              HasSubstr(english("explain.waits.many", {{"pod", "lab/p"}, {"fitting", "0"}, {"number", "2"}})));
  EXPECT_THAT(out.str(), HasSubstr(english("engine.reason.cores")));
  EXPECT_THAT(out.str(), HasSubstr(english("engine.container", {{"name", "main"}})));
  EXPECT_THAT(out.str(), HasSubstr(begin_of("explain.of_pod", "change")));
  EXPECT_THAT(out.str(), HasSubstr(begin_of("explain.of_node", "change")));
}

/// It asks a scheduler that asks the operator, and fits.
TEST_F(placements_test, that_no_operator_leads_is_said_first_and_for_how_long) {
  auto waiting = share("p", 20, 4);
  waiting.scheduler_name = "quartermaster";
  cluster.pods.put(waiting);
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.scheduler.mode = "Dedicated";
  cluster.policies.put(policy);
  finish();
  const auto first_code = [&] {
    out.str("");
    explain_pod(cluster, {"lab", "p"}, {"json", "en"}, out, err);
    return json::parse(out.str())["obstacles"].at(0)["code"].get<std::string>();
  };
  EXPECT_EQ(first_code(), "not_read") << "the lease was not looked for";
  auto& lease = cluster.leader.lease.emplace();
  EXPECT_EQ(first_code(), "no_operator");
  lease.holder = "quartermaster-1";
  lease.duration_seconds = 15;
  cluster.taken = std::chrono::system_clock::time_point(std::chrono::seconds(1'000'000));
  lease.renewed_us = 999'990'000'000;
  EXPECT_EQ(first_code(), "not_read") << "10 s ago";
  lease.renewed_us = 999'880'000'000;
  EXPECT_EQ(first_code(), "no_operator");
  for (const auto& [language, locale] : {std::pair("en", text::language::en), std::pair("zh", text::language::zh)}) {
    out.str("");
    EXPECT_EQ(explain("lab/p", "text", language), 3) << "it fits, and no one places it";
    EXPECT_THAT(out.str(), HasSubstr(text::message(
                               "explain.obstacle.silent_operator", locale,
                               {{"holder", "quartermaster-1"}, {"seconds", "120"}, {"scheduler", "quartermaster"}})));
  }
  cluster.leader.renewed = true;
  EXPECT_EQ(first_code(), "not_read") << "clocks differ";
  cluster.leader.renewed = false;
  waiting.scheduler_name = "";
  waiting.resource_version = extender_test::next_version();
  cluster.pods.put(waiting);
  EXPECT_EQ(first_code(), "not_read") << "its scheduler asks no one";
}

/// What a pod's own object says of it: exit code, and a sentence in both languages.
TEST_F(placements_test, a_pod_is_held_by_other_things_than_cards) {
  cluster.pods.put(share("p", 20, 4));
  finish();
  const auto check = [&](const json& whole, int code, const std::string& key,
                         std::initializer_list<text::parameter> parameters, const std::string& id) {
    for (const auto& [language, locale] : {std::pair("en", text::language::en), std::pair("zh", text::language::zh)}) {
      out.str("");
      EXPECT_EQ(explain_pod(cluster, {"lab", "p"}, {"text", language}, out, err, described(whole)), code) << whole;
      EXPECT_THAT(out.str(), HasSubstr(text::message("explain.obstacle." + key, locale, parameters)));
      EXPECT_FALSE(language == std::string("zh") && words::has_english_sentence(out.str())) << out.str();
    }
    out.str("");
    explain_pod(cluster, {"lab", "p"}, {"json", "en"}, out, err, described(whole));
    const auto obstacles = json::parse(out.str())["obstacles"];
    EXPECT_TRUE(std::ranges::any_of(obstacles, [&](const auto& entry) { return entry["code"] == id; })) << obstacles;
  };
  const json looked = {{"conditions",
                        {{{"type", "PodScheduled"},
                          {"status", "False"},
                          {"reason", "Unschedulable"},
                          {"message", "0/2 nodes are available"}}}}};
  check({{"spec", {{"schedulingGates", {{{"name", "kueue.x-k8s.io/admission"}}}}}}}, 3, "gated.one",
        {{"list", "kueue.x-k8s.io/admission"}}, "gated");
  check({{"metadata", {{"namespace", "lab"}}}, {"spec", {{"resourceClaims", {{{"name", "card"}}}}}}}, 3, "claims",
        {{"list", "card"}, {"namespace", "lab"}}, "claims");
  check({{"spec", {{"schedulerName", "hami-scheduler"}}}}, 3, "no_one_asks", {}, "not_looked_at");
  check({{"spec", {{"schedulerName", "default-scheduler"}}}, {"status", looked}}, 0, "scheduler_says",
        {{"scheduler", "default-scheduler"}, {"text", "Unschedulable: 0/2 nodes are available"}}, "scheduler_says");
  check({{"spec", {{"schedulerName", "volcano"}}}, {"status", looked}}, 0, "no_one_asks", {}, "other_scheduler");
  check({{"metadata", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}, {"finalizers", {"a.example/b"}}}}}, 3,
        "deleted_with_finalizers", {{"time", "2026-01-01T00:00:00Z"}, {"grace", ""}, {"list", "a.example/b"}},
        "deleted");
  check({{"spec", {{"containers", {{{"name", "c"}, {"resources", {{"limits", {{"kubernetes.io/gpu", "1"}}}}}}}}}}}, 3,
        "native_resource", {{"key", "kubernetes.io/gpu"}, {"hint", "nvidia.com/gpu"}}, "native_resource");
}

/// ResourceQuota and LimitRange as the API server applies them to new pods.
TEST_F(placements_test, what_the_api_server_limits_in_a_namespace_counts) {
  finish();
  limits.add(json::parse(R"({"kind": "LimitRange", "metadata": {"namespace": "lab", "name": "r"}, "spec": {"limits": [
      {"type": "Container", "default": {"tencent.com/vcuda-core": "30", "tencent.com/vcuda-memory": "8"},
       "max": {"tencent.com/vcuda-core": "50"}}]}})"));
  limits.add(json::parse(R"({"kind": "ResourceQuota", "metadata": {"namespace": "lab", "name": "q"},
      "spec": {"hard": {"requests.tencent.com/vcuda-core": "70", "limits.cpu": "1"}},
      "status": {"used": {"requests.tencent.com/vcuda-core": "10"}}})"));
  limits.add(json::parse(R"({"kind": "ResourceQuota", "metadata": {"namespace": "lab", "name": "scoped"},
      "spec": {"scopes": ["BestEffort"], "hard": {"pods": "0"}}})"));
  EXPECT_THAT(limits.doubts(), testing::ElementsAre(english("namespace_limit.scopes", {{"name", "lab/scoped"}})));
  const auto text = [](const std::string& name, const std::string& ns, const std::string& amounts) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: " + ns +
           "}\nspec:\n  containers: [{name: main, image: x, resources: {limits: {" + amounts + "}}}]\n";
  };
  const auto pods = in_file(
      text("filled", "lab", "") + text("large", "lab", "tencent.com/vcuda-core: 60, tencent.com/vcuda-memory: 8") +
      text("second", "lab", "tencent.com/vcuda-core: 40, tencent.com/vcuda-memory: 8") +
      text("third", "lab", "tencent.com/vcuda-core: 30, tencent.com/vcuda-memory: 8") + text("free", "other", ""));
  EXPECT_EQ(simulate(cluster, limits, pods, {"json", "en"}, out), 3);
  auto answer = json::parse(out.str())["pods"];
  EXPECT_EQ(answer[0]["holds"][0]["cores"], 30) << answer[0];
  EXPECT_EQ(answer[1]["why"], english("namespace_limit.range_most", {{"name", "lab/r"},
                                                                     {"key", "tencent.com/vcuda-core"},
                                                                     {"amount", "60"},
                                                                     {"holder", english("namespace_limit.container")},
                                                                     {"most", "50"}}));
  EXPECT_EQ(answer[2]["why"], english("namespace_limit.quota", {{"name", "lab/q"},
                                                                {"key", "requests.tencent.com/vcuda-core"},
                                                                {"used", "40"},
                                                                {"hard", "70"},
                                                                {"more", "40"}}));
  EXPECT_EQ(answer[3]["node"].is_string(), true) << answer[3];
  EXPECT_EQ(answer[4]["asks"], false) << answer[4];
}

/// Devices of DRA are another program's: they are no room, and no "any".
TEST_F(placements_test, a_pod_with_claims_is_not_said_to_fit) {
  finish();
  namespace_limits limits;
  const auto list = in_file(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: c, namespace: lab}\nspec:\n  resourceClaims: [{name: card}]\n"
      "  containers: [{name: m, image: x, resources: {claims: [{name: card}]}}]\n");
  EXPECT_EQ(simulate(cluster, limits, list, {"json", "en"}, out), 3);
  const auto answer = json::parse(out.str())["pods"];
  EXPECT_TRUE(answer[0]["node"].is_null()) << answer;
  EXPECT_EQ(answer[0]["why"], english("explain.simulate.claims", {{"list", "card"}}));
}

/// The claim that a pod waits for is named, and one that has its devices is not what it waits for.
TEST_F(placements_test, a_claim_is_what_a_pod_waits_for_where_it_is) {
  cluster.pods.put(share("p", 20, 4));
  finish();
  const auto obstacles = [&](const json& spec, const json& status, const claim_states& claims) {
    out.str("");
    const auto whole = described({{"metadata", {{"namespace", "lab"}}}, {"spec", spec}, {"status", status}});
    const auto rc = explain_pod(cluster, {"lab", "p"}, {"json", "en"}, out, err, whole, others::named, claims);
    auto all = json::parse(out.str())["obstacles"];
    return std::pair(rc, all.empty() ? json() : all.front());
  };
  const auto text_of = [](const std::string& key, std::initializer_list<text::parameter> parameters) {
    return json(english("explain.obstacle." + key, parameters));
  };
  const json named{{"resourceClaims", {{{"name", "c"}, {"resourceClaimName", "card"}}}}};
  const json made{{"resourceClaims", {{{"name", "c"}, {"resourceClaimTemplateName", "t"}}}}};
  const kube::object_key key{"lab", "card"};
  auto [rc, first] = obstacles(named, json::object(), {{key, std::nullopt}});
  EXPECT_EQ(rc, 3);
  EXPECT_EQ(first["text"], text_of("claim_missing", {{"claim", "card"}, {"namespace", "lab"}}));
  std::tie(rc, first) = obstacles(named, json::object(), {{key, claim_state{{"gpu.example.com"}, {}, false}}});
  EXPECT_EQ(rc, 3);
  EXPECT_EQ(first["text"],
            text_of("claim_waits", {{"claim", "card"}, {"other", "gpu.example.com"}, {"namespace", "lab"}}));
  std::tie(rc, first) = obstacles(made, json::object(), {});
  EXPECT_EQ(rc, 3);
  EXPECT_EQ(first["text"], text_of("claim_not_made", {{"claim", "c"}, {"other", "t"}, {"namespace", "lab"}}));
  const json status{{"resourceClaimStatuses", {{{"name", "c"}, {"resourceClaimName", "card"}}}},
                    {"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "no"}}}}};
  const claim_states has_card{{key, claim_state{{}, {"gpu.example.com/n/gpu-0"}, true}}};
  std::tie(rc, first) = obstacles(made, status, has_card);
  EXPECT_EQ(rc, 0) << first;
  EXPECT_THAT(out.str(), HasSubstr("gpu.example.com/n/gpu-0"));
  std::tie(rc, first) = obstacles(named, json::object(), {});
  EXPECT_EQ(rc, 3) << "not seen";
  EXPECT_EQ(first["text"], text_of("claims", {{"list", "c"}, {"namespace", "lab"}}));
}

TEST_F(placements_test, the_state_of_a_claim_is_read_in_either_form) {
  const auto older = claim_state_of(json::parse(
      R"({"spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "a"},
          {"name": "s", "firstAvailable": [{"name": "x", "deviceClassName": "b"}]}]}}})"));
  EXPECT_EQ(older.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(older.is_allocated);
  const auto newer = claim_state_of(json::parse(
      R"({"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "a"}}]}},
          "status": {"allocation": {"devices": {"results": [{"driver": "d", "pool": "p", "device": "g"}]}}}})"));
  EXPECT_EQ(newer.classes, (std::vector<std::string>{"a"}));
  EXPECT_EQ(newer.devices, (std::vector<std::string>{"d/p/g"}));
  EXPECT_TRUE(newer.is_allocated);
  for (const auto* text : {"null", "[]", R"({"spec": 1, "status": {"allocation": 2}})", R"({"spec": {"devices": []}})"})
    EXPECT_FALSE(claim_state_of(json::parse(text)).is_allocated) << text;
}

/// Resources that only a DeviceClass gives are no typing mistake, and no room.
TEST_F(placements_test, a_resource_of_a_device_class_is_not_judged) {
  cluster.classes["example.com/card"] = "card.example.com";
  finish();
  namespace_limits limits;
  const auto pod_of = [](const std::string& name, const std::string& key) {
    return "---\napiVersion: v1\nkind: Pod\nmetadata: {name: " + name +
           "}\nspec:\n  containers: [{name: m, image: x, resources: {limits: {" + key + ": 1}}}]\n";
  };
  const auto list = in_file(pod_of("a", "example.com/card") + pod_of("b", "deviceclass.resource.kubernetes.io/gpu.x") +
                            pod_of("c", "kubernetes.io/gpu"));
  EXPECT_EQ(simulate(cluster, limits, list, {"json", "en"}, out), 3);
  const auto answer = json::parse(out.str());
  EXPECT_EQ(answer["notJudged"], 2) << answer;
  EXPECT_EQ(answer["pods"][0]["why"],
            english("explain.simulate.classes", {{"list", "DeviceClass card.example.com (example.com/card)"}}));
  EXPECT_THAT(answer["pods"][1].value("why", ""), HasSubstr("DeviceClass gpu.x"));
  EXPECT_EQ(answer["pods"][2].value("judged", true), true) << "no node has it: an answer";
}

/// What makes no pods now: its line, and no pod that has to fit.
TEST_F(placements_test, what_is_suspended_paused_or_without_replicas_makes_no_pod) {
  const std::string pods =
      "containers: [{name: m, image: x, resources: {limits: {tencent.com/vcuda-core: 20, "
      "tencent.com/vcuda-memory: 4}}}]}}";
  struct row {
    std::string kind, spec, none, number;
  };
  const row table[] = {
      {"batch/v1 Job", "suspend: true, parallelism: 4, completions: 8", "suspended", "4"},
      {"batch/v1 Job", "parallelism: 0", "no_parallelism", ""},
      {"batch/v1 Job", "completions: 0", "no_completions", ""},
      {"batch/v1 Job", "completions: 3", "ended", ""},
      {"batch/v1 CronJob", "suspend: true", "suspended", "1"},
      {"apps/v1 Deployment", "replicas: 0", "no_replicas", ""},
      {"apps/v1 Deployment", "paused: true, replicas: 2", "paused", "2"},
      {"apps/v1 StatefulSet", "replicas: 0", "no_replicas", ""},
      {"apps/v1 ReplicaSet", "replicas: 0", "no_replicas", ""},
      {"v1 ReplicationController", "replicas: 0", "no_replicas", ""},
      {"example.com/v1 Trainer", "suspend: true", "suspended", "1"},
      {"example.com/v1 Trainer", "replicas: 0", "no_replicas", ""},
      {"example.com/v1 Trainer", "runPolicy: {suspend: true}", "suspended", "1"},
  };
  finish();
  for (const auto& [kind, spec, none, number] : table) {
    const auto template_of =
        std::string("template: {spec: {") + (kind.starts_with("batch") ? "restartPolicy: Never, " : "") + pods;
    const auto blank = kind.find(' ');
    const bool is_cron_job = kind.ends_with("CronJob");
    const auto text =
        "apiVersion: " + kind.substr(0, blank) + "\nkind: " + kind.substr(blank + 1) +
        "\nmetadata: {name: w, namespace: lab}\nspec: {" + spec + ", " +
        (is_cron_job ? "schedule: \"* * * * *\", jobTemplate: {spec: {" + template_of + "}}" : template_of) +
        "}\nstatus: {succeeded: 3}\n";
    out.str("");
    namespace_limits limits;
    EXPECT_EQ(simulate(cluster, limits, in_file(text), {"json", "en"}, out), 0) << text;
    const auto answer = json::parse(out.str());
    EXPECT_EQ(answer["of"], 0) << text;
    ASSERT_EQ(answer["pods"].size(), 1U) << text;
    const auto pods_at_once = number.empty() ? std::string() : number == "1" ? "explain.pods.one" : "explain.pods.many";
    EXPECT_EQ(answer["pods"][0]["why"],
              english("explain.simulate.none." + none,
                      {{"pods", number.empty() ? "" : english(pods_at_once, {{"number", number}})}}))
        << text;
  }
}

/// Cards that a Job still needs: as many as are not completed yet.
TEST_F(placements_test, a_job_that_is_half_done_makes_the_rest) {
  const auto made = [](const std::string& spec, const std::string& status) {
    return in_file("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {" + spec +
                   ", template: {spec: {restartPolicy: Never, containers: [{name: m, image: x}]}}}\nstatus: {" +
                   status + "}\n")
        .size();
  };
  EXPECT_EQ(made("parallelism: 4, completions: 8", ""), 4U);
  EXPECT_EQ(made("parallelism: 4, completions: 8", "succeeded: 6"), 2U);
  for (const auto* type : {"Complete", "Failed"})
    EXPECT_FALSE(in_file("apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: "
                         "{restartPolicy: Never, containers: "
                         "[{name: m, image: x}]}}}\nstatus: {conditions: [{type: " +
                         std::string(type) + ", status: \"True\"}]}\n")
                     .at(0)
                     .is_pod());
}

TEST_F(placements_test, replicas_of_all_that_is_round_a_pod_of_another_kind_count) {
  const auto list = in_file(
      "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: j}\nspec: {replicatedJobs: [{name: w, "
      "replicas: 2, template: {spec: {parallelism: 4, completions: 3, template: {spec: {containers: [{name: m, image: "
      "x}]}}}}}]}\n");
  EXPECT_EQ(list.size(), 6U);
}

TEST_F(placements_test, a_daemon_set_that_no_node_may_take_makes_no_pod) {
  const auto list = in_file(
      "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec: {template: {spec: {nodeSelector: {a: b}, "
      "containers: [{name: m, image: x, resources: {limits: {tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: "
      "4}}}]}}}\n");
  finish();
  namespace_limits limits;
  EXPECT_EQ(simulate(cluster, limits, list, {"json", "en"}, out), 0);
  const auto answer = json::parse(out.str());
  EXPECT_EQ(answer["of"], 0) << answer;
  EXPECT_EQ(answer["pods"][0]["why"], english("explain.simulate.none.no_node"));
}

std::string pod_asking(const kube::quantities& limits) {
  std::string list;
  for (const auto& [key, amount] : limits) list += (list.empty() ? "" : ", ") + key + ": " + std::to_string(amount);
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: lab}\nspec: {containers: [{name: main, image: x, "
         "resources: {limits: {" +
         list + "}}}]}\n";
}

struct refused_limits {
  kube::quantities limits;
  std::string allowed;  ///< the key of what is
};
const refused_limits refused_table[] = {
    {{{"aliyun.com/gpu-mem", 4}, {"aliyun.com/gpu-core.percentage", 7}}, "engine.legal.fives"},
    {{{"aliyun.com/gpu-mem", 7}, {"aliyun.com/gpu-count", 2}}, "engine.refusal.multiples_of_count"},
    {{{"tke.cloud.tencent.com/qgpu-core", 7}, {"tke.cloud.tencent.com/qgpu-memory", 4}}, "engine.legal.fives_or_whole"},
    {{{"tke.cloud.tencent.com/qgpu-core", 250}, {"tke.cloud.tencent.com/qgpu-memory", 4}},
     "engine.legal.fives_or_whole"},
    {{{"volcano.sh/vgpu-number", 1}, {"volcano.sh/vgpu-cores", 150}}, "engine.legal.hundred_or_none"},
    {{{"volcano.sh/vgpu-number", 1}, {"volcano.sh/vgpu-memory-percentage", 101}}, "engine.legal.percent_of_card"},
    {{{"nvidia.com/gpu", 1}, {"nvidia.com/gpucores", 101}}, "engine.legal.hundred_or_none"},
    {{{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem-percentage", 200}}, "engine.legal.percent_of_card"},
    {{{"nvidia.com/gpu", 1}, {"nvidia.com/priority", 2}}, "engine.legal.flag"},
    {{{"tencent.com/vcuda-core", 150}, {"tencent.com/vcuda-memory", 4}}, "engine.legal.share_or_whole"},
    {{{"nvidia.com/mps-core", 250}, {"nvidia.com/mps-memory", 4}}, "engine.legal.share_or_whole"},
};

/// Also where someone declares a key, and whether or not a node offers it: what its program does not take is refused,
/// with what it takes, and alike by the three that judge.
TEST_F(placements_test, amounts_that_no_node_takes_are_refused_with_what_is_allowed) {
  for (const auto& row : refused_table) {
    auto asking = pod("p" + std::to_string(&row - refused_table), {container("main", {})});
    asking.containers[0].limits = row.limits;
    std::ranges::sort(asking.containers[0].limits);
    cluster.pods.put(asking);
  }
  finish();
  for (const auto& row : refused_table) {
    const auto text = pod_asking(row.limits), allowed = english(row.allowed);
    std::vector<text::yaml::source> files;
    files.push_back(text::yaml::read("pods.yaml", text).value());
    const auto report = lint(files, {});
    const auto refusing = std::ranges::find(report.findings, text::severity::error, &lint_finding::level);
    ASSERT_NE(refusing, report.findings.end()) << text;
    EXPECT_THAT(refusing->message + refusing->allowed, HasSubstr(allowed)) << text;
    const auto tried = in_file(text);
    ASSERT_EQ(tried.size(), 1U) << text;
    EXPECT_THAT(tried[0].refused, HasSubstr(allowed)) << text;
    out.str("");
    EXPECT_EQ(explain("lab/p" + std::to_string(&row - refused_table)), 3);
    EXPECT_THAT(out.str(), HasSubstr(allowed)) << text;
  }
}

TEST_F(placements_test, amounts_that_some_node_takes_are_not_refused) {
  const kube::quantities table[] = {{{"aliyun.com/gpu-mem", 4}, {"aliyun.com/gpu-core.percentage", 15}},
                                    {{"aliyun.com/gpu-mem", 8}, {"aliyun.com/gpu-count", 2}},
                                    {{"tke.cloud.tencent.com/qgpu-core", 95}, {"tke.cloud.tencent.com/qgpu-memory", 4}},
                                    {{"volcano.sh/vgpu-number", 2}, {"volcano.sh/vgpu-cores", 100}},
                                    {{"nvidia.com/gpu", 1}, {"nvidia.com/gpumem-percentage", 50}},
                                    {{"nvidia.com/gpumem", 4096}},
                                    {{"aliyun.com/gpu", 3}},
                                    {{"tencent.com/vcuda-core", 200}},
                                    {{"nvidia.com/gpu.shared", 2}}};
  for (const auto& limits : table) EXPECT_EQ(in_file(pod_asking(limits)).at(0).refused, "") << limits.front().first;
}

/// A file of `inspect --save` has no conditions: nothing is claimed of schedulers.
TEST_F(placements_test, of_a_pod_that_was_not_read_whole_no_scheduler_is_accused) {
  auto waits = share("p", 20, 4);
  waits.scheduler_name = "volcano";
  cluster.pods.put(waits);
  EXPECT_EQ(explain("lab/p"), 0);
  EXPECT_THAT(out.str(), Not(HasSubstr("volcano")));
}

TEST_F(placements_test, nodes_where_the_cards_fit_may_be_closed_to_the_pod) {
  cluster.pods.put(share("p", 20, 4));
  finish();
  const json whole = {{"spec", {{"nodeSelector", {{"zone", "x"}}}}}};
  EXPECT_EQ(explain_pod(cluster, {"lab", "p"}, {}, out, err, described(whole)), 3);
  EXPECT_THAT(out.str(), HasSubstr(english("explain.closed",
                                           {{"nodes", nodes_of(2)},
                                            {"text", english("explain.closed_by.selector", {{"label", "zone=x"}})}})));
}

TEST_F(placements_test, where_all_nodes_with_room_are_closed_the_wait_is_not_for_another_matter) {
  cluster.pods.put(share("p", 20, 4));
  finish();
  const json whole = {{"spec", {{"nodeSelector", {{"quartermaster.io/module", "mps"}}}}}};
  EXPECT_EQ(explain_pod(cluster, {"lab", "p"}, {}, out, err, described(whole)), 3);
  EXPECT_THAT(out.str(), HasSubstr(begin_of("explain.closed", "nodes")));
  EXPECT_THAT(out.str(), Not(HasSubstr(begin_of("explain.not_cards", "command"))));
}

/// lint, explain pod and the operator's event judge by quota::faults_of.
TEST_F(placements_test, what_no_node_takes_is_named_as_lint_names_it) {
  cluster.pods.put(pod("mixed", {container("main", {{"nvidia.com/gpualloc", 1}, {"tencent.com/vcuda-core", 200}})}));
  cluster.pods.put(pod("lonely", {container("main", {{"nvidia.com/gpumem", 4096}})}));
  cluster.pods.put(
      pod("bytes", {container("main", {{"nvidia.com/gpualloc", 1}, {"nvidia.com/gpumem", std::int64_t{4} << 30}})}));
  const auto first_obstacle = [&](const std::string& name) {
    out.str("");
    EXPECT_EQ(explain(name, "json"), 3) << name;
    return json::parse(out.str())["obstacles"].at(0);
  };
  const auto obstacle = [](const std::string& text) {
    return json{{"code", "amounts"}, {"text", english("explain.obstacle.amounts", {{"name", "main"}, {"text", text}})}};
  };
  EXPECT_EQ(first_obstacle("lab/mixed"),
            obstacle(english("engine.refusal.two_modes",
                             {{"key", "tencent.com/vcuda-core"}, {"other", "nvidia.com/gpualloc"}})));
  EXPECT_EQ(first_obstacle("lab/lonely"),
            obstacle(english("engine.refusal.needs_partner",
                             {{"key", "nvidia.com/gpumem"}, {"amount", "4096"}, {"other", "nvidia.com/gpualloc"}})));
  EXPECT_EQ(first_obstacle("lab/bytes"),
            obstacle(english(
                "engine.refusal.unit",
                {{"wrong", english("engine.refusal.amount", {{"key", "nvidia.com/gpumem"}, {"amount", "4294967296"}})},
                 {"unit", "MiB"},
                 {"number", "4096"}})));
  const auto codes = [](const std::string& limits) {
    std::vector<text::yaml::source> files;
    files.push_back(text::yaml::read("p.yaml",
                                     "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: main, "
                                     "image: i, resources: {limits: {" +
                                         limits + "}}}]}\n")
                        .value());
    std::vector<std::string> out;
    for (const auto& finding : lint(files, {}).findings) out.emplace_back(finding.code);
    return out;
  };
  EXPECT_THAT(codes("nvidia.com/gpualloc: 1, tencent.com/vcuda-core: 200"), testing::Contains("modes_mixed"));
  EXPECT_THAT(codes("nvidia.com/gpumem: 4096"), testing::Contains("count_missing"));
  EXPECT_THAT(codes("nvidia.com/gpualloc: 1, nvidia.com/gpumem: 4Gi"), testing::Contains("amount_in_bytes"));
}

TEST_F(placements_test, more_than_the_largest_node_has_is_not_called_taken) {
  cluster.pods.put(pod("p", {container("main", {{"tencent.com/vcuda-core", 900}})}));
  EXPECT_EQ(explain("lab/p"), 3);
  EXPECT_THAT(out.str(), HasSubstr(english("engine.reason.too_small")));
  EXPECT_THAT(out.str(), HasSubstr(english("engine.answer.largest.cards", {{"needed", "9"}, {"available", "1"}})));
  EXPECT_THAT(out.str(), Not(HasSubstr(english("engine.reason.whole_cards"))));
  out.str("");
  explain("lab/p", "json");
  const auto cause = json::parse(out.str())["explanation"]["causes"].at(0);
  EXPECT_EQ(cause["tooSmall"], true);
  EXPECT_EQ(cause["needed"], 9);
  EXPECT_EQ(cause["largest"], 1);
}

TEST_F(placements_test, a_pod_that_is_deleted_before_it_has_a_node_waits_for_nothing) {
  auto leaving = share("p", 20, 4);
  leaving.deleting = true;
  cluster.pods.put(leaving);
  finish();
  auto whole = described({{"metadata", {{"deletionTimestamp", "2026-01-01T00:00:30Z"}, {"finalizers", {"a.b/c"}}}}});
  EXPECT_EQ(explain_pod(cluster, {"lab", "p"}, {}, out, err, whole), 3);
  EXPECT_THAT(out.str(), testing::StartsWith(english("explain.leaves", {{"pod", "lab/p"}})));
  EXPECT_THAT(out.str(), HasSubstr("a.b/c"));
  out.str("");
  EXPECT_EQ(explain_pod(cluster, {"lab", "p"}, {"json", "en"}, out, err, whole), 3);
  const auto answer = json::parse(out.str());
  EXPECT_EQ(answer["waits"], false);
  EXPECT_EQ(answer["obstacles"].size(), 1u);
  EXPECT_EQ(answer["obstacles"].at(0)["code"], "deleted");
}

TEST_F(placements_test, where_only_closed_nodes_have_room_the_open_ones_are_explained) {
  cluster.nodes.put(extender_test::node("full", {{"quartermaster.io/module", "vgpu"}, {"zone", "x"}},
                                        {{"tencent.com/vcuda-core", 100}, {"tencent.com/vcuda-memory", 64}}));
  cluster.pods.put(share("there", 90, 8, "full"));
  cluster.pods.put(share("p", 20, 4));
  finish();
  const json whole = {{"spec", {{"nodeSelector", {{"zone", "x"}}}}}};
  EXPECT_EQ(explain_pod(cluster, {"lab", "p"}, {.output = "json"}, out, err, described(whole)), 3);
  const auto answer = json::parse(out.str());
  EXPECT_EQ(answer["explanation"]["fitting"], 0) << answer;
  EXPECT_EQ(answer["closed"].size(), 1u);
  out.str("");
  EXPECT_EQ(explain_pod(cluster, {"lab", "p"}, {}, out, err, described(whole)), 3);
  EXPECT_THAT(out.str(), HasSubstr(english("engine.reason.cores")));
}

TEST_F(placements_test, a_label_that_no_node_has_is_the_first_reason) {
  cluster.pods.put(share("p", 20, 4));
  cluster.pods.put(share("large", 20, 4000));
  finish();
  const auto reason = [](const std::string& label, const std::string& others) {
    return english("explain.obstacle.selector", {{"label", label}, {"others", others}});
  };
  const auto answer = [&](const std::string& name, const json& selector) {
    out.str("");
    EXPECT_EQ(explain_pod(cluster, {"lab", name}, {}, out, err, described({{"spec", {{"nodeSelector", selector}}}})),
              3);
    return out.str();
  };
  const auto near = english("explain.obstacle.selector_others", {{"list", "quartermaster.io/module=vgpu"}});
  for (const std::string name : {"p", "large"}) {
    const auto both = answer(name, {{"zone", "x"}, {"quartermaster.io/module", "pgpu"}});
    EXPECT_THAT(both, HasSubstr(reason("zone=x", "") + "\n"));
    EXPECT_THAT(both, HasSubstr(reason("quartermaster.io/module=pgpu", near) + "\n"));
  }
  EXPECT_LT(answer("large", {{"zone", "x"}}).find("zone=x"), out.str().find(english("engine.reason.memory")));
  EXPECT_THAT(answer("large", {{"quartermaster.io/module", "vgpu"}}), Not(HasSubstr("nodeSelector")));
  for (const std::string key : {"nvidia.com/gpu.product", "node.kubernetes.io/instance-type", "kubernetes.io/arch"})
    EXPECT_THAT(answer("p", {{key, "x"}}),
                HasSubstr(english("explain.obstacle.measured_selector", {{"label", key + "=x"}, {"others", ""}})));
  for (const std::string key : {"nvidia.com", "mynvidia.com/x"})
    EXPECT_THAT(answer("p", {{key, "x"}}), HasSubstr(reason(key + "=x", "")));
}

TEST_F(placements_test, annotations_that_choose_no_card_of_the_cluster_are_the_smallest_change) {
  auto choosy = share("choosy", 20, 4), large = share("large", 20, 4000);
  for (auto* pod : {&choosy, &large}) {
    pod->annotations = kube::packed_map::of({{"gaia.tencent.com/gpu-model", "H100"}, {"quartermaster.io/note", "x"}});
    cluster.pods.put(*pod);
  }
  finish();
  const auto change =
      english("explain.without_annotations", {{"list", "gaia.tencent.com/gpu-model"}, {"nodes", nodes_of(2)}});
  EXPECT_EQ(explain("lab/choosy"), 3);
  const auto proposal = english("explain.proposal.sentence", {{"text", change}});
  EXPECT_THAT(out.str(), HasSubstr(english("explain.of_pod", {{"change", proposal}})));
  out.str("");
  EXPECT_EQ(explain("lab/large"), 3);
  EXPECT_THAT(out.str(), Not(HasSubstr("gaia.tencent.com/gpu-model")));
  out.str("");
  const tried_pod list[] = {tried(choosy)};
  EXPECT_EQ(simulate(cluster, limits, list, {"json", "en"}, out), 3);
  EXPECT_THAT(json::parse(out.str())["pods"][0].value("why", ""), HasSubstr(change));
}

TEST_F(placements_test, a_pod_that_has_ended_says_how) {
  auto failed = share("failed", 20, 4, "a");
  failed.phase = kube::pod_phase::failed;
  failed.reason = "UnexpectedAdmissionError";
  cluster.pods.put(failed);
  auto done = share("done", 20, 4, "a");
  done.phase = kube::pod_phase::succeeded;
  cluster.pods.put(done);
  EXPECT_EQ(explain("lab/failed"), 3);
  EXPECT_THAT(out.str(), HasSubstr(english("explain.ended_on", {{"pod", "lab/failed"}, {"node", "a"}}) + "\n" +
                                   english("explain.obstacle.failed_with", {{"cause", "UnexpectedAdmissionError"}}) +
                                   "\n" + english("explain.obstacle.rejected.for_good", {{"node", "a"}})));
  out.str("");
  const json whole = {{"status", {{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "low on\x1b disk"}}}};
  EXPECT_EQ(explain_pod(cluster, {"lab", "failed"}, {}, out, err, described(whole)), 3);
  EXPECT_THAT(out.str(), AllOf(HasSubstr("Evicted: low on"), Not(HasSubstr("\x1b"))));
  out.str("");
  EXPECT_EQ(explain("lab/done"), 0);
  EXPECT_THAT(out.str(), HasSubstr(english("explain.obstacle.ended_well")));
}

/// The kubelet's own messages, as 1.30 and 1.36 write them.
constexpr auto taken_devices =
    "Pod was rejected: Allocate failed due to requested number of devices unavailable for tencent.com/vcuda-core. "
    "Requested: 20, Available: 0, which is unexpected";
constexpr auto refused_by_plugin =
    "Allocate failed due to rpc error: code = Unknown desc = card GPU-7 is sick, which is unexpected";
constexpr auto refused_start =
    "device plugin PreStartContainer rpc failed with err: rpc error: code = FailedPrecondition desc = no MPS daemon";

TEST_F(placements_test, a_pod_that_its_kubelet_rejected_says_why_and_how_there_will_be_another) {
  auto rejected = share("r", 20, 4, "a");
  rejected.phase = kube::pod_phase::failed;
  cluster.pods.put(rejected);
  finish();
  const auto answer = [&](const std::string& reason, const std::string& message, const json& owners = json::array()) {
    const json whole = {{"metadata", {{"namespace", "lab"}, {"ownerReferences", owners}}},
                        {"spec", {{"nodeName", "a"}}},
                        {"status", {{"phase", "Failed"}, {"reason", reason}, {"message", message}}}};
    out.str("");
    EXPECT_EQ(explain_pod(cluster, {"lab", "r"}, {}, out, err, described(whole)), 3);
    return out.str();
  };
  const auto words = [](const std::string& key, std::initializer_list<text::parameter> parameters) {
    return english("explain.obstacle.rejected." + key, parameters) + "\n";
  };
  const auto good = words("for_good", {{"node", "a"}});
  const auto bare = words("bare", {{"namespace", "lab"}, {"name", "p"}});
  EXPECT_THAT(answer("UnexpectedAdmissionError", taken_devices),
              HasSubstr(good + words("unavailable", {{"key", "tencent.com/vcuda-core"}, {"node", "a"}}) + bare));
  const json owner = {{"kind", "Job"}, {"name", "train"}, {"uid", "u"}, {"controller", true}};
  EXPECT_THAT(answer("UnexpectedAdmissionError", refused_by_plugin, json::array({owner})),
              HasSubstr(good + words("by_plugin", {{"text", "card GPU-7 is sick"}, {"node", "a"}}) +
                        words("owned", {{"owner", "Job train"}, {"namespace", "lab"}, {"name", "p"}})));
  EXPECT_THAT(answer("TopologyAffinityError", "not aligned"),
              HasSubstr(good + words("look", {{"node", "a"}, {"reason", "TopologyAffinityError"}}) + bare));
  EXPECT_THAT(answer("OutOftencent.com/vcuda-core", "not enough"), HasSubstr(good + bare));
  EXPECT_THAT(answer("Evicted", "low on memory"), Not(HasSubstr(good)));
}

/// The kubelet keeps such a pod, and asks the plugin again.
TEST_F(placements_test, a_start_that_the_plugin_refuses_is_said_with_its_sentence) {
  cluster.pods.put(share("s", 20, 4, "a"));
  finish();
  const json waiting = {{"reason", "CreateContainerConfigError"}, {"message", refused_start}};
  const json status = {{"name", "main"}, {"state", {{"waiting", waiting}}}};
  const json whole = {{"metadata", {{"namespace", "lab"}}},
                      {"spec", {{"nodeName", "a"}}},
                      {"status", {{"phase", "Pending"}, {"containerStatuses", json::array({status})}}}};
  EXPECT_EQ(explain_pod(cluster, {"lab", "s"}, {}, out, err, described(whole)), 0);
  EXPECT_THAT(out.str(), HasSubstr(english("explain.obstacle.start_refused",
                                           {{"node", "a"}, {"name", "main"}, {"text", "no MPS daemon"}})));
}

TEST_F(placements_test, what_the_old_config_map_of_quotas_refuses_is_shown_where_it_stands) {
  kube::config_map old;
  old.key = {"kube-system", "gpuquota"};
  old.data = kube::packed_map::of({{"gpu_quota", R"({"lab": {"quota": {"Tesla-T4": 0}}})"}});
  cluster.old_quotas.put(old);
  cluster.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p"), 3);
  EXPECT_THAT(out.str(), HasSubstr("kubectl get configmap -n kube-system gpuquota -o yaml"));
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("acceleratorquota")));
}

TEST_F(placements_test, an_old_config_map_of_quotas_that_cannot_be_read_is_said) {
  kube::config_map old;
  old.key = {"kube-system", "gpuquota"};
  old.data = kube::packed_map::of({{"gpu_quota", R"({"lab": 3})"}});
  cluster.old_quotas.put(old);
  cluster.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p"), 0);
  EXPECT_THAT(err.str(),
              HasSubstr(english(
                  "explain.doubt.old_quotas",
                  {{"text", english("list.quotation",
                                    {{"text", R"(lab is no object; allowed is {"quota": {...}, "pool": [...]})"}})}})));
}

TEST_F(placements_test, room_that_is_kept_for_a_nominated_pod_is_named) {
  auto urgent = share("urgent", 90, 8);
  urgent.nominated_node = {"a"};
  urgent.priority = 7;
  cluster.pods.put(urgent);
  cluster.pods.put(share("p", 20, 4));
  const auto kept = english("explain.kept", {{"node", "a"}, {"pod", "lab/urgent"}});
  EXPECT_EQ(explain("lab/p"), 0) << "there is node b";
  EXPECT_THAT(out.str(), HasSubstr(english("explain.has_made_room", {{"text", kept}})));
  cluster.nodes.erase(vgpu_node("b", 1));
  out.str("");
  EXPECT_EQ(explain("lab/p"), 3);
  EXPECT_THAT(out.str(), testing::Not(HasSubstr(begin_of("explain.not_cards", "command"))));
  out.str("");
  EXPECT_EQ(explain("lab/p", "json"), 3);
  EXPECT_EQ(json::parse(out.str())["kept"], json({kept}));
}

TEST_F(placements_test, as_json_the_same) {
  cluster.pods.put(share("there", 90, 60, "a"));
  cluster.pods.put(share("there2", 90, 60, "b"));
  cluster.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p", "json"), 3);
  const auto read = json::parse(out.str());
  EXPECT_EQ(read["waits"], true);
  EXPECT_EQ(read["explanation"]["fitting"], 0);
  EXPECT_EQ(read["explanation"]["causes"][0]["container"], "main");
  EXPECT_TRUE(read["explanation"]["changeOfPod"].is_string());
  EXPECT_TRUE(read["quota"].is_null());
}

TEST_F(placements_test, a_bound_pod_says_what_it_holds) {
  cluster.pods.put(share("there", 90, 60, "a"));
  EXPECT_EQ(explain("lab/there"), 0);
  EXPECT_THAT(out.str(), HasSubstr("a/0"));
  EXPECT_THAT(out.str(), HasSubstr(english("explain.share", {{"cores", "90"}, {"memory", "15360"}})));
  EXPECT_THAT(out.str(), HasSubstr(english("explain.bound_guessed",
                                           {{"pod", "lab/there"}, {"node", "a"}, {"scheduler", "default-scheduler"}})));
  EXPECT_THAT(out.str(), testing::Not(HasSubstr(begin_of("explain.over_given", "text"))));
}

TEST_F(placements_test, a_card_is_called_overfull_from_the_first_mebibyte_more) {
  cluster.pods.put(share("there", 50, 32, "a"));
  cluster.pods.put(share("beside", 50, 32, "a"));
  cluster.pods.put(share("over", 50, 32, "b"));
  cluster.pods.put(share("more", 50, 33, "b"));
  EXPECT_EQ(explain("lab/there", "json"), 0);
  EXPECT_EQ(json::parse(out.str())["overGiven"], json::array()) << "16384 MiB of 16384";
  out.str("");
  EXPECT_EQ(explain("lab/over", "json"), 0);
  EXPECT_THAT(json::parse(out.str())["overGiven"].dump(),
              HasSubstr(english("explain.over_memory", {{"card", "b/0"}, {"amount", "16640"}, {"all", "16384"}})));
}

TEST_F(placements_test, cards_that_an_agent_reports_move_no_cursor) {
  for (const auto* node : {"a", "b"})
    cluster.cards.put(extender_test::reported(
        node, {{{"uuid", "GPU-\x1b[2J"}, {"index", 0}, {"memoryMiB", 16384}, {"health", "Healthy"}}}));
  cluster.pods.put(share("there", 90, 60, "a"));
  cluster.pods.put(share("p", 90, 80));
  EXPECT_EQ(explain("lab/there"), 0);
  EXPECT_EQ(explain("lab/p"), 3);
  const std::vector<tried_pod> more{tried(share("q", 10, 1))};
  EXPECT_EQ(simulate(cluster, limits, more, {"text", "en"}, out), 0);
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("\x1b")));
  EXPECT_THAT(out.str(), HasSubstr("GPU-\\u{1b}[2J"));
}

TEST_F(placements_test, says_why_a_pod_has_these_cards) {
  const auto planned = [](const kube::pod& pod, const std::string& node, const json& cards) {
    return extender_test::annotated(
        pod, {{"quartermaster.io/placement",
               json{{"v", 1}, {"node", node}, {"source", "planned"}, {"containers", {{"main", cards}}}}.dump()}});
  };
  cluster.nodes.put(extender_test::node("m", {{"quartermaster.io/module", "mps"}},
                                        {{"nvidia.com/mps-core", 200}, {"nvidia.com/mps-memory", 32}}));
  cluster.nodes.put(extender_test::node("p", {{"quartermaster.io/module", "pgpu"}}, {{"nvidia.com/gpu", 4}}));
  // 0 and 1 are joined by NVLink, as are 2 and 3.
  cluster.cards.put(extender_test::reported(
      "p", {{{"uuid", "GPU-0"}, {"index", 0}, {"numa", 0}, {"links", {"X", "NV4 PIX", "SYS", "SYS"}}},
            {{"uuid", "GPU-1"}, {"index", 1}, {"numa", 0}, {"links", {"NV4 PIX", "X", "SYS", "SYS"}}},
            {{"uuid", "GPU-2"}, {"index", 2}, {"numa", 1}, {"links", {"SYS", "SYS", "X", "NV4 PIX"}}},
            {{"uuid", "GPU-3"}, {"index", 3}, {"numa", 1}, {"links", {"SYS", "SYS", "NV4 PIX", "X"}}}}));
  const auto whole = [](const char* card) { return json{{"card", card}, {"whole", true}}; };
  const auto gpus = [](const char* name) { return pod(name, {container("main", {{"nvidia.com/gpu", 2}})}, "p"); };
  cluster.pods.put(planned(gpus("near"), "p", {whole("GPU-2"), whole("GPU-3")}));
  EXPECT_EQ(explain("lab/near"), 0);
  const auto of_main = [](const std::string& text) {
    return english("why_cards.of_container", {{"name", "main"}, {"text", text}});
  };
  const auto four_free = english("why_cards.free.many", {{"number", "4"}});
  const auto whole_cards = [](const std::string& links, const std::string& numa, const char* score,
                              const std::string& cause) {
    return english("why_cards.whole_of_plugin", {{"cards", english("why_cards.cards.many", {{"number", "2"}})},
                                                 {"links", english("why_cards.links_alike", {{"first", links}})},
                                                 {"numa", numa},
                                                 {"score", english("why_cards.score", {{"score", score}})},
                                                 {"cause", cause}});
  };
  EXPECT_THAT(out.str(), HasSubstr(of_main(whole_cards("NV4 PIX", english("why_cards.numa.one", {{"list", "1"}}), "450",
                                                       english("why_cards.best", {{"free", four_free}})))));
  cluster.pods.put(
      planned(pod("shared", {container("main", {{"nvidia.com/mps-core", 20}, {"nvidia.com/mps-memory", 4}})}, "m"), "m",
              {{{"card", "m/1"}, {"cores", 20}, {"memoryMiB", 4096}}}));
  EXPECT_EQ(explain("lab/shared"), 0);
  EXPECT_THAT(
      out.str(),
      HasSubstr(of_main(english("why_cards.packed",
                                {{"shares", english("why_cards.shares.many", {{"number", "0"}})}, {"numa", ""}}))));
  std::ostringstream answer;
  EXPECT_EQ(explain_pod(cluster, {"lab", "shared"}, {"text", "zh"}, answer, err), 0);
  const auto packed = words::chinese(
      "why_cards.packed", {{"shares", words::chinese("why_cards.shares.many", {{"number", "0"}})}, {"numa", ""}});
  EXPECT_THAT(answer.str(), HasSubstr(words::chinese("why_cards.of_container", {{"name", "main"}, {"text", packed}})));
  EXPECT_FALSE(words::has_english_sentence(answer.str())) << answer.str();
  cluster.pods.erase(*cluster.pods.find({"lab", "near"}));
  cluster.pods.put(planned(gpus("far"), "p", {whole("GPU-0"), whole("GPU-2")}));
  EXPECT_EQ(explain("lab/far"), 0);
  EXPECT_THAT(
      out.str(),
      HasSubstr(of_main(whole_cards("SYS", english("why_cards.numa.many", {{"list", "0, 1"}}), "10",
                                    english("why_cards.better_now", {{"free", four_free}, {"score", "450"}})))));
}

TEST_F(placements_test, a_card_with_more_given_out_than_it_has_is_named) {
  cluster.pods.put(share("there", 90, 60, "a"));
  cluster.pods.put(share("forced", 90, 60, "a"));
  EXPECT_EQ(explain("lab/there"), 0);
  EXPECT_THAT(
      out.str(),
      HasSubstr(english(
          "explain.over_given",
          {{"text", english("explain.over_memory", {{"card", "a/0"}, {"amount", "30720"}, {"all", "16384"}})}})));
}

TEST_F(placements_test, S1_nodes_with_an_old_report_are_named) {
  api::accelerator_node report;
  report.key.name = "a";
  report.agent_reporting = "False";
  cluster.cards.put(report);
  cluster.pods.put(share("there", 90, 60, "a"));
  cluster.pods.put(share("elsewhere", 90, 60, "b"));
  cluster.pods.put(share("p", 20, 4));
  const auto sentence = english("explain.old_report", {{"list", "a"}}) + "\n";
  EXPECT_EQ(explain("lab/there"), 0);
  EXPECT_THAT(out.str(), HasSubstr(sentence));
  out.str("");
  EXPECT_EQ(explain("lab/p"), 3);
  EXPECT_THAT(out.str(), HasSubstr(sentence));
  out.str("");
  EXPECT_EQ(explain("lab/elsewhere"), 0);
  EXPECT_THAT(out.str(), testing::Not(HasSubstr(begin_of("explain.old_report", "list"))));
  out.str("");
  EXPECT_EQ(explain("lab/there", "json"), 0);
  EXPECT_EQ(json::parse(out.str())["oldReports"], json({"a"}));
}

TEST_F(placements_test, what_is_not_cards_is_said_to_be_the_schedulers) {
  cluster.pods.put(pod("plain", {container("main", {})}));
  cluster.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/plain"), 0);
  EXPECT_THAT(out.str(), HasSubstr("kubectl describe pod -n lab plain"));
  EXPECT_EQ(explain("lab/p"), 0);
  EXPECT_THAT(out.str(), HasSubstr(begin_of("explain.not_cards", "command")));
  EXPECT_EQ(explain("lab/none"), 1);
  EXPECT_THAT(err.str(), HasSubstr(english("explain.no_pod", {{"name", "none"}, {"namespace", "lab"}})));
}

TEST_F(placements_test, what_kube_scheduler_refused_for_want_of_cards_that_are_there_now_is_no_other_matter) {
  cluster.pods.put(share("p", 20, 4));
  finish();
  const auto line_for = [&](const std::string& message, const char* status = "False") {
    out.str("");
    const json condition{
        {"type", "PodScheduled"}, {"status", status}, {"reason", "Unschedulable"}, {"message", message}};
    const auto whole = described({{"status", {{"conditions", json::array({condition})}}}});
    EXPECT_EQ(explain_pod(cluster, {"lab", "p"}, {}, out, err, whole), 0);
    return out.str();
  };
  const auto again = begin_of("explain.refused_before", "key"), other = begin_of("explain.not_cards", "command");
  const auto refused = line_for("0/2 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpualloc.");
  EXPECT_THAT(refused, HasSubstr(english("explain.refused_before", {{"key", "nvidia.com/gpualloc"},
                                                                    {"command", "kubectl describe pod -n lab p"}})));
  EXPECT_THAT(refused, testing::Not(HasSubstr(other)));
  for (const auto* message : {"0/2 nodes are available: 2 Insufficient cpu.", "Insufficient", "Insufficient ", ""})
    EXPECT_THAT(line_for(message), testing::AllOf(HasSubstr(other), testing::Not(HasSubstr(again)))) << message;
}

TEST_F(placements_test, pods_are_simulated_one_after_the_other) {
  cluster.pods.put(share("there", 60, 8, "a"));
  finish();
  const tried_pod list[] = {tried(share("x", 60, 8)), tried(share("y", 60, 8)),
                            tried(pod("z", {container("main", {})}))};
  EXPECT_EQ(simulate(cluster, limits, list, {"json"}, out), 3);
  const auto read = json::parse(out.str());
  EXPECT_EQ(read["pods"][0]["node"], "b");
  EXPECT_EQ(read["pods"][0]["holds"][0]["card"], "b/0");
  EXPECT_TRUE(read["pods"][1]["node"].is_null());
  EXPECT_THAT(read["pods"][1]["why"].get<std::string>(), HasSubstr(english("engine.reason.cores")));
  EXPECT_EQ(read["pods"][2]["asks"], false);
  std::ostringstream table;
  const tried_pod more[] = {tried(share("v", 10, 8)), tried(share("w", 60, 8))};
  simulate(cluster, limits, more, {}, table);
  EXPECT_THAT(table.str(), HasSubstr(fitting(1, 2)));
}

TEST_F(placements_test, new_pods_tolerate_what_admission_lets_them_tolerate) {
  for (const auto* name : {"a", "b"}) {
    auto node = vgpu_node(name, 1);
    node.taints.push_back({"quartermaster.io/accelerator", "", "NoSchedule"});
    cluster.nodes.put(node);
  }
  finish();
  auto text = [made = 0](const std::string& more, const std::string& labels) mutable {
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: p" + std::to_string(++made) + ", namespace: lab, labels: {" +
           labels + "}}\nspec:\n" + more +
           "  containers:\n  - name: main\n    resources: {limits: {tencent.com/vcuda-core: 20, "
           "tencent.com/vcuda-memory: 4}}\n";
  };
  EXPECT_EQ(simulate(cluster, limits, in_file(text("", "")), {"json", "en"}, out), 0) << out.str();
  EXPECT_EQ(simulate(cluster, limits, in_file(text("  schedulerName: quartermaster\n", "")), {"json", "en"}, out), 0);
  EXPECT_NE(simulate(cluster, limits, in_file(text("  schedulerName: other\n", "")), {"json", "en"}, out), 0);
  EXPECT_NE(simulate(cluster, limits, in_file(text("", "quartermaster.io/scheduler: ignore")), {"json", "en"}, out), 0);
}

TEST_F(placements_test, a_node_of_another_mode_is_no_invalid_request) {
  finish();
  const std::vector<tried_pod> pods{tried(pod("p", {container("main", {{"nvidia.com/gpu", 1}})}))};
  EXPECT_NE(simulate(cluster, limits, pods, {"json", "en"}, out), 0);
  EXPECT_THAT(out.str(), HasSubstr(english("explain.simulate.nodes",
                                           {{"nodes", nodes_of(2)}, {"text", other_mode("vgpu", "nvidia.com/gpu")}})));
  EXPECT_THAT(out.str(), testing::Not(HasSubstr(english("engine.reason.refused"))));
}

TEST_F(placements_test, what_a_quota_refuses_does_not_fit) {
  const json spec{{"hard", {{{"units", "cards"}, {"max", 1}}}}};
  cluster.quotas.put(*api::accelerator_quota::decode(
      json{{"metadata", {{"name", "q"}, {"namespace", "lab"}}}, {"spec", spec}}.dump()));
  finish();
  const tried_pod list[] = {tried(share("x", 10, 8)), tried(share("y", 10, 8))};
  EXPECT_EQ(simulate(cluster, limits, list, {}, out), 3);
  EXPECT_THAT(out.str(), HasSubstr(fitting(1, 2)));
  EXPECT_THAT(out.str(), HasSubstr("cards"));
}

TEST_F(placements_test, S14_a_quota_that_nobody_enforces_counts_and_is_named) {
  const auto put = [&](const char* is) {
    cluster.quotas.put(*api::accelerator_quota::decode(
        json{{"metadata", {{"name", "q"}, {"namespace", "lab"}, {"uid", "q"}}},
             {"spec", {{"hard", {{{"units", "cards"}, {"max", 1}}}}}},
             {"status", {{"conditions", {{{"type", "Enforced"}, {"status", is}, {"message", "no one asks"}}}}}}}
            .dump()));
  };
  const auto print_doubts = [&](const std::set<std::string>& namespaces) {
    std::ostringstream text;
    say_doubts(cluster, namespaces, text::language::en, text);
    return text.str();
  };
  put("False");
  finish();
  EXPECT_EQ(print_doubts({"lab"}),
            "quartermaster: " +
                english("explain.doubt.quota",
                        {{"name", "lab/q"}, {"text", english("list.quotation", {{"text", "no one asks"}})}}) +
                "\n");
  EXPECT_EQ(print_doubts({"other"}), "");
  put("True");
  EXPECT_EQ(print_doubts({"lab"}), "");
}

TEST_F(placements_test, a_key_that_no_node_offers_and_nobody_declares_fits_nowhere) {
  cluster.nodes.put(extender_test::node("c", {}, {{"nvidia.com/gpu", 1}, {"rdma/hca", 4}}));
  cluster.pods.put(pod("typo", {container("main", {{"nvidia.com/gpus", 1}})}));
  EXPECT_EQ(explain("lab/typo"), 3);
  const auto message = english("explain.no_offer_with_hint", {{"key", "nvidia.com/gpus"}, {"hint", "nvidia.com/gpu"}});
  EXPECT_THAT(out.str(), HasSubstr(english("explain.fits_nowhere", {{"pod", "lab/typo"}, {"text", message}})));
  std::ostringstream as_json;
  const tried_pod list[] = {tried(pod("x", {container("main", {{"nvidia.com/gpus", 1}})})),
                            tried(pod("y", {container("main", {{"tencent.com/vcuda-cores", 10}})})),
                            tried(pod("z", {container("main", {{"rdma/hca", 1}})})),
                            tried(pod("none", {container("main", {{"nvidia.com/gpus", 0}})}))};
  EXPECT_EQ(simulate(cluster, limits, list, {"json"}, as_json), 3);
  const auto read = json::parse(as_json.str());
  EXPECT_EQ(read["fitting"], 2) << "what a node offers is the scheduler's to judge";
  EXPECT_EQ(read["pods"][0]["why"], message);
  EXPECT_EQ(read["pods"][1]["why"], english("explain.no_offer_with_hint",
                                            {{"key", "tencent.com/vcuda-cores"}, {"hint", "tencent.com/vcuda-core"}}));
}

TEST_F(placements_test, pods_that_run_are_not_tried_again) {
  cluster.pods.put(share("there", 90, 60, "a"));
  finish();
  const auto list = in_file(R"(
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Pod, metadata: {name: there, namespace: lab}, spec: {nodeName: a, containers: [
    {name: main, resources: {limits: {tencent.com/vcuda-core: "90", tencent.com/vcuda-memory: "60"}}}]}, status: {phase: Running}}
- {apiVersion: v1, kind: Pod, metadata: {name: ended, namespace: lab}, spec: {nodeName: a, containers: [
    {name: main, resources: {limits: {tencent.com/vcuda-core: "90", tencent.com/vcuda-memory: "60"}}}]}, status: {phase: Succeeded}}
- {apiVersion: v1, kind: Pod, metadata: {name: waits, namespace: lab}, spec: {containers: [
    {name: main, resources: {limits: {tencent.com/vcuda-core: "90", tencent.com/vcuda-memory: "60"}}}]}, status: {phase: Pending}}
)");
  EXPECT_EQ(simulate(cluster, limits, list, {}, out), 0) << out.str();
  EXPECT_THAT(out.str(), HasSubstr(english("explain.simulate.there")));
  EXPECT_THAT(out.str(), HasSubstr(fitting(2, 2)));
}

TEST_F(placements_test, a_limit_of_one_model_does_not_hide_the_nodes_of_another) {
  const auto of_model = [](const std::string& name, const std::string& model) {
    return extender_test::node(name, {{"nvidia.com/gpu.product", model}}, {{"nvidia.com/gpu", 1}});
  };
  cluster.nodes.put(of_model("t", "T4"));
  cluster.nodes.put(of_model("u", "A100"));
  const json spec{{"hard", {{{"units", "cores"}, {"model", "T4"}, {"max", 0}}}}};
  cluster.quotas.put(*api::accelerator_quota::decode(
      json{{"metadata", {{"name", "q"}, {"namespace", "lab"}}}, {"spec", spec}}.dump()));
  finish();
  const tried_pod list[] = {tried(pod("x", {container("main", {{"nvidia.com/gpu", 1}})}))};
  EXPECT_EQ(simulate(cluster, limits, list, {"json"}, out), 0) << out.str();
  EXPECT_EQ(json::parse(out.str())["pods"][0]["node"], "u");
}

TEST_F(placements_test, S60_labels_of_a_pod_in_a_file_count) {
  cluster.nodes.put(extender_test::node("g", {{"ack.node.gpu.schedule", "share"}},
                                        {{"aliyun.com/gpu-mem", 32}, {"aliyun.com/gpu-count", 2}}));
  finish();
  const auto list = in_file(R"(
apiVersion: apps/v1
kind: Deployment
metadata: {name: two, namespace: lab}
spec: {replicas: 1, template: {metadata: {labels: {aliyun.com/gpu-count: "2"}}, spec: {containers: [
    {name: main, resources: {limits: {aliyun.com/gpu-mem: "20"}}}]}}}
)");
  EXPECT_EQ(simulate(cluster, limits, list, {"json"}, out), 0) << out.str();
  EXPECT_EQ(json::parse(out.str())["pods"][0]["holds"].size(), 2u);
}

TEST_F(placements_test, node_selectors_affinity_and_taints_are_held) {
  auto tainted = vgpu_node("c", 1);
  tainted.taints = {{"dedicated", "gpu", "NoSchedule"}, {"soft", "", "PreferNoSchedule"}};
  cluster.nodes.put(tainted);
  finish();
  const auto attempt = [&](const char* name, const json& spec) { return tried(share(name, 10, 8), spec); };
  const auto match = [](const json& requirement) {
    return json{{"affinity",
                 {{"nodeAffinity",
                   {{"requiredDuringSchedulingIgnoredDuringExecution",
                     {{"nodeSelectorTerms", json::array({{{"matchExpressions", json::array({requirement})}}})}}}}}}}};
  };
  const tried_pod list[] = {
      attempt("nowhere", {{"nodeSelector", {{"kubernetes.io/hostname", "nowhere"}}}}),
      attempt("affinity", match({{"key", "quartermaster.io/module"}, {"operator", "NotIn"}, {"values", {"vgpu"}}})),
      attempt("to-c", {{"nodeName", "c"}}),
      attempt("tolerates",
              {{"nodeName", "c"}, {"tolerations", {{{"key", "dedicated"}, {"operator", "Equal"}, {"value", "gpu"}}}}}),
      attempt("matches", match({{"key", "quartermaster.io/module"}, {"operator", "Exists"}})),
  };
  EXPECT_EQ(simulate(cluster, limits, list, {"json"}, out), 3);
  const auto read = json::parse(out.str())["pods"];
  const auto reason = [&](std::size_t i) { return read[i].value("why", ""); };
  const auto closed = [](std::size_t number, const std::string& text) {
    return english("explain.simulate.nodes", {{"nodes", nodes_of(number)}, {"text", text}});
  };
  EXPECT_EQ(reason(0), closed(3, english("explain.closed_by.selector", {{"label", "kubernetes.io/hostname=nowhere"}})));
  EXPECT_EQ(reason(1), closed(3, english("explain.closed_by.affinity")));
  EXPECT_THAT(reason(2),
              HasSubstr(closed(1, english("explain.closed_by.taint", {{"taint", "dedicated=gpu:NoSchedule"}}))));
  EXPECT_EQ(read[3]["node"], "c");
  EXPECT_EQ(read[4]["node"], "a");
}

TEST_F(placements_test, a_pod_is_named_as_kubectl_has_it) {
  const auto named = [](const std::string& text, const std::string& ns) {
    const auto target = pod_named(text, ns);
    return target ? target->kind + (target->kind.empty() ? "" : " ") + target->key.to_string()
                  : "wrong: " + words::line_of(target.error());
  };
  EXPECT_EQ(named("big", "lab"), "lab/big");
  EXPECT_EQ(named("pod/big", "lab"), "lab/big");
  const std::string longest(253, 'a');
  EXPECT_EQ(named(longest, "lab"), "lab/" + longest) << "a pod's name may have labels of more than 63 characters";
  EXPECT_EQ(named("pods/big", ""), "default/big");
  EXPECT_EQ(named("lab/big", ""), "lab/big");
  EXPECT_EQ(named("lab/big", "lab"), "lab/big");
  EXPECT_EQ(named("lab/big", "other"),
            "wrong: explain.pod_name.two_namespaces{namespace=lab,other=other,text=lab/big}");
  EXPECT_EQ(named("deploy/web", "lab"), "Deployment lab/web");
  EXPECT_EQ(named("jobs/train", ""), "Job default/train");
  EXPECT_EQ(named("node/a", ""), "wrong: explain.pod_name.a_node{node=a,text=node/a}");
  for (const auto* text : {"", "lab/", "/big", "a/b/c", "a b", "lab/A_B", "\xff"})
    EXPECT_THAT(named(text, "lab"), HasSubstr("wrong: explain.pod_name.none")) << text;
}

TEST_F(placements_test, of_what_makes_pods_one_that_waits_is_explained) {
  const auto made = [this](const char* name, const char* kind, const char* owner, const char* node) {
    auto made_pod = pod(name, {container("main", {{"nvidia.com/gpu", 1}})});
    made_pod.owners = {{kind, owner, {}, true}};
    made_pod.node_name = node;
    cluster.pods.put(made_pod);
  };
  made("web-1-a", "ReplicaSet", "web-1", "n");
  made("web-2-a", "ReplicaSet", "web-2", "");
  made("web-2-b", "ReplicaSet", "web-2", "");
  made("web-old-3-a", "ReplicaSet", "web-old-3", "");
  made("train-a", "Job", "train", "n");
  made("nightly-1-a", "Job", "nightly-1", "");
  const auto chosen = [this](const std::string& text) {
    const auto choice = chosen_pod(cluster, *pod_named(text, "lab"), text::language::en);
    return choice ? choice->key.name + "|" + choice->note : "none: " + words_of(choice.error(), text::language::en);
  };
  const auto one_of = [](const char* kind, const char* name, const char* number, const char* waiting, const char* pod) {
    return std::string(pod) + "|" +
           english("explain.one_of",
                   {{"kind", kind}, {"name", name}, {"number", number}, {"waiting", waiting}, {"pod", pod}});
  };
  EXPECT_EQ(chosen("deploy/web"), one_of("Deployment", "web", "3", "2", "web-2-a"));
  EXPECT_EQ(chosen("rs/web-1"), one_of("ReplicaSet", "web-1", "1", "0", "web-1-a"));
  EXPECT_EQ(chosen("job/train"), one_of("Job", "train", "1", "0", "train-a"));
  EXPECT_EQ(chosen("cronjob/nightly"), one_of("CronJob", "nightly", "1", "1", "nightly-1-a"));
  EXPECT_EQ(chosen("sts/web"),
            "none: " + english("explain.no_pods_of", {{"kind", "StatefulSet"}, {"name", "web"}, {"namespace", "lab"}}));
  EXPECT_EQ(chosen("web"), "web|");
}

TEST_F(placements_test, a_node_of_another_mode_is_said_to_be_one_and_no_node_is_left_out_in_silence) {
  cluster.nodes.put(extender_test::node("plain", {}, {}));
  cluster.pods.put(pod("p", {container("main", {{"nvidia.com/gpu", 1}})}));
  EXPECT_EQ(explain("lab/p", "wide"), 3);
  EXPECT_THAT(out.str(), HasSubstr(other_mode("vgpu", "nvidia.com/gpu")));
  EXPECT_THAT(out.str(), HasSubstr(english("explain.left_out.one", {{"number", "1"}, {"list", "plain"}})));
}

TEST_F(placements_test, S58_a_node_that_changes_its_mode_is_named_as_what_a_pod_waits_for) {
  cluster.nodes.put(extender_test::switching(vgpu_node("t4-1", 1)));
  cluster.nodes.put(extender_test::switching(extender_test::node("t4-2", {}, {})));
  cluster.pods.put(share("there", 90, 60, "a"));
  cluster.pods.put(share("there2", 90, 60, "b"));
  cluster.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p", "wide"), 3);
  // In the build of codes it ends with {}.
  const auto words = english("engine.reason.changes_mode");
  const auto changes = words.substr(0, words.find('{'));
  EXPECT_THAT(out.str(), testing::ContainsRegex("2 +" + changes));
  EXPECT_THAT(out.str(), testing::ContainsRegex("t4-2 +" + changes));
  const auto list = "t4-1" + english("engine.comma") + "t4-2";
  EXPECT_THAT(out.str(), HasSubstr(english("explain.changing.many", {{"list", list}, {"first", "t4-1"}}) + "\n"));
  out.str("");
  EXPECT_EQ(explain("lab/p", "json"), 3);
  EXPECT_THAT(
      json::parse(out.str())["explanation"]["text"].get<std::string>(),
      HasSubstr(english("engine.answer.cause_of",
                        {{"cause", english("engine.answer.cause",
                                           {{"nodes", "2"}, {"reason", english("engine.reason.changes_mode")}})},
                         {"object", "t4-1" + english("engine.comma") + "t4-2"}})));
}

/// The cards of other nodes fit, and those do not take the pod: what remains is the node that changes.
TEST_F(placements_test, S58_a_node_that_changes_its_mode_is_named_among_those_that_take_the_pod) {
  auto changing = extender_test::switching(vgpu_node("t4-1", 1));
  changing.labels = extender_test::packed({{"quartermaster.io/module", "vgpu"}, {"zone", "x"}});
  cluster.nodes.put(changing);
  cluster.pods.put(share("p", 20, 4));
  finish();
  const json whole = {{"spec", {{"nodeSelector", {{"zone", "x"}}}}}};
  EXPECT_EQ(explain_pod(cluster, {"lab", "p"}, {}, out, err, described(whole)), 3);
  EXPECT_THAT(out.str(), HasSubstr(english("explain.changing.one", {{"list", "t4-1"}, {"first", "t4-1"}}) + "\n"));
}

const auto pgpu_label = english("explain.unserved.label", {{"value", "pgpu"}});
std::string unserved_by_pgpu(const std::string& remedy) {
  return english("explain.unserved.offers_one", {{"keys", "nvidia.com/gpu"}, {"module", "pgpu"}, {"remedy", remedy}});
}

TEST_F(placements_test, a_resource_that_no_node_has_is_said_with_the_module_that_offers_it) {
  cluster.pods.put(pod("p", {container("main", {{"nvidia.com/gpu", 1}})}));
  EXPECT_EQ(explain("lab/p"), 3);
  EXPECT_THAT(
      out.str(),
      HasSubstr(unserved_by_pgpu(english("explain.unserved.off", {{"module", "pgpu"}, {"label", pgpu_label}})) + "\n"));
  EXPECT_THAT(out.str(), Not(HasSubstr(english("explain.no_change"))));
}

TEST_F(placements_test, a_module_that_is_on_and_on_no_node_needs_a_label) {
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.modules["pgpu"].enabled = true;
  cluster.policies.put(policy);
  cluster.pods.put(pod("p", {container("main", {{"nvidia.com/gpu", 1}})}));
  EXPECT_EQ(explain("lab/p", "json"), 3);
  EXPECT_EQ(json::parse(out.str())["unserved"],
            json({unserved_by_pgpu(english("explain.unserved.on_no_node", {{"label", pgpu_label}}))}));
}

TEST_F(placements_test, a_node_in_the_mode_that_offers_nothing_yet_is_where_to_look) {
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.modules["pgpu"].enabled = true;
  cluster.policies.put(policy);
  cluster.nodes.put(extender_test::node("c", {{"quartermaster.io/module", "pgpu"}}, {}));
  cluster.pods.put(pod("p", {container("main", {{"nvidia.com/gpu", 1}})}));
  EXPECT_EQ(explain("lab/p"), 3);
  EXPECT_THAT(out.str(), HasSubstr(english("explain.unserved.on_one_node", {{"number", "1"}})));
}

TEST_F(placements_test, what_a_refusal_advises_is_all_that_is_said) {
  cluster.pods.put(pod("p", {container("main", {{"tencent.com/vcuda-core", 20}})}));
  EXPECT_EQ(explain("lab/p"), 3);
  const auto lacks_partner =
      english("engine.refusal.needs_partner",
              {{"key", "tencent.com/vcuda-core"}, {"amount", "20"}, {"other", "tencent.com/vcuda-memory"}});
  EXPECT_THAT(out.str(), HasSubstr(lacks_partner));
  EXPECT_THAT(out.str(), Not(HasSubstr(english("explain.no_change"))));
  out.str("");
  EXPECT_EQ(explain("lab/p", "json"), 3);
  EXPECT_EQ(json::parse(out.str())["refusals"][0], lacks_partner);
}

TEST_F(placements_test, a_bound_pod_whose_limits_do_not_count_says_why) {
  cluster.pods.put(pod("p", {container("main", {{"tencent.com/vcuda-core", 20}})}, "a"));
  EXPECT_EQ(explain("lab/p"), 0);
  EXPECT_THAT(out.str(), HasSubstr(english("explain.bound_without", {{"pod", "lab/p"}, {"node", "a"}}) + "\n" +
                                   begin_of("explain.not_counted", "text")));
  EXPECT_THAT(out.str(), HasSubstr("tencent.com/vcuda-memory"));
}

TEST_F(placements_test, every_form_of_output_and_both_languages_are_there) {
  cluster.pods.put(share("p", 20, 4));
  EXPECT_EQ(explain("lab/p", "yaml"), 0);
  EXPECT_THAT(out.str(), HasSubstr("pod: lab/p"));
  out.str("");
  EXPECT_EQ(explain("lab/p", "text", "zh"), 0);
  EXPECT_THAT(out.str(),
              HasSubstr(chinese("explain.waits.many", {{"pod", "lab/p"}, {"fitting", "2"}, {"number", "2"}})));
  out.str("");
  const tried_pod list[] = {tried(share("x", 10, 8))};
  EXPECT_EQ(simulate(cluster, limits, list, {"wide", "zh"}, out), 0);
  EXPECT_THAT(out.str(), HasSubstr(chinese("explain.share", {{"cores", "10"}, {"memory", "2048"}})));
  EXPECT_THAT(out.str(), HasSubstr(chinese("explain.simulate.sum", {{"fitting", "1"}, {"pods", "1"}})));
}

}  // namespace
}  // namespace cli
