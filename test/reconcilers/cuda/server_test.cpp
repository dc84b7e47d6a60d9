// The policy and the nodes a replica answers by are what its stores hold.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "node.hpp"
#include "reconcilers/admission/admission_server.hpp"

namespace reconcilers::cuda {
namespace {

using nlohmann::json;

struct compatibility_server : testing::Test {
  controller::registry metrics;
  controller::store<accelerator_policy> policies;
  controller::store<api::compiled_rules> rules;
  controller::store<kube::node> nodes;
  admission_server server{policies, rules, "quartermaster", metrics, &nodes};
  std::uint64_t version = 1;

  void synced() {
    policies.begin(), policies.commit();
    nodes.begin(), nodes.commit();
  }
  void policy(const char* spec) {
    const auto read = accelerator_policy::decode(
        json({{"metadata", {{"name", "default"}, {"resourceVersion", std::to_string(++version)}}},
              {"spec", json::parse(spec)}})
            .dump());
    ASSERT_TRUE(read) << read.error().message;
    policies.put(*read);
  }
  void node(const char* cuda) {
    auto made = node_with(labelled(cuda), std::string("gpu-") + cuda);
    made.resource_version = ++version;
    made.allocatable = {{"nvidia.com/gpu", 8}};
    nodes.put(made);
  }
  std::string_view asked(const char* cuda) const {
    const json pod = {
        {"metadata", {{"annotations", {{"quartermaster.io/cuda", cuda}}}}},
        {"spec", {{"containers", {{{"name", "main"}, {"resources", {{"limits", {{"nvidia.com/gpu", 1}}}}}}}}}}};
    return server
        .admit_compatible(json({{"apiVersion", "admission.k8s.io/v1"},
                                {"kind", "AdmissionReview"},
                                {"request",
                                 {{"uid", "u"},
                                  {"kind", {{"kind", "Pod"}}},
                                  {"operation", "CREATE"},
                                  {"namespace", "team"},
                                  {"object", pod}}}})
                              .dump())
        .outcome;
  }
};

TEST_F(compatibility_server, before_its_caches_are_filled_it_does_not_answer) {
  EXPECT_EQ(asked(">=12.4"), "not_synced");
  synced();
  EXPECT_EQ(asked(">=12.4"), "allowed") << "without a policy nothing is done";
}

TEST_F(compatibility_server, the_policy_says_how_strictly) {
  synced();
  node("12.4");
  policy("{}");
  EXPECT_EQ(asked(">=12.4"), "filled") << "Warn is the default";
  EXPECT_EQ(asked("banana"), "warned");
  policy(R"({"compatibility":{"enforcement":"Off"}})");
  EXPECT_EQ(asked("banana"), "allowed");
  policy(R"({"compatibility":{"enforcement":"Deny"}})");
  EXPECT_EQ(asked("banana"), "refused");
  EXPECT_EQ(asked(">=13"), "refused");
  node("13.0");
  EXPECT_EQ(asked(">=13"), "filled");
}

TEST(compatibility_policy, says_whether_paddle_gets_its_allocator) {
  const auto read = accelerator_policy::decode(
      R"({"metadata":{"name":"default"},"spec":{"compatibility":{"enforcement":"Deny","paddleAllocator":true}}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->compatibility.enforcement, "Deny");
  EXPECT_TRUE(read->compatibility.paddle_allocator);
  EXPECT_FALSE(accelerator_policy::decode(R"({"metadata":{"name":"default"}})")->compatibility.paddle_allocator);
}

}  // namespace
}  // namespace reconcilers::cuda
