// The rules a replica answers by are what its stores hold, at any moment.

#include "reconcilers/admission/admission_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "test/reconcilers/declarations/config_maps.hpp"

namespace reconcilers {
namespace {

using nlohmann::json;

struct admission_server_test : testing::Test {
  controller::registry metrics;
  controller::store<accelerator_policy> policies;
  controller::store<api::compiled_rules> rules;
  std::unique_ptr<admission_server> server;
  std::uint64_t version = 1;

  void synced() {
    policies.begin(), policies.commit();
    rules.begin(), rules.commit();
  }
  void make() { server = std::make_unique<admission_server>(policies, rules, "quartermaster", metrics); }
  void enforce(const std::string& mode) {
    accelerator_policy policy;
    policy.key.name = "default";
    policy.resource_version = ++version;
    policy.resources.enforcement = mode;
    policies.put(policy);
  }
  void hold_to(const std::vector<declarations::config_map_text>& declared, const std::string& name = "default") {
    declarations::registry all;
    for (const auto& entry : declared) all.put(entry.view());
    api::compiled_rules object;
    object.key.name = name;
    object.resource_version = ++version;
    object.spec = declarations::spec_of(all.compile()).dump();
    rules.put(object);
  }
  static std::string review() {
    const json pod = {
        {"spec", {{"containers", {{{"name", "main"}, {"resources", {{"limits", {{"example.com/fpga", 1}}}}}}}}}}};
    return json({{"apiVersion", "admission.k8s.io/v1"},
                 {"kind", "AdmissionReview"},
                 {"request",
                  {{"uid", "u"},
                   {"kind", {{"kind", "Pod"}}},
                   {"operation", "CREATE"},
                   {"namespace", "team"},
                   {"object", pod}}}})
        .dump();
  }
  std::string_view filled() const { return server->mutate_pod(review()).outcome; }
};

TEST_F(admission_server_test, before_its_caches_are_filled_it_does_not_answer) {
  make();
  EXPECT_EQ(server->mutate_pod(review()).status, 503) << "the API server lets the pod pass, or asks another replica";
  synced();
  EXPECT_EQ(filled(), "allowed");
}

TEST_F(admission_server_test, S24_follows_rules_and_policy_without_a_restart) {
  const auto memory = declarations::sound("example.com/mem").with("limits", "required").with("defaultValue", "8");
  const auto optional = declarations::sound("example.com/mem").without("defaultValue");
  synced();
  hold_to({declarations::sound(), memory});  // there before it was made
  make();
  EXPECT_EQ(filled(), "allowed") << "no policy";
  enforce("Warn");
  EXPECT_EQ(filled(), "allowed");
  enforce("Deny");
  EXPECT_EQ(filled(), "filled");
  hold_to({declarations::sound(), optional});
  EXPECT_EQ(filled(), "allowed");
  hold_to({declarations::sound(), memory}, "other");
  EXPECT_EQ(filled(), "allowed") << "only the object named default counts";
  hold_to({declarations::sound(), memory});
  EXPECT_EQ(filled(), "filled");
  rules.erase(*rules.find({{}, "default"}));
  EXPECT_EQ(filled(), "allowed");
  hold_to({declarations::sound(), memory});
  enforce("Off");
  EXPECT_EQ(filled(), "allowed");
}

}  // namespace
}  // namespace reconcilers
