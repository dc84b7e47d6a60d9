#include "reconcilers/modules/catalogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "reconcilers/modules/privileges.hpp"

namespace reconcilers::modules {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

facts known() { return {"quartermaster", "quartermaster:test", "default", "6d1f0c1e-0000-4000-8000-000000000001"}; }

/// Every wish a policy can have.
module_spec wishful() {
  module_spec out;
  out.enabled = true;
  out.image = "registry.example/plugin@sha256:1234";
  out.image_pull_policy = "IfNotPresent";
  out.resources = R"({"limits":{"cpu":"1","memory":"1Gi"}})";
  out.args = R"(["--one","--two=2"])";
  out.env = R"([{"name":"LOG_LEVEL","value":"9"},{"name":"NVIDIA_VISIBLE_DEVICES","value":"0"},{"name":"EXTRA"}])";
  out.tolerations = R"([{"key":"team","operator":"Equal","value":"ai","effect":"NoExecute"},
                        {"key":"CriticalAddonsOnly","operator":"Exists"}])";
  out.priority_class = "high";
  return out;
}

json shown(const module_type& of, const module_spec& spec) {
  auto out = json::array();
  for (const auto& one : intents_of(of, spec, known())) out.push_back(json::parse(one.body));
  return out;
}

/// QM_GOLDEN=write writes what is missing or differs; the change is then for a person to read.
void expect_golden(const std::string& name, const json& made) {
  const auto path = std::filesystem::path(TEST_DATA) / "golden/modules" / (name + ".json");
  const auto text = made.dump(2) + "\n";
  const char* write = std::getenv("QM_GOLDEN");
  if (write && std::string_view(write) == "write") std::ofstream(path) << text;
  std::ostringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), text) << path << ": QM_GOLDEN=write takes over what is made now";
}

TEST(catalogue, S2_objects_of_each_module_are_the_golden_files) {
  for (const auto& one : catalogue()) {
    expect_golden(std::string(one.name), shown(one, {}));
    expect_golden(std::string(one.name) + ".wishes", shown(one, wishful()));
  }
}

TEST(catalogue, S3_keeps_the_names_people_look_for) {
  EXPECT_EQ(pgpu.daemon_set, "nvidia-device-plugin-ds");
  EXPECT_EQ(vgpu.daemon_set, "gpu-manager-daemonset");
  EXPECT_EQ(mps.daemon_set, "nvidia-mps-device-plugin-daemonset");
  for (const auto& one : catalogue()) {
    const auto last = json::parse(intents_of(one, {}, known()).back().body);
    EXPECT_EQ(last["kind"], "DaemonSet");
    EXPECT_EQ(last["metadata"]["name"], one.daemon_set);
    EXPECT_EQ(find(one.name), &one);
    for (const auto resource : one.resources) EXPECT_EQ(advertiser(resource), &one);
  }
  EXPECT_EQ(find("warp"), nullptr);
  EXPECT_EQ(advertiser("example.com/fpga"), nullptr);
  EXPECT_EQ(names_for_people(), "pgpu, vgpu and mps");
}

TEST(catalogue, S2_no_object_belongs_to_two_modules) {
  std::set<std::string> seen;
  for (const auto& one : catalogue()) {
    for (const auto& made : intents_of(one, {}, known()))
      EXPECT_TRUE(seen.insert(made.type->api_version() + std::string(made.type->kind) + made.key.to_string()).second);
  }
}

TEST(catalogue, every_daemon_set_runs_where_our_label_says_and_tolerates_a_mode_change_whatever_the_policy_says) {
  for (const auto& one : catalogue()) {
    for (const auto& spec : {module_spec(), wishful()}) {
      const auto set = json::parse(intents_of(one, spec, known()).back().body);
      const json selector = {{"quartermaster.io/module", one.name}};
      EXPECT_EQ(set["spec"]["template"]["spec"]["nodeSelector"], selector);
      EXPECT_EQ(set["spec"]["selector"]["matchLabels"], selector);
      EXPECT_EQ(set["spec"]["template"]["metadata"]["labels"]["quartermaster.io/module"], one.name);
      const json toleration = {{"key", "quartermaster.io/switching"}, {"operator", "Exists"}, {"effect", "NoSchedule"}};
      EXPECT_THAT(set["spec"]["template"]["spec"]["tolerations"], testing::Contains(toleration));
    }
  }
}

