#include "reconcilers/modules/accelerator_policy.hpp"

#include <gtest/gtest.h>

#include "api/accelerator_node.hpp"
#include "api/owned_object.hpp"

namespace reconcilers {
namespace {

using std::chrono::seconds;

constexpr auto full = R"({"apiVersion":"quartermaster.io/v1alpha1","kind":"AcceleratorPolicy",
  "metadata":{"name":"default","uid":"2083d912-a2b9-4844-b4ea-11be59386882","generation":3,"resourceVersion":"305"},
  "spec":{"modules":{"pgpu":{"enabled":true,"image":"a:1","imagePullPolicy":"Always","args":["--x"],
     "resources":{"limits":{"cpu":1}},"env":[{"name":"A","value":"b"}],"tolerations":[{"key":"k"}],
     "priorityClassName":"p","runtimeClassName":"r","rollout":"WhenIdle"},
     "mps":{"enabled":false}},
   "enrolment":{"default":"pgpu","verifyTimeout":"1h2m3s","maxUnavailable":"10%","drain":{"mode":"Wait"},"takeOver":true,
     "labelAliases":[{"key":"gpu","value":"on","mode":"vgpu"}]},
   "cardLabels":["GPUFeatureDiscovery","ACK"]},
  "status":{"observedGeneration":2,"conditions":[{"type":"Ready"}]}})";

TEST(accelerator_policy, keeps_what_is_acted_on) {
  const auto policy = accelerator_policy::decode(full);
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->key.name, "default");
  EXPECT_EQ(policy->generation, 3);
  EXPECT_TRUE(policy->enabled("pgpu"));
  EXPECT_FALSE(policy->enabled("mps"));
  EXPECT_FALSE(policy->enabled("vgpu"));
  const auto& pgpu = policy->modules.at("pgpu");
  EXPECT_EQ(pgpu.image, "a:1");
  EXPECT_EQ(pgpu.image_pull_policy, "Always");
  EXPECT_EQ(pgpu.args, R"(["--x"])");
  EXPECT_EQ(pgpu.resources, R"({"limits":{"cpu":1}})");
  EXPECT_EQ(pgpu.env, R"([{"name":"A","value":"b"}])");
  EXPECT_EQ(pgpu.tolerations, R"([{"key":"k"}])");
  EXPECT_EQ(pgpu.priority_class, "p");
  EXPECT_EQ(pgpu.runtime_class, "r");
  EXPECT_EQ(pgpu.rollout, "WhenIdle");
  EXPECT_EQ(policy->enrolment.default_mode, "pgpu");
  EXPECT_EQ(policy->enrolment.verify_timeout, seconds(3723));
  EXPECT_TRUE(policy->enrolment.take_over);
  ASSERT_EQ(policy->enrolment.aliases.size(), 1u);
  EXPECT_EQ(policy->enrolment.aliases[0], (label_alias{"gpu", "on", "vgpu"}));
  EXPECT_EQ(policy->card_labels, (std::vector<std::string>{"GPUFeatureDiscovery", "ACK"}));
  EXPECT_EQ(policy->status, R"({"observedGeneration":2,"conditions":[{"type":"Ready"}]})");
}

TEST(accelerator_policy, while_everything_is_to_go_every_module_is_off) {
  const auto policy = accelerator_policy::decode(
      R"({"metadata":{"name":"default"},"spec":{"modules":{"pgpu":{"enabled":true}},"removing":true}})");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_TRUE(policy->removing);
  EXPECT_FALSE(policy->enabled("pgpu"));
}

TEST(accelerator_policy, selects_nodes_whose_container_runtime_is_fixed) {
  const std::string spec = R"("containerRuntime":{"fix":{"nodeSelector":{"pool":"a100","x/y":""}}})";
  const auto policy = accelerator_policy::decode(R"({"metadata":{"name":"default"},"spec":{)" + spec + "}}");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->container_runtime.node_selector, (settings_map{{"pool", "a100"}, {"x/y", ""}}));
  const auto removed =
      accelerator_policy::decode(R"({"metadata":{"name":"default"},"spec":{"removing":true,)" + spec + "}}");
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_TRUE(removed->container_runtime.node_selector.empty());
  for (const auto* nothing : {"{}", R"({"containerRuntime":{}})", R"({"containerRuntime":{"fix":null}})"}) {
    const auto plain =
        accelerator_policy::decode(R"({"metadata":{"name":"default"},"spec":)" + std::string(nothing) + "}");
    ASSERT_TRUE(plain) << nothing;
    EXPECT_TRUE(plain->container_runtime.node_selector.empty());
  }
}

