// lint and simulate read a workload of a file with one reader: the same objects, the same verdict, the same place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/explain/simulate.hpp"
#include "cli/lint/lint.hpp"
#include "reconcilers/declarations/pod_spec.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::SizeIs, testing::StartsWith;

struct judged_object {
  std::string code, place, message;     ///< of the first error of lint; empty: none
  std::string refused;                  ///< what simulate says of its pods
  std::vector<std::string> refused_by;  ///< ways in which simulate refuses the file instead
  std::vector<tried_pod> pods;
};

judged_object judged(const std::string& text) {
  judged_object out;
  std::vector<text::yaml::source> files;
  auto file = text::yaml::read("w.yaml", text);
  if (!file) {
    ADD_FAILURE() << file.error() << "\n" << text;
    return out;
  }
  files.push_back(std::move(*file));
  for (const auto& finding : lint(files, {}).findings) {
    // Who asks where a pod would run need not have written all of it.
    if (finding.level != text::severity::error || finding.code == "field_missing") continue;
    out.code = finding.code;
    out.place = "w.yaml:" + std::to_string(finding.location.line) + ":" + std::to_string(finding.location.column);
    out.message = finding.message;
    break;
  }
  for (const auto& entry : manifests_in(files.front()))
    if (auto problem = add_pods(entry, "", out.pods, text::language::en); !problem.empty())
      out.refused_by.push_back(std::move(problem));
  if (!out.pods.empty()) out.refused = out.pods.front().refused;
  return out;
}

struct wrong_object {
  std::string text, code;
  int line;
};

const std::string containers = "{containers: [{name: c}]}";
const std::string containers_that_end = "{restartPolicy: Never, containers: [{name: c}]}";

/// A pod with one more line in its spec, which is the fifth.
std::string pod_with(const std::string& line) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  " + line + "\n  containers: [{name: c}]\n";
}
/// A workload with one more line in its spec, which is the fifth.
std::string workload_with(const std::string& line, const std::string& kind = "apps/v1\nkind: Deployment") {
  return "apiVersion: " + kind + "\nmetadata: {name: p}\nspec:\n  " + line +
         "\n  template: {spec: " + (kind.starts_with("batch") ? containers_that_end : containers) + "}\n";
}
std::string cron_job_with(const std::string& line) {
  return "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: p}\nspec: {jobTemplate: {spec: {\n  " + line +
         ",\n  template: {spec: " + containers_that_end + "}}}}\n";
}

void expect_refused(const wrong_object& wrong) {
  const auto got = judged(wrong.text);
  EXPECT_EQ(got.code, wrong.code) << wrong.text;
  EXPECT_THAT(got.place, StartsWith("w.yaml:" + std::to_string(wrong.line) + ":")) << wrong.text;
  EXPECT_EQ(got.refused, got.place + ": " + got.message) << wrong.text;
  EXPECT_THAT(got.refused_by, IsEmpty());
}

TEST(one_verdict, of_objects_that_are_malformed) {
  for (const wrong_object& wrong : std::initializer_list<wrong_object>{
           {"kind: Pod\nmetadata: {name: p}\nspec: " + containers + "\n", "api_version_missing", 1},
           {"apiVersion: \"\"\nkind: Job\nmetadata: {name: p}\nspec: {template: {spec: " + containers + "}}\n",
            "api_version_missing", 1},
           {"apiVersion: v2\nkind: Pod\nmetadata: {name: p}\nspec: " + containers + "\n", "api_version", 1},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: P_1}\nspec: " + containers + "\n", "name_malformed", 3},
           {"apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: " + containers + "\n", "name_malformed", 3},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: 5}\nspec: " + containers + "\n", "not_a_string", 3},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: A}\nspec: " + containers + "\n",
            "name_malformed", 3},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: [a]}\nspec: " + containers + "\n", "wrong_form", 3},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: a}\nspec: " + containers + "\n", "wrong_form",
            3},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "spec_unreadable", 1},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: [1]\n", "spec_unreadable", 1},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: ~}\n", "containers_missing", 4},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: {name: c}}\n", "spec_unreadable", 4},
           {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [c]}\n", "spec_unreadable", 4},
       })
    expect_refused(wrong);
}

