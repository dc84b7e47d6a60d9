// The webhook's answers, byte for byte as an API server would read them; and reviews no API server would send.

#include "reconcilers/admission/admission.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "kube/config.hpp"
#include "reconcilers/admission/admission_review.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "test/processor_time.hpp"
#include "test/reconcilers/declarations/config_maps.hpp"
#include "text/text.hpp"

namespace reconcilers {
namespace {

using declarations::sound;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

/// A card, which is optional, needs a share of memory, which has a default, and excludes a chip.
declarations::rule_set lab_rules() {
  declarations::registry declared;
  auto memory = sound("example.com/mem").with("limits", "required").with("defaultValue", "8");
  auto card = sound("example.com/fpga").with("excludeResources", "example.com/chip").with("runtimeClassName", "lab");
  declared.put(card.view());
  declared.put(memory.view());
  declared.put(sound("example.com/chip", "chips").view());
  return declared.compile();
}

struct admission : testing::Test {
  const declarations::rule_set rules = lab_rules();

  static json container(const std::string& name, json limits) {
    return {{"name", name}, {"image", "x"}, {"resources", {{"limits", limits}, {"requests", limits}}}};
  }
  static json pod_with(json limits) { return pod_of(json::array({container("main", std::move(limits))})); }
  static json pod_of(json containers) {
    return {{"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata", {{"name", "a"}, {"namespace", "team"}}},
            {"spec", {{"containers", std::move(containers)}}}};
  }
  static json review_of(json object, const std::string& kind = "Pod") {
    return {{"apiVersion", "admission.k8s.io/v1"},
            {"kind", "AdmissionReview"},
            {"request",
             {{"uid", "705ab4f5-6393-11e8-b7cc-42010a800002"},
              {"kind", {{"group", ""}, {"version", "v1"}, {"kind", kind}}},
              {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
              {"operation", "CREATE"},
              {"namespace", "team"},
              {"userInfo", {{"username", "jane"}}},
              {"object", std::move(object)},
              {"oldObject", nullptr},
              {"dryRun", false},
              {"options", {{"kind", "CreateOptions"}}}}}};
  }

  using route = review_answer (*)(std::string_view, const pod_admission&);
  json answered(route route, const json& review, enforcement mode = enforcement::deny) const {
    const auto answer = route(review.dump(), {rules, mode, "quartermaster"});
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto body = json::parse(answer.body);
    EXPECT_EQ(body["apiVersion"], "admission.k8s.io/v1");
    EXPECT_EQ(body["kind"], "AdmissionReview");
    EXPECT_EQ(body["response"]["uid"], review["request"]["uid"]);
    return body["response"];
  }
  json mutated(const json& review, enforcement mode = enforcement::deny) const {
    return answered(mutate_pod, review, mode);
  }
  static json patch_in(const json& response) {
    EXPECT_EQ(response["patchType"], "JSONPatch");
    return json::parse(kube::base64_decode(response["patch"].get<std::string>()).value_or("none"));
  }
  std::string untouched(const json& review) const {
    const auto filled = mutated(review);
    const json plain = {{"uid", review["request"]["uid"]}, {"allowed", true}};
    return filled == plain ? "" : filled.dump();
  }
};

TEST_F(admission, S24_fills_limits_requests_and_runtime_class) {
  const auto response = mutated(review_of(pod_with({{"example.com/fpga", "1"}})));
  EXPECT_EQ(response["allowed"], true);
  EXPECT_FALSE(response.contains("warnings")) << "said once, where the pod is judged";
  EXPECT_EQ(patch_in(response), json::parse(R"([
    {"op":"add","path":"/spec/containers/0/resources/limits/example.com~1mem","value":"8"},
    {"op":"add","path":"/spec/containers/0/resources/requests/example.com~1mem","value":"8"},
    {"op":"add","path":"/spec/runtimeClassName","value":"lab"}])"));
  auto object = pod_with({{"example.com/fpga", "1"}}).patch(patch_in(response));
  EXPECT_EQ(untouched(review_of(object)), "") << "once filled in there is nothing more to do";
}

TEST_F(admission, S24_fills_the_container_that_uses_the_group) {
  auto pod = pod_of(json::array({container("idle", json::object()), container("main", {{"example.com/fpga", 2}})}));
  pod["spec"]["initContainers"] = json::array({container("fetch", {{"example.com/fpga", "1"}})});
  std::vector<std::string> paths;
  for (const auto& entry : patch_in(mutated(review_of(pod)))) paths.push_back(entry["path"]);
  EXPECT_THAT(paths, ElementsAre("/spec/initContainers/0/resources/limits/example.com~1mem",
                                 "/spec/containers/1/resources/limits/example.com~1mem",
                                 "/spec/initContainers/0/resources/requests/example.com~1mem",
                                 "/spec/containers/1/resources/requests/example.com~1mem", "/spec/runtimeClassName"));
}

/// As test/dedicated has it for the chart's policy of the same effect.
TEST_F(admission, S54_sends_pods_that_ask_for_accelerators_to_our_scheduler) {
  const json name = json::parse(R"({"op":"add","path":"/spec/schedulerName","value":"quartermaster"})");
  const json toleration =
      json::parse(R"({"key":"quartermaster.io/accelerator","operator":"Exists","effect":"NoSchedule"})");
  const json first = {{"op", "add"}, {"path", "/spec/tolerations"}, {"value", json::array({toleration})}};
  const json next = {{"op", "add"}, {"path", "/spec/tolerations/-"}, {"value", toleration}};
  const auto patch = [&](const json& review, bool sends = true) {
    const auto answer = mutate_pod(review.dump(), {rules, enforcement::disabled, "quartermaster", sends});
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto response = json::parse(answer.body)["response"];
    EXPECT_EQ(response["allowed"], true);
    return response.contains("patch") ? patch_in(response) : json::array();
  };
  const auto patch_pod = [&](const std::function<void(json & pod)>& change, json limits = {{"nvidia.com/gpu", "1"}}) {
    auto pod = pod_with(std::move(limits));
    change(pod);
    return patch(review_of(pod));
  };
  const auto as_it_is = [](json&) {};
  const auto review = review_of(pod_with({{"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(patch(review), json::array({name, first}));
  EXPECT_EQ(patch(review, false), json::array());
  EXPECT_EQ(patch_pod([](json& pod) { pod["spec"]["schedulerName"] = "default-scheduler"; }),
            json::array({name, first}));
  EXPECT_EQ(patch_pod([](json& pod) { pod["spec"]["schedulerName"] = "quartermaster"; }), json::array({first}));
  EXPECT_EQ(patch_pod([](json& pod) { pod["spec"]["schedulerName"] = "volcano"; }), json::array());
  EXPECT_EQ(patch_pod([](json& pod) { pod["spec"]["nodeName"] = "gpu-1"; }), json::array());
  EXPECT_EQ(patch_pod([](json& pod) { pod["metadata"]["labels"]["quartermaster.io/scheduler"] = "ignore"; }),
            json::array());
  EXPECT_EQ(patch_pod([](json& pod) { pod["metadata"]["labels"]["quartermaster.io/scheduler"] = "x"; }),
            json::array({name, first}));
  EXPECT_EQ(patch_pod([](json& pod) { pod["spec"]["tolerations"] = json::array(); }), json::array({name, next}));
  for (const auto* enough :
       {R"({"operator":"Exists"})", R"({"operator":"Exists","key":"quartermaster.io/accelerator"})"})
    EXPECT_EQ(patch_pod([&](json& pod) { pod["spec"]["tolerations"] = json::array({json::parse(enough)}); }),
              json::array({name}))
        << enough;
  for (const auto* other :
       {R"({"operator":"Exists","key":"x"})", R"({"key":"quartermaster.io/accelerator","value":"y"})",
        R"({"operator":"Exists","effect":"NoExecute"})"})
    EXPECT_EQ(patch_pod([&](json& pod) { pod["spec"]["tolerations"] = json::array({json::parse(other)}); }),
              json::array({name, next}))
        << other;
  EXPECT_EQ(patch_pod(as_it_is, {{"nvidia.com/gpu", "0"}}), json::array());
  EXPECT_EQ(patch_pod(as_it_is, {{"cpu", "1"}}), json::array());
  EXPECT_EQ(patch_pod(as_it_is, {{"example.com/unknown", "1"}}), json::array());
  EXPECT_EQ(patch_pod(as_it_is, {{"example.com/fpga", "1"}}), json::array({name, first})) << "a declared key";
  EXPECT_EQ(patch_pod([](json& pod) {
              pod["spec"]["initContainers"] = pod["spec"]["containers"];
              pod["spec"]["containers"] = json::array({container("main", json::object())});
            }),
            json::array({name, first}));
  for (const auto* ns : {"kube-system", "quartermaster"}) {
    auto elsewhere = review;
    elsewhere["request"]["namespace"] = ns;
    EXPECT_EQ(patch(elsewhere), json::array()) << ns;
  }
  // Next to what is filled in: one patch.
  const auto both = mutate_pod(review_of(pod_with({{"example.com/fpga", "1"}})).dump(),
                               {rules, enforcement::deny, "quartermaster", true});
  EXPECT_EQ(patch_in(json::parse(both.body)["response"]).size(), 5u);
}

TEST_F(admission, S24_warn_fills_nothing_in) {
  const auto review = review_of(pod_with({{"example.com/fpga", "1"}}));
  EXPECT_FALSE(mutated(review, enforcement::warn).contains("patch"));
}

TEST_F(admission, S24_off_and_what_is_not_ours_goes_through_untouched) {
  const auto asking = pod_with({{"example.com/fpga", "1"}});
  auto review = review_of(asking);
  EXPECT_TRUE(mutated(review).contains("patch"));
  EXPECT_FALSE(mutated(review, enforcement::disabled).contains("patch"));
  for (const auto* ns : {"kube-system", "kube-public", "kube-node-lease", "quartermaster"}) {
    review["request"]["namespace"] = ns;
    EXPECT_EQ(untouched(review), "") << ns;
  }
  review = review_of(asking);
  review["request"]["object"]["metadata"]["annotations"] = {{"kubernetes.io/config.mirror", "1"}};
  EXPECT_EQ(untouched(review), "") << "mirror pod";
  for (const auto* operation : {"UPDATE", "DELETE", "CONNECT"}) {
    review = review_of(asking);
    review["request"]["operation"] = operation;
    EXPECT_EQ(untouched(review), "") << operation;
  }
  review = review_of(asking);
  review["request"]["subResource"] = "ephemeralcontainers";
  EXPECT_EQ(untouched(review), "");
  EXPECT_EQ(untouched(review_of(pod_with({{"nvidia.com/gpu", "1"}, {"cpu", "1"}}))), "") << "declared by no one";
}

TEST_F(admission, members_may_come_in_any_order) {
  const auto pod = pod_with({{"example.com/fpga", "1"}}).dump();
  const auto text = R"({"request":{"object":)" + pod +
                    R"(,"namespace":"team","operation":"CREATE","kind":{"kind":"Pod"},"uid":"u\"1\\"},)" +
                    R"("kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"})";
  const auto answer = mutate_pod(text, {rules, enforcement::deny, "quartermaster"});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto response = json::parse(answer.body)["response"];
  EXPECT_EQ(response["uid"], "u\"1\\");
  EXPECT_THAT(patch_in(response), SizeIs(3));
}

TEST_F(admission, F38_a_review_that_is_none_is_a_400_of_one_line) {
  const auto good = review_of(pod_with({{"example.com/fpga", "1"}}));
  const auto drop = [&](const char* pointer) {
    auto out = good;
    const json::json_pointer location(pointer);
    out[location.parent_pointer()].erase(location.back());
    return out.dump();
  };
  const auto replace = [&](const char* pointer, json value) {
    auto out = good;
    out[json::json_pointer(pointer)] = std::move(value);
    return out.dump();
  };
  auto old_only = good;
  std::swap(old_only["request"]["object"], old_only["request"]["oldObject"]);
  auto text = good.dump();
  std::string bad_utf8 = text, twice = text, request_twice = text;
  bad_utf8.replace(bad_utf8.find("jane"), 1, "\xff");
  twice.replace(twice.find("\"uid\""), 5, R"("uid":"other","uid")");
  request_twice.replace(request_twice.find("\"kind\":\"AdmissionReview\""), 0, R"("request":{"uid":"x"},)");
  const std::pair<std::string, std::string> cases[] = {
      {"", "mpty"},
      {"no json", ""},
      {"[]", ""},
      {"null", ""},
      {"\"text\"", ""},
      {"{}", "apiVersion is \"\" and kind is \"\""},
      {std::string(16, '\0'), ""},
      {"\x1f\x8b\x08 gzip", ""},
      {text.substr(0, text.size() / 2), ""},
      {text + text, ""},
      {text + "x", ""},
      {bad_utf8, "UTF-8"},
      {twice, "request.uid is there twice"},
      {request_twice, "request is there twice"},
      {drop("/request"), "no request"},
      {drop("/request/uid"), "request.uid is missing"},
      {replace("/request/uid", nullptr), "request.uid is missing"},
      {replace("/request/uid", 7), "request.uid is missing"},
      {replace("/request/uid", std::string(300, 'u')), "256"},
      {replace("/apiVersion", "admission.k8s.io/v1beta1"), "admission.k8s.io/v1beta1"},
      {replace("/kind", "Pod\n\x1b[2J"), "wanted"},
      {replace("/request/kind/kind", "ConfigMap"), "judges Pod"},
      {drop("/request/object"), "request.object is missing"},
      {replace("/request/object", nullptr), "request.object is missing"},
      {replace("/request/object", "text"), ""},
      {replace("/request/object/spec", 7), ""},
      {replace("/request/object/spec/containers", "text"), ""},
      {replace("/request/object/spec/containers/0", 1), ""},
      {replace("/request/object/spec/containers/0/resources/limits", json::array({1})), ""},
      {old_only.dump(), "request.object is missing"},
  };
  for (const auto& [review, says] : cases) {
    const auto answer = mutate_pod(review, {rules, enforcement::deny, "quartermaster"});
    EXPECT_EQ(answer.status, 400) << review.substr(0, 200) << " -> " << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(says)) << review.substr(0, 200);
    EXPECT_EQ(answer.body.find('\n'), answer.body.size() - 1) << answer.body;
    EXPECT_TRUE(text::is_plain_text(answer.body)) << answer.body;
  }
}

TEST_F(admission, F38_size_depth_and_number_cost_milliseconds) {
  const auto good = review_of(pod_with({{"example.com/fpga", "1"}})).dump();
  const auto inside = [&](const std::string& part) {
    auto out = good;
    return out.replace(out.find("\"userInfo\""), 0, part + ",");
  };
  const std::string deep(100'000, '['), deep_end(100'000, ']');
  std::string wide = "\"x\":{";
  for (int i = 0; i < 300'000; ++i) wide += (i ? ",\"k\":" : "\"k\":") + std::to_string(i);
  auto containers = json::array();
  json many = json::object();
  for (int i = 0; i < 2000; ++i) many["example.com/r" + std::to_string(i)] = "1";
  for (int i = 0; i < 200; ++i) containers.push_back(container("c" + std::to_string(i), {{"example.com/fpga", "1"}}));
  containers[0]["resources"]["limits"] = many;
  auto too_many = json::array();
  for (int i = 0; i < 20'000; ++i) too_many.push_back(container("c", {{"example.com/fpga", "1"}}));
  const std::string reviews[] = {
      inside("\"x\":" + deep + deep_end),
      inside("\"x\":" + deep),
      deep,
      inside(wide + "}"),
      inside("\"x\":\"" + std::string(9'000'000, '<') + "\""),
      review_of(pod_of(containers)).dump(),
      review_of(pod_of(too_many)).dump(),
  };
  for (const auto& review : reviews) {
    const auto began = test::processor_seconds();
    const auto answer = mutate_pod(review, {rules, enforcement::deny, "quartermaster"});
    EXPECT_TRUE(answer.status == 200 || answer.status == 400);
    EXPECT_LT(answer.body.size(), 20'000U);
    EXPECT_LT(test::processor_seconds() - began, 2) << review.substr(0, 100);  // with the sanitizers of a test
  }
  EXPECT_FALSE(mutated(review_of(pod_of(too_many))).contains("patch"));
}

TEST_F(admission, F38_the_worst_pod_the_limits_allow_does_not_hold_the_loop) {
  // Groups of 8 keys, each a must with a default, each excluding 64 others; 256 containers that use 8 of them.
  constexpr int keys = 72;
  declarations::rule_set heavy;
  for (int i = 0; i < keys; ++i) {
    declarations::rule rule;
    rule.key = "example.com/k" + std::to_string(1000 + i);
    rule.group = "g" + std::to_string(i / 8);
    rule.must = true;
    rule.fill = 1;
    for (int j = 0; j < 64; ++j) rule.excluded.push_back("example.com/k" + std::to_string(1000 + (i + j + 1) % keys));
    std::ranges::sort(rule.excluded);
    if (i % 8 == 0) heavy.groups.push_back({rule.group, {}});
    heavy.groups.back().members.push_back(rule.key);
    heavy.rules.push_back(rule);
  }
  auto containers = json::array();
  for (int i = 0; i < 256; ++i) {
    json limits = json::object();
    for (int k = 0; k < 8; ++k) limits["example.com/k" + std::to_string(1000 + (i * 5 + k) % keys)] = "1";
    containers.push_back(container("c" + std::to_string(i), limits));
  }
  const auto review = review_of(pod_of(containers)).dump();
  const auto began = test::processor_seconds();
  const auto answer = mutate_pod(review, {heavy, enforcement::deny, "quartermaster"});
  const auto took = test::processor_seconds() - began;
  EXPECT_EQ(answer.status, 200);
  EXPECT_LT(took, 5);  // with the sanitizers of a test
  RecordProperty("seconds", std::to_string(took));
}

TEST(review_answers, F37_what_people_wrote_is_safe_to_show_and_bounded) {
  std::vector<std::string> texts{"a\n\x1b[2J\u202e\"\\"};
  for (int i = 0; i < 200; ++i) {
    texts.emplace_back("容器");
    for (int k = 0; k < 30; ++k) texts.back() += i % 2 ? "长名字" : "long name ";
  }
  const auto warnings = reviews::warnings_of(texts);
  std::size_t bytes = 0;
  for (const auto& text : warnings) {
    EXPECT_LE(text.size(), 256U);
    EXPECT_TRUE(text::is_plain_text(text)) << text;
    bytes += text.size();
  }
  EXPECT_LE(bytes, 4096U);
  EXPECT_THAT(warnings.front(), testing::StartsWith("a \\u{1b}[2J\\u{202e}\"\\"));
  EXPECT_THAT(warnings.back(), HasSubstr(" more"));
  EXPECT_LE(reviews::joined(texts).size(), 4000U);
  EXPECT_TRUE(text::is_plain_text(reviews::joined(texts)));
}

TEST(fills_pods, is_read_from_what_the_server_offers) {
  const auto list = [](std::vector<std::string> names) {
    json out = {{"kind", "APIResourceList"}, {"groupVersion", "admissionregistration.k8s.io/v1"}};
    for (const auto& name : names) out["resources"].push_back({{"name", name}, {"verbs", {"get"}}});
    return out.dump();
  };
  EXPECT_FALSE(fills_pods(list({"mutatingwebhookconfigurations", "validatingadmissionpolicies"})));
  EXPECT_TRUE(fills_pods(list({"mutatingadmissionpolicies", "validatingadmissionpolicies"})));
  for (const auto* text : {"", "{}", "no json", R"({"resources":7})"}) EXPECT_FALSE(fills_pods(text)) << text;
}

TEST(enforcement, is_read_from_the_words_of_the_policy) {
  EXPECT_EQ(enforcement_of("Deny"), enforcement::deny);
  EXPECT_EQ(enforcement_of("Warn"), enforcement::warn);
  EXPECT_EQ(enforcement_of("deny"), enforcement::disabled);
}

}  // namespace
}  // namespace reconcilers