TEST(accelerator_policy, reads_what_the_agent_and_fix_runtime_said_of_a_node) {
  const auto node = api::accelerator_node::decode(
      R"({"metadata":{"name":"gpu-1"},"status":{"preflight":[{"check":"cdi","state":"failed"},
          {"check":"default_runtime","found":"runc","state":"warning"},{"check":"container_toolkit","state":"ok"}],
          "runtimeFix":{"result":"Failed","message":"no","cause":"c","parameters":{"a":"b"},"at":"2026-07-01T10:20:30Z","pod":"u"}}})");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->default_runtime, api::check_state::warning);
  EXPECT_EQ(node->container_toolkit, api::check_state::ok);
  EXPECT_EQ(node->fix, (api::runtime_fix{"Failed", "no", {"c", {{"a", "b"}}}, "u", 1782901230}));
}

TEST(accelerator_policy, pull_secrets_reach_every_module) {
  const auto policy = accelerator_policy::decode(
      R"({"metadata":{"name":"default"},"spec":{"imagePullSecrets":[{"name":"registry"}],"modules":{"pgpu":{},"mps":{}}}})");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_EQ(policy->modules.at("pgpu").pull_secrets, R"([{"name":"registry"}])");
  EXPECT_EQ(policy->modules.at("mps").pull_secrets, R"([{"name":"registry"}])");
}

TEST(accelerator_policy, reads_a_policy_without_anything) {
  const auto policy =
      accelerator_policy::decode(R"({"metadata":{"name":"x"},"spec":{"modules":null,"enrolment":null}})");
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_TRUE(policy->modules.empty());
  EXPECT_EQ(policy->enrolment, enrolment_spec());
  EXPECT_TRUE(policy->status.empty());
}

TEST(accelerator_policy, F11_says_which_object_cannot_be_read) {
  const auto broken = accelerator_policy::decode(R"({"metadata":{"name":"x"},"spec":{"modules":{"pgpu":)");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, kube::errc::decode);
}

TEST(accelerator_policy, durations_are_hours_minutes_and_seconds) {
  EXPECT_EQ(parse_duration("5m"), seconds(300));
  EXPECT_EQ(parse_duration("1h30m"), seconds(5400));
  EXPECT_EQ(parse_duration("0s"), seconds(0));
  for (const auto* wrong : {"", "5", "m", "5d", "1h30", "-1s", "99999999999s", "1.5h"})
    EXPECT_EQ(parse_duration(wrong), std::nullopt) << wrong;
}

TEST(accelerator_policy, prices_are_millionths_and_the_first_that_matches_counts) {
  const auto policy = accelerator_policy::decode(R"({"metadata":{"name":"default"},"spec":{"chargeback":{
      "currency":"EUR","organizationLabel":"example.com/cost-center","prices":[
        {"model":"NVIDIA-A100*","cardHour":"2.50"},{"model":"broken","cardHour":"1,5"},{"model":"*","cardHour":"0.000001"}]}}})");
  ASSERT_TRUE(policy) << policy.error().message;
  const auto& spec = policy->chargeback;
  EXPECT_EQ(spec.currency, "EUR");
  EXPECT_EQ(spec.organization_label, "example.com/cost-center");
  ASSERT_EQ(spec.prices.size(), 2u) << "what is no price is skipped";
  EXPECT_EQ(spec.price_of("NVIDIA-A100-SXM4-40GB")->card_hour, 2'500'000);
  EXPECT_EQ(spec.price_of("Tesla-T4")->card_hour, 1);
  EXPECT_EQ(chargeback_spec().price_of("Tesla-T4"), nullptr);
}

TEST(accelerator_policy, stars_of_a_price_stand_for_any_text) {
  const auto matches = [](const std::string& pattern, const std::string& model) {
    chargeback_spec spec;
    spec.prices = {{pattern, 1}};
    return spec.price_of(model) != nullptr;
  };
  EXPECT_TRUE(matches("Tesla-T4", "Tesla-T4"));
  EXPECT_FALSE(matches("Tesla-T4", "Tesla-T40"));
  EXPECT_TRUE(matches("*-T4", "Tesla-T4"));
  EXPECT_TRUE(matches("*a*a*", "banana"));
  EXPECT_FALSE(matches("*a*n", "banana"));
  EXPECT_TRUE(matches("b*na", "banana")) << "the star takes more where less does not do";
  EXPECT_TRUE(matches("*", ""));
  EXPECT_FALSE(matches("Tesla?T4", "Tesla-T4")) << "only * is special";
  EXPECT_FALSE(matches(std::string(64, '*') + "x", std::string(300, 'a')));
}