TEST(one_verdict, of_fields_of_another_form) {
  for (const std::string line :
       {"nodeSelector: [a]",
        "nodeSelector: a=b",
        "affinity: []",
        "affinity: required",
        "affinity: {nodeAffinity: [1]}",
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: []}}",
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: {a: 1}}}}",
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{"
        "matchExpressions: {key: a, operator: Exists}}]}}}",
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{"
        "matchExpressions: [{key: a, operator: In, values: b}]}]}}}",
        "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: {weight: 1}}}",
        "tolerations: {key: a}",
        "tolerations: [a]",
        "tolerations: [{key: a, tolerationSeconds: soon}]",
        "schedulingGates: g",
        "schedulingGates: [g]",
        "schedulingGates: {name: g}",
        "priority: high",
        "priority: \"5\"",
        "priority: 99999999999",
        "hostNetwork: \"true\"",
        "hostNetwork: 1",
        "resourceClaims: [c]",
        "resourceClaims: {name: c}",
        "volumes: {name: v}",
        "overhead: [1]"})
    expect_refused({pod_with(line), "wrong_form", 5});
  for (const std::string line :
       {"nodeSelector: {a: 1}", "nodeName: 7", "nodeName: [n]", "schedulerName: {a: b}", "priorityClassName: 1",
        "tolerations: [{key: 1, operator: Exists}]", "tolerations: [{key: a, value: true}]",
        "schedulingGates: [{name: 1}]",
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{"
        "matchExpressions: [{key: a, operator: In, values: [1]}]}]}}}"})
    expect_refused({pod_with(line), "not_a_string", 5});
  expect_refused({pod_with("initContainers: {name: i}"), "spec_unreadable", 5});
  expect_refused({pod_with("initContainers: [{name: i, resources: {limits: [1]}}]"), "spec_unreadable", 5});
  expect_refused({pod_with("initContainers: [{name: i, env: [{name: A, value: 1}]}]"), "not_a_string", 5});
  expect_refused({pod_with("initContainers: [{name: i, args: run}]"), "wrong_form", 5});
}

TEST(one_verdict, of_how_many_pods_there_are) {
  for (const std::string value : {"-1", "1.5", "\"3\"", "[1]", "many", "true", "{a: 1}", "99999999999", "3e10", "\"\""})
    for (const std::string name : {"replicas", "minReadySeconds"})
      expect_refused({workload_with(name + ": " + value), "wrong_form", 5});
  for (const std::string value : {"-1", "1.5", "\"3\"", "[1]"}) {
    for (const std::string name : {"parallelism", "completions", "backoffLimit"}) {
      expect_refused({workload_with(name + ": " + value, "batch/v1\nkind: Job"), "wrong_form", 5});
      expect_refused({cron_job_with(name + ": " + value), "wrong_form", 5});
    }
    const auto of_others =
        "apiVersion: a.b/v1\nkind: Trainer\nmetadata: {name: p}\nspec:\n  workers:\n    replicas: " + value +
        "\n    template: {spec: " + containers + "}\n";
    expect_refused({of_others, "wrong_form", 6});
  }
  expect_refused({workload_with("replicas: \"{{ .Values.n }}\""), "template_text", 5});
  expect_refused({workload_with("suspend: \"yes\"", "batch/v1\nkind: Job"), "wrong_form", 5});
  EXPECT_THAT(judged(workload_with("replicas: \"3\"")).message,
              HasSubstr(words::english("lint.wrong_form.remedy_with_hint", {{"hint", "3"}})));
}

TEST(one_verdict, of_what_the_api_server_takes) {
  for (const std::string line :
       {"nodeSelector: ~", "affinity: {}", "affinity: {nodeAffinity: ~}", "tolerations: []", "tolerations: [~]",
        "schedulingGates: ~", "priority: -5", "priority: 1e3", "hostNetwork: yes", "nodeName: \"7\"",
        "tolerations: [{key: a, effect: NoExecute, tolerationSeconds: -1}]", "nodeSelector: {a: \"1\"}"}) {
    const auto got = judged(pod_with(line));
    EXPECT_EQ(got.code, "") << line;
    EXPECT_EQ(got.refused, "") << line;
    EXPECT_THAT(got.pods, SizeIs(1)) << line;
  }
}

