#include "reconcilers/own_scheduler/objects.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/names.hpp"
#include "scheduler_config/judge/verdict.hpp"

namespace reconcilers::own_scheduler {
namespace {

using nlohmann::json;

facts known(std::string version = "v1.36.3") { return {"quartermaster", std::move(version), "00c0ffee00c0ffee"}; }

json object(const scheduler_spec& spec, const facts& facts, std::size_t index) {
  return json::parse(objects_of(spec, facts).at(index).body);
}
json annotations(const scheduler_spec& spec, const facts& facts) {
  return object(spec, facts, 1).at("/spec/template/metadata/annotations"_json_pointer);
}

/// QM_GOLDEN=write writes what is missing or differs; the change is then for a person to read.
void expect_golden(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(TEST_DATA) / "golden/dedicated" / name;
  const char* write = std::getenv("QM_GOLDEN");
  if (write && std::string_view(write) == "write") std::ofstream(path) << text;
  std::ostringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), text) << path << ": QM_GOLDEN=write takes over what is made now";
}

TEST(dedicated_objects, S54_are_the_golden_files) {
  auto bodies = json::array();
  for (const auto& entry : objects_of({}, known())) bodies.push_back(json::parse(entry.body));
  expect_golden("default.json", bodies.dump(2) + "\n");
  expect_golden("scheduler-config-1.36.yaml", config_of(known()));
  expect_golden("scheduler-config-1.30.yaml", config_of(known("v1.30.14")));
}

TEST(dedicated_objects, declared_keys_are_asked_about_too) {
  auto facts = known();
  facts.declared = {"example.com/fpga", "nvidia.com/gpu", "cpu", "no such key"};
  const auto config = config_of(facts);
  EXPECT_THAT(config, testing::HasSubstr("- name: example.com/fpga\n"));
  EXPECT_EQ(config.find("nvidia.com/gpu\n"), config.rfind("nvidia.com/gpu\n")) << "a key is managed once";
  EXPECT_THAT(config, testing::Not(testing::AnyOf(testing::HasSubstr("cpu"), testing::HasSubstr("no such key"))));
  const auto judged = scheduler_config::judge(config, {.minor = 36, .in_cluster = true, .plugins = {}});
  EXPECT_TRUE(std::ranges::none_of(judged, [](const auto& finding) {
    return scheduler_config::effect_of(finding.issue) == scheduler_config::effect::ends;
  }));
  EXPECT_NE(annotations({}, known()), annotations({}, facts)) << "another configuration restarts it";
}

TEST(dedicated_objects, carry_no_private_key_and_have_no_owner) {
  for (const auto& entry : objects_of({}, known())) {
    EXPECT_THAT(entry.body, testing::Not(testing::HasSubstr("keyData")));
    EXPECT_FALSE(json::parse(entry.body)["metadata"].contains("ownerReferences"))
        << "it outlives the policy while pods wait for it";
    EXPECT_EQ(entry.key, (kube::object_key{"quartermaster", "quartermaster-scheduler"}));
  }
}

TEST(dedicated_objects, S54_the_image_is_of_the_servers_version) {
  EXPECT_EQ(image_of({}, "v1.36.3"), "registry.k8s.io/kube-scheduler:v1.36.3");
  EXPECT_EQ(image_of({.image = "registry.local:5000/kube-scheduler"}, "v1.30.4-eks-036c24b"),
            "registry.local:5000/kube-scheduler:v1.30.4");
  EXPECT_EQ(image_of({.image = "registry.local:5000/kube-scheduler:mine"}, "v1.36.3"),
            "registry.local:5000/kube-scheduler:mine");
  EXPECT_EQ(image_of({.image = "kube-scheduler@sha256:12"}, "v1.36.3"), "kube-scheduler@sha256:12");
}