TEST(accelerator_policy, amounts_have_at_most_six_digits_and_six_decimals) {
  EXPECT_EQ(parse_millionths("2.50"), 2'500'000);
  EXPECT_EQ(parse_millionths("0"), 0);
  EXPECT_EQ(parse_millionths("999999.999999"), 999'999'999'999);
  for (const auto* wrong : {"", ".5", "5.", "1.0000001", "1000000", "-1", "+1", "1e3", "1,5", " 1", "1.2.3"})
    EXPECT_EQ(parse_millionths(wrong), std::nullopt) << wrong;
}

TEST(accelerator_node, keeps_the_controllers_part_of_the_status) {
  const auto node = api::accelerator_node::decode(R"({"metadata":{"name":"gpu-1","ownerReferences":[
      {"apiVersion":"v1","kind":"Node","name":"gpu-1","uid":"2083d912-a2b9-4844-b4ea-11be59386882"}]},
    "status":{"requestedMode":"vgpu","actualMode":"pgpu","phase":"Draining","reason":"PodsHoldCards","message":"m",
      "cause":"status.node.drain.one","parameters":{"number":"1","wrong":{}},
      "since":"2026-01-01T00:00:00Z","blockers":["ns/a","ns/b r"],
      "blockerCauses":[{"pod":"ns/b","cause":"status.node.stays.daemon_set"},7],"cards":[{"uuid":"GPU-1","index":0}]}})");
  ASSERT_TRUE(node) << node.error().message;
  const api::mode_status want{.requested_mode = "vgpu",
                              .actual_mode = "pgpu",
                              .phase = "Draining",
                              .reason = "PodsHoldCards",
                              .message = "m",
                              .code = {"status.node.drain.one", {{"number", "1"}, {"wrong", ""}}},
                              .since = "2026-01-01T00:00:00Z",
                              .ready = {},
                              .ready_since = {},
                              .blockers = {"ns/a", "ns/b r"},
                              .blocker_causes = {{"ns/b", {"status.node.stays.daemon_set", {}}}},
                              .given_up = {}};
  EXPECT_EQ(node->mode, want);
  EXPECT_EQ(api::blockers_of(node->mode)[0].key, "ns/a");
  EXPECT_EQ(api::blockers_of(node->mode)[1].key, "status.node.blocker");
  auto of_later_version = node->mode;
  of_later_version.blocker_causes.begin()->second.cause = "status.of_a_later_version";
  EXPECT_EQ(api::blockers_of(of_later_version)[1].key, "ns/b r") << "its entry is all that is known";
  ASSERT_EQ(node->owners.size(), 1u);
  EXPECT_EQ(node->owners[0].kind, "Node");
  EXPECT_TRUE(api::accelerator_node::decode(R"({"metadata":{"name":"gpu-1"}})"));
}

TEST(owned_object, fingerprints_what_is_not_metadata) {
  // Service: metadata(1) {name(1) "a"}, spec(2); byte for byte as the server sends them.
  const auto with_spec = [](char spec) {
    return std::string(
               "\x0a\x03\x0a\x01"
               "a"
               "\x12\x01") +
           spec;
  };
  const auto first = api::owned_service::decode(with_spec('x'));
  const auto other = api::owned_service::decode(with_spec('y'));
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_TRUE(other);
  EXPECT_EQ(first->key.name, "a");
  EXPECT_NE(*first, *other);
  EXPECT_EQ(*first, *api::owned_service::decode(with_spec('x')));
  EXPECT_FALSE(api::owned_service::decode("\x0a\x7f"));
  EXPECT_FALSE(api::owned_service_account::decode(""));
}

TEST(accelerator_policy, S24_reads_how_strictly_pods_are_held_to_declarations) {
  const auto none = accelerator_policy::decode(R"({"metadata":{"name":"default"},"spec":{}})");
  ASSERT_TRUE(none);
  EXPECT_EQ(none->resources, custom_resources_spec());
  EXPECT_EQ(none->resources.enforcement, "Off");
  const auto made = accelerator_policy::decode(
      R"({"metadata":{"name":"default"},"spec":{"customResources":{"enforcement":"Deny","fillOptional":true}}})");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->resources.enforcement, "Deny");
  EXPECT_TRUE(made->resources.fill_optional);
}

}  // namespace
}  // namespace reconcilers