/// Names of kubectl's own: 3.0 and 1e1 are whole in JSON, 0x10 and 010 in YAML.
TEST(one_verdict, counts_pods_as_their_controller_makes_them) {
  const auto pods_of = [](const std::string& text) {
    const auto got = judged(text);
    EXPECT_EQ(got.code, "") << text;
    return static_cast<std::size_t>(std::ranges::count_if(got.pods, &tried_pod::is_pod));
  };
  const std::string job = "batch/v1\nkind: Job";
  for (const auto& [value, pods] : std::initializer_list<std::pair<std::string, std::size_t>>{
           {"3", 3}, {"3.0", 3}, {"1e1", 10}, {"0x10", 16}, {"010", 8}, {"1_0", 10}, {"+2", 2}, {"~", 1}, {"0", 0}})
    EXPECT_EQ(pods_of(workload_with("replicas: " + value)), pods) << value;
  EXPECT_EQ(pods_of(workload_with("parallelism: 4", job)), 4U);
  EXPECT_EQ(pods_of(workload_with("completions: 4", job)), 1U) << "one after the other";
  EXPECT_EQ(pods_of(workload_with("parallelism: 4\n  completions: 2", job)), 2U);
  EXPECT_EQ(pods_of(workload_with("parallelism: 2\n  completions: 4", job)), 2U);
  EXPECT_EQ(pods_of(workload_with("parallelism: 0", job)), 0U);
  EXPECT_EQ(pods_of(workload_with("completions: 0", job)), 0U);
  EXPECT_EQ(pods_of(cron_job_with("parallelism: 4")), 4U);
  EXPECT_EQ(pods_of(cron_job_with("parallelism: 4, completions: 3")), 3U);
  EXPECT_EQ(pods_of(cron_job_with("completions: 3")), 1U);
}

/// What apimachinery v0.36.3 makes of it: resource.Quantity.UnmarshalJSON behind sigs.k8s.io/yaml.
struct written_amount {
  std::string text;
  std::optional<std::int64_t> amount;
};

TEST(one_verdict, amounts_as_the_api_server_reads_them) {
  for (const written_amount& row : std::initializer_list<written_amount>{
           {"\" 1\"", 1},   {"\"1 \"", 1},       {"\"+1\"", 1},       {"1e0", 1},           {"\"1e0\"", 1},
           {"\"1.0\"", 1},  {"1.0", 1},          {"01", 1},           {"\"01\"", 1},        {"010", 8},
           {"\"010\"", 10}, {"\"\\u00a01\"", 1}, {"\"1\\u3000\"", 1}, {"\"\\u0085 1\"", 1}, {"\"1.\"", 1},
           {"\".5e1\"", 5}, {"1_0", 10},         {"0x1", 1},          {"\"1e+0\"", 1},      {"\"1e-0\"", 1},
           {"0b1", 1},      {"+1", 1},           {"10e-1", 1},        {"1.5e1", 15},        {"\"0.1e1\"", 1},
           {"~", {}},       {"\"+\"", {}},       {"\"1k\"", 1000}}) {
    const auto got =
        judged(pod_with("initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: " + row.text + "}}}]"));
    EXPECT_EQ(got.code, "") << row.text;
    ASSERT_THAT(got.pods, SizeIs(1)) << row.text;
    const auto& asking = got.pods[0].pod.containers.front().limits;
    EXPECT_EQ(kube::amount(asking, "nvidia.com/gpu"), row.amount.value_or(0)) << row.text;
    // The same text in JSON, as the webhook has it.
    if (!row.text.starts_with('"')) continue;
    const auto spec = R"({"containers":[{"resources":{"limits":{"nvidia.com/gpu":)" + row.text + "}}}]}";
    const auto read = reconcilers::declarations::parse_pod_spec(spec);
    ASSERT_TRUE(read) << row.text;
    EXPECT_EQ(kube::amount(read->containers[0].limits, "nvidia.com/gpu"), row.amount.value_or(0)) << row.text;
  }
  for (const std::string text : {"\"\\t1\"", "\"1\\n\"", "\"\\u20281\"", "\"1e\"", "\"1_0\"", "\"0x1\"", "\"1,0\"",
                                 "\"\\uff11\"", "\" \"", "\"\"", "\"--1\"", "\"1 e0\"", "true", "\"1ki\"", "\"1K\"",
                                 "\"1e1e1\"", "\"1i\"", "\"\\ufeff1\"", "\"\\u200b1\""})
    expect_refused({pod_with("initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: " + text + "}}}]"),
                    "amount_malformed", 5});
}

TEST(one_verdict, of_json_numbers_in_the_webhook) {
  const auto read = reconcilers::declarations::parse_pod_spec(
      R"({"containers":[{"resources":{"limits":{"a.b/c": 1.0 ,"a.b/d":2e0,"a.b/e":3}}}]})");
  ASSERT_TRUE(read);
  EXPECT_THAT(read->containers[0].limits,
              ElementsAre(std::pair("a.b/c", 1), std::pair("a.b/d", 2), std::pair("a.b/e", 3)));
}

}  // namespace
}  // namespace cli