TEST(dedicated_objects, the_usual_image_comes_from_the_registry_that_the_operator_was_given) {
  auto facts = known();
  facts.image_registry = "mirror.example";
  const auto body = [&](const scheduler_spec& spec) {
    std::string out;
    for (const auto& entry : objects_of(spec, facts)) out += entry.body;
    return out;
  };
  EXPECT_THAT(body({}), testing::HasSubstr("\"mirror.example/kube-scheduler:v1.36.3\""));
  EXPECT_THAT(body({.image = "theirs/kube-scheduler:1"}), testing::HasSubstr("\"theirs/kube-scheduler:1\""));
}

TEST(dedicated_objects, S54_the_version_told_is_the_images) {
  for (const auto& [image, version] : std::vector<std::pair<std::string, std::string>>{
           {"", "v1.36.3"},
           {"registry.local:5000/kube-scheduler", "v1.36.3"},
           {"kube-scheduler:v1.35.4", "v1.35.4"},
           {"registry.local:5000/kube-scheduler:v1.35.4@sha256:12", "v1.35.4"},
           {"registry.local:5000/kube-scheduler@sha256:12", ""},
           {"kube-scheduler:mine", ""}}) {
    EXPECT_EQ(version_of({.image = image}, "v1.36.3"), version) << image;
    const auto set = object({.image = image}, known(), 1)["metadata"]["annotations"];
    EXPECT_EQ(set[api::names::scheduler_version_annotation], version) << image;
    EXPECT_EQ(set[api::names::server_version_annotation], "v1.36.3") << image;
  }
}

TEST(dedicated_objects, S54_a_distributions_version_is_cut_to_what_is_released) {
  for (const auto& [version, released] :
       std::vector<std::pair<std::string, std::string>>{{"v1.36.3", "v1.36.3"},
                                                        {"v1.29.1+k3s1", "v1.29.1"},
                                                        {"v1.30.5-gke.1014001", "v1.30.5"},
                                                        {"v1.37.0-rc.1", "v1.37.0-rc.1"},
                                                        {"v1.37.0-alpha.", "v1.37.0"},
                                                        {"v1.30", ""},
                                                        {"v1.30.", ""},
                                                        {"1.30.1", ""},
                                                        {"unknown", ""},
                                                        {"", ""}})
    EXPECT_EQ(release_of(version), released) << version;
}

TEST(dedicated_objects, another_certificate_or_configuration_starts_the_scheduler_anew) {
  auto other = known();
  other.certificates = "0123456789abcdef";
  EXPECT_NE(annotations({}, known()), annotations({}, other));
  auto elsewhere = known();
  elsewhere.ns = "gpu";
  EXPECT_NE(annotations({}, known())[api::names::scheduler_config_annotation],
            annotations({}, elsewhere)[api::names::scheduler_config_annotation]);
  EXPECT_EQ(annotations({.replicas = 3}, known()), annotations({}, known())) << "more of the same";
}

TEST(dedicated_objects, keep_the_policys_wishes) {
  const auto set = object({.replicas = 5, .pull_secrets = R"([{"name":"mirror"}])"}, known(), 1);
  EXPECT_EQ(set["spec"]["replicas"], 5);
  EXPECT_EQ(set["spec"]["template"]["spec"]["imagePullSecrets"], json::parse(R"([{"name":"mirror"}])"));
}

/// Pod Security Standard "restricted".
TEST(dedicated_objects, run_in_a_restricted_namespace) {
  const auto pod = object({}, known(), 1)["spec"]["template"]["spec"];
  EXPECT_EQ(pod["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
  for (const auto& container : pod["containers"]) {
    EXPECT_EQ(container["securityContext"]["allowPrivilegeEscalation"], false);
    EXPECT_EQ(container["securityContext"]["capabilities"]["drop"], json::array({"ALL"}));
  }
  for (const auto& volume : pod["volumes"]) EXPECT_TRUE(volume.contains("configMap") || volume.contains("secret"));
  EXPECT_FALSE(pod.value("hostNetwork", false));
}

}  // namespace
}  // namespace reconcilers::own_scheduler