TEST(catalogue, every_object_is_found_again_by_its_labels_and_goes_with_the_policy) {
  for (const auto& one : catalogue()) {
    for (const auto& made : intents_of(one, {}, known())) {
      const auto metadata = json::parse(made.body)["metadata"];
      EXPECT_EQ(metadata["labels"]["app.kubernetes.io/managed-by"], "quartermaster");
      EXPECT_EQ(metadata["labels"]["quartermaster.io/module"], one.name);
      EXPECT_EQ(metadata["namespace"], "quartermaster");
      EXPECT_EQ(metadata["annotations"]["quartermaster.io/applied"], made.hash);
      EXPECT_EQ(metadata["ownerReferences"][0]["uid"], known().policy_uid);
      EXPECT_EQ(made.module, one.name);
    }
  }
}

TEST(catalogue, a_wish_moves_the_hash_and_the_same_wish_does_not) {
  const auto hash = [](const module_spec& spec) { return intents_of(pgpu, spec, known()).back().hash; };
  module_spec other;
  other.image = "x:1";
  EXPECT_EQ(hash({}), hash({}));
  EXPECT_NE(hash({}), hash(other));
}

TEST(catalogue, a_part_of_the_policy_that_is_not_what_the_schema_promises_is_an_exception_not_half_an_object) {
  module_spec broken;
  broken.env = R"([{"value":"x"}])";
  EXPECT_THROW(intents_of(pgpu, broken, known()), json::exception);
}

/// S5: a reason for every privilege, and no privilege that nobody needs any more.
TEST(privileges, S5_every_capability_host_path_and_namespace_has_its_reason) {
  std::set<std::string> wanted, said;
  for (const auto& one : catalogue()) {
    for (const auto& spec : {module_spec(), wishful()}) {
      for (const auto& made : intents_of(one, spec, known())) {
        const auto object = json::parse(made.body);
        if (object["kind"] != "DaemonSet") continue;
        for (const auto& what : privileges_in(object["spec"]["template"]["spec"]))
          wanted.insert(std::string(one.name) + " " + what);
      }
    }
  }
  for (const auto& row : privileges()) {
    const auto container = row.container.empty() ? std::string() : std::string(row.container) + ": ";
    EXPECT_TRUE(said.insert(std::string(row.module) + " " + container + std::string(row.what)).second) << row.what;
    EXPECT_GT(row.why.size(), 5u) << row.what;
  }
  EXPECT_EQ(wanted, said);
}

TEST(privileges, S5_nobody_loads_kernel_modules_and_only_named_folders_are_writable) {
  for (const auto& row : privileges()) {
    EXPECT_THAT(std::string(row.what), testing::Not(HasSubstr("SYS_MODULE")));
    EXPECT_THAT(std::string(row.what), testing::Not(HasSubstr("/lib/modules")));
  }
}

TEST(privileges, sees_each_kind) {
  const auto pod = json::parse(R"({"hostPID":true,"hostNetwork":true,"hostIPC":true,
    "volumes":[{"name":"a","hostPath":{"path":"/a"}},{"name":"b","emptyDir":{}}],
    "initContainers":[{"name":"i","securityContext":{"capabilities":{"add":["SYS_ADMIN"],"drop":["ALL"]},"runAsNonRoot":true}}],
    "containers":[{"name":"c","ports":[{"hostPort":1}],"volumeMounts":[{"name":"a","mountPath":"/x"},{"name":"b","mountPath":"/y"}]}]})");
  EXPECT_THAT(privileges_in(pod),
              ElementsAre("c: add (the runtime's default set)", "c: hostPort", "c: root", "c: write /a", "hostIPC",
                          "hostNetwork", "hostPID", "i: add SYS_ADMIN", "token"));
}

}  // namespace
}  // namespace reconcilers::modules
