// What kube-apiserver refuses of values in a pod and in what makes pods (pkg/apis/*/validation of Kubernetes 1.37), and
// what it takes: each rule with both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

#include "cli/lint/lint_workload.hpp"
#include "cli/lint/range_amounts.hpp"
#include "test/words.hpp"

namespace cli::pod_values_test {
namespace {

using words::english;

using testing::ElementsAre, testing::IsEmpty;

std::vector<lint_finding> findings(const std::string& text) {
  static std::list<text::yaml::source> kept;
  auto file = text::yaml::read("f", text);
  EXPECT_TRUE(file) << file.error();
  kept.push_back(std::move(*file));
  std::vector<lint_finding> out;
  for (const auto& entry : manifests_in(kept.back())) {
    lint_workload(entry, pod_forms_of(entry), {}, text::language::en, out);
    if (entry.kind == "LimitRange") lint_range(entry, text::language::en, out);
  }
  return out;
}

std::vector<std::string> codes(const std::string& text) {
  std::vector<std::string> out;
  for (const auto& finding : findings(text)) out.push_back(finding.code);
  return out;
}

/// A pod whose spec has these lines, which are indented by two.
std::string pod(const std::string& lines, const std::string& container = "") {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n" + lines +
         "  containers:\n  - name: main\n    image: i\n" + container;
}

std::string workload(const std::string& kind, const std::string& selector, const std::string& labels,
                     const std::string& policy = "Always", const std::string& more = "") {
  return "apiVersion: " + kind + "\nmetadata: {name: a}\nspec:\n" + selector + "  template:\n    metadata: {labels: {" +
         labels + "}}\n    spec:\n      restartPolicy: " + policy + "\n" + more +
         "      containers:\n      - {name: c, image: i}\n";
}

TEST(pod_values, names_of_containers_and_volumes_are_labels_of_dns) {
  const auto named = [](const std::string& name) {
    return codes("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - {name: " + name +
                 ", image: i}\n");
  };
  for (const auto* name : {"C_1", "a.b", "Main", "-a", "a-", "\"a b\""})
    EXPECT_THAT(named(name), ElementsAre("part_name_malformed")) << name;
  for (const auto* name : {"c-1", "a", "\"1\"", "\"{{ .Values.name }}\""}) EXPECT_THAT(named(name), IsEmpty()) << name;
  EXPECT_THAT(codes(pod("  volumes: [{name: my_data, emptyDir: {}}]\n")), ElementsAre("part_name_malformed"));
  const auto hinted = findings(pod("  volumes: [{name: My_Data, emptyDir: {}}]\n"));
  ASSERT_EQ(hinted.size(), 1U);
  EXPECT_EQ(hinted[0].remedy, english("lint.part_name_malformed.remedy_with_hint", {{"hint", "my-data"}}));
}

TEST(pod_values, names_of_objects_are_as_long_as_their_kind_allows) {
  const auto named = [](const std::string& kind, const std::string& metadata) {
    const auto file = text::yaml::read("f", "apiVersion: " + kind + "\nmetadata: {" + metadata + "}\n");
    EXPECT_TRUE(file);
    std::vector<lint_finding> out;
    for (const auto& entry : manifests_in(*file)) lint_names(entry, text::language::en, out);
    std::vector<std::string> found;
    for (const auto& finding : out) found.push_back(finding.code);
    return found;
  };
  const auto length = [](std::size_t size) { return "name: " + std::string(size, 'a'); };
  const struct {
    std::string kind;
    std::size_t most;
  } kinds[] = {
      {"v1\nkind: Pod", 253},      {"apps/v1\nkind: Deployment", 253}, {"apps/v1\nkind: StatefulSet", 63},
      {"batch/v1\nkind: Job", 63}, {"batch/v1\nkind: CronJob", 52},    {"batch.volcano.sh/v1alpha1\nkind: Job", 253}};
  for (const auto& [kind, most] : kinds) {
    EXPECT_THAT(named(kind, length(most)), IsEmpty()) << kind;
    EXPECT_THAT(named(kind, length(most + 1)), ElementsAre("name_long")) << kind;
  }
  EXPECT_THAT(named("apps/v1\nkind: StatefulSet", "name: a.b"), ElementsAre("name_malformed"));
  EXPECT_THAT(named("v1\nkind: Pod", "name: a.b"), IsEmpty());
  EXPECT_THAT(named("batch/v1\nkind: Job", "generateName: " + std::string(70, 'a') + "-"), IsEmpty());
}

TEST(pod_values, a_container_mounts_volumes_that_the_pod_has) {
  const std::string mount = "    volumeMounts: [{name: data, mountPath: /data}]\n";
  EXPECT_THAT(codes(pod("", mount)), ElementsAre("volume_missing"));
  EXPECT_THAT(codes(pod("  volumes: [{name: date, emptyDir: {}}]\n", mount)), ElementsAre("volume_missing"));
  EXPECT_THAT(codes(pod("  volumes: [{name: data, emptyDir: {}}]\n", mount)), IsEmpty());
  EXPECT_THAT(codes(pod("", "    volumeDevices: [{name: disk, devicePath: /dev/x}]\n")), ElementsAre("volume_missing"));
  const auto stateful = [&](const std::string& kind, const std::string& claim) {
    return codes(
        "apiVersion: apps/v1\nkind: " + kind + "\nmetadata: {name: a}\nspec:\n" +
        "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec:\n" +
        "      containers:\n      - name: c\n        image: i\n        volumeMounts: [{name: data, mountPath: /d}]\n" +
        claim);
  };
  const std::string claim = "  volumeClaimTemplates: [{metadata: {name: data}}]\n";
  EXPECT_THAT(stateful("StatefulSet", claim), IsEmpty());
  EXPECT_THAT(stateful("StatefulSet", ""), ElementsAre("volume_missing"));
  const std::string ray = R"(apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a}
spec:
  headGroupSpec:
    template:
      spec:
        containers:
        - {name: h, image: i, volumeMounts: [{name: ray-logs, mountPath: /l}]}
)";
  EXPECT_THAT(codes(ray), IsEmpty()) << "its controller adds volumes of its own";
}

TEST(pod_values, a_medium_that_no_kubelet_knows_is_a_warning) {
  const auto answer = [](const std::string& medium) {
    return findings(pod("  volumes: [{name: data, emptyDir: {medium: " + medium + "}}]\n"));
  };
  for (const auto* medium : {"Memory", "\"\"", "HugePages", "HugePages-2Mi"})
    EXPECT_THAT(answer(medium), IsEmpty()) << medium;
  for (const auto* medium : {"memory", "Disk"}) {
    const auto all = answer(medium);
    ASSERT_EQ(all.size(), 1U) << medium;
    EXPECT_EQ(all[0].code, "medium_unknown");
    EXPECT_EQ(all[0].level, text::severity::warning) << "the API server takes it";
  }
}

TEST(pod_values, tolerations_do_not_contradict_themselves) {
  const auto answer = [](const std::string& toleration) { return codes(pod("  tolerations: [" + toleration + "]\n")); };
  for (const auto* legal : {"{operator: Exists}", "{key: a, operator: Exists}", "{key: a, value: b}",
                            "{key: a, operator: Equal, value: \"\"}", "{key: a, operator: Exists, value: \"\"}",
                            "{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}",
                            "{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 60}"})
    EXPECT_THAT(answer(legal), IsEmpty()) << legal;
  for (const auto* refused : {"{key: a, operator: Exists, value: b}", "{operator: Equal}", "{value: b}",
                              "{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 60}"})
    EXPECT_THAT(answer(refused), ElementsAre("refused_together")) << refused;
  EXPECT_THAT(answer("{key: a, value: \"b c\"}"), ElementsAre("label_value_malformed"));
  EXPECT_THAT(answer("{key: \"a b\", operator: Exists}"), ElementsAre("label_key_malformed"));
}

TEST(pod_values, labels_have_the_form_of_labels) {
  EXPECT_THAT(codes(pod("  nodeSelector: {zone: \"a b\"}\n")), ElementsAre("label_value_malformed"));
  EXPECT_THAT(codes(pod("  nodeSelector: {zone: \"-a\"}\n")), ElementsAre("label_value_malformed"));
  EXPECT_THAT(codes(pod("  nodeSelector: {\"a b\": c}\n")), ElementsAre("label_key_malformed"));
  EXPECT_THAT(codes(pod("  nodeSelector: {zone: \"\", nvidia.com/gpu.product: NVIDIA-H200_1.0}\n")), IsEmpty());
  const auto about = [](const std::string& metadata) {
    return codes("apiVersion: v1\nkind: Pod\nmetadata: {name: a, " + metadata +
                 "}\nspec:\n  containers: [{name: c, image: i}]\n");
  };
  EXPECT_THAT(about("labels: {a: \"x y\"}"), ElementsAre("label_value_malformed"));
  EXPECT_THAT(about("labels: {a: " + std::string(64, 'x') + "}"), ElementsAre("label_value_malformed"));
  EXPECT_THAT(about("labels: {a/b/c: x}"), ElementsAre("label_key_malformed"));
  EXPECT_THAT(about("annotations: {a: \"any text, also\\tthis\"}"), IsEmpty());
  EXPECT_THAT(about("annotations: {Example.com/Name: x}"), IsEmpty()) << "keys of annotations may have capitals";
  EXPECT_THAT(about("annotations: {\"a b\": x}"), ElementsAre("label_key_malformed"));
}

TEST(pod_values, a_selector_chooses_the_pods_of_its_template) {
  for (const auto* kind : {"apps/v1\nkind: Deployment", "apps/v1\nkind: StatefulSet", "apps/v1\nkind: DaemonSet",
                           "apps/v1\nkind: ReplicaSet"}) {
    const auto answer = [&](const std::string& selector, const std::string& labels) {
      return codes(workload(kind, selector, labels));
    };
    EXPECT_THAT(answer("  selector: {matchLabels: {app: web}}\n", "app: web, tier: x"), IsEmpty()) << kind;
    EXPECT_THAT(answer("  selector: {matchLabels: {app: web}}\n", "app: api"), ElementsAre("selector_mismatch"))
        << kind;
    EXPECT_THAT(answer("  selector: {matchLabels: {app: web}}\n", "tier: x"), ElementsAre("selector_mismatch")) << kind;
    const auto wider = [&](const std::string& requirement) {
      return answer("  selector: {matchExpressions: [" + requirement + "]}\n", "app: web");
    };
    EXPECT_THAT(wider("{key: app, operator: In, values: [api, web]}"), IsEmpty());
    EXPECT_THAT(wider("{key: app, operator: Exists}"), IsEmpty());
    EXPECT_THAT(wider("{key: tier, operator: NotIn, values: [x]}"), IsEmpty()) << "a label that is not there is not in";
    EXPECT_THAT(wider("{key: tier, operator: DoesNotExist}"), IsEmpty());
    EXPECT_THAT(wider("{key: app, operator: NotIn, values: [web]}"), ElementsAre("selector_mismatch"));
    EXPECT_THAT(wider("{key: app, operator: In, values: [api]}"), ElementsAre("selector_mismatch"));
    EXPECT_THAT(wider("{key: app, operator: DoesNotExist}"), ElementsAre("selector_mismatch"));
    EXPECT_THAT(wider("{key: tier, operator: Exists}"), ElementsAre("selector_mismatch"));
  }
  EXPECT_THAT(codes(workload("v1\nkind: ReplicationController", "", "app: web")), IsEmpty())
      << "the labels are its default";
  EXPECT_THAT(codes(workload("v1\nkind: ReplicationController", "  selector: {app: api}\n", "app: web")),
              ElementsAre("selector_mismatch"));
}

TEST(pod_values, the_selector_of_a_job_is_generated) {
  const auto job = [](const std::string& selector) {
    return codes(workload("batch/v1\nkind: Job", selector, "app: web", "Never"));
  };
  EXPECT_THAT(job(""), IsEmpty());
  EXPECT_THAT(job("  selector: {matchLabels: {batch.kubernetes.io/controller-uid: 1-2}}\n"), IsEmpty())
      << "as kubectl prints it";
  EXPECT_THAT(job("  selector: {matchLabels: {app: web}}\n"), ElementsAre("selector_generated"));
  EXPECT_THAT(job("  manualSelector: true\n  selector: {matchLabels: {app: web}}\n"), IsEmpty());
  EXPECT_THAT(job("  manualSelector: true\n  selector: {matchLabels: {app: api}}\n"), ElementsAre("selector_mismatch"));
  EXPECT_THAT(codes("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec:\n"
                    "  selector: {matchLabels: {app: web}}\n  tasks:\n  - template:\n      spec:\n"
                    "        containers: [{name: c, image: i}]\n"),
              IsEmpty())
      << "another kind of that name";
}

TEST(pod_values, amounts_of_a_limit_range_do_not_contradict_each_other) {
  const auto range = [](const std::string& item) {
    return codes("apiVersion: v1\nkind: LimitRange\nmetadata: {name: a}\nspec:\n  limits: [" + item + "]\n");
  };
  const std::string gpu = "\"nvidia.com/gpu\"";
  for (const auto& legal :
       {"{type: Container, default: {" + gpu + ": 1}, defaultRequest: {" + gpu + ": 1}}",
        "{type: Container, default: {" + gpu + ": 2}}", "{type: Container, max: {" + gpu + ": 2}}",
        "{type: Container, min: {" + gpu + ": 1}, max: {" + gpu + ": 2}, default: {" + gpu + ": 1}}",
        std::string("{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 500m}}"),
        "{type: Pod, max: {" + gpu + ": 2}}"})
    EXPECT_THAT(range(legal), IsEmpty()) << legal;
  for (const auto& refused :
       {"{type: Container, default: {" + gpu + ": 2}, defaultRequest: {" + gpu + ": 1}}",
        "{type: Container, max: {" + gpu + ": 2}, defaultRequest: {" + gpu + ": 1}}",  // the maximum is the default
        "{type: Container, min: {" + gpu + ": 3}, max: {" + gpu + ": 2}}",
        "{type: Container, max: {" + gpu + ": 2}, default: {" + gpu + ": 3}}",
        std::string("{type: Container, default: {cpu: 2}, defaultRequest: {cpu: 3}}"),
        "{type: Pod, default: {" + gpu + ": 1}}"})
    EXPECT_THAT(range(refused), ElementsAre("refused_together")) << refused;
}

}  // namespace
}  // namespace cli::pod_values_test
