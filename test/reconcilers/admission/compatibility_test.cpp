#include "reconcilers/admission/compatibility.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "kube/config.hpp"
#include "reconcilers/cuda/affinity.hpp"
#include "test/english.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/cuda/node.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"
#include "text/messages.hpp"

namespace reconcilers::cuda {
namespace {

using nlohmann::json;
using testing::AllOf, testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;

struct world {
  std::vector<kube::node> nodes;

  void add(std::string name, pairs labels, const std::string& offers = "nvidia.com/gpu") {
    nodes.push_back(node_with(labels, std::move(name)));
    nodes.back().allocatable = {{offers, 8}};
  }
  admission admit(const json& pod, enforcement mode, bool paddle = false) const {
    std::vector<const kube::node*> all;
    for (const auto& node : nodes) all.push_back(&node);
    return cuda::admit(pod, all, {.mode = mode, .paddle_allocator = paddle});
  }
};

/// As the guide of the platform has it: 11.8, 12.4 and 13.0.
world three() {
  world out;
  out.add("old", labelled("11.8", "520.61.05", "7.0"));
  out.add("middle", labelled("12.4", "550.54.14", "8.0"));
  out.add("new", labelled("13.0", "580.65.06", "9.0"));
  return out;
}

json pod_with(const json& annotations, const json& env = json(), const json& limits = {{"nvidia.com/gpu", 1}}) {
  json container = {{"name", "main"}, {"image", "image"}, {"resources", {{"limits", limits}}}};
  if (!env.is_null()) container["env"] = env;
  return {{"metadata", {{"name", "pod"}, {"annotations", annotations}}}, {"spec", {{"containers", {container}}}}};
}
json env(std::initializer_list<std::pair<const char*, const char*>> pairs) {
  json out = json::array();
  for (const auto& [name, value] : pairs) out.push_back({{"name", name}, {"value", value}});
  return out;
}
json needing(const char* cuda) { return pod_with({{"quartermaster.io/cuda", cuda}}); }

/// Nodes that the pod may go to once the patch is applied.
std::vector<std::string> let_on(const world& world, json pod, const admission& admission) {
  pod = pod.patch(admission.patch);
  const auto list = pod.value(
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"_json_pointer,
      json::array());
  std::vector<std::string> out;
  for (const auto& node : world.nodes) {
    bool matched = list.empty();
    for (const auto& entry : list) {
      term all;
      for (const auto& each : entry.value("matchExpressions", json::array()))
        all.push_back({each.at("key"), each.at("operator"), each.value("values", std::vector<std::string>())});
      matched = matched || matches(all, node.labels);
    }
    if (matched) out.push_back(node.key.name);
  }
  return out;
}

json share(const char* runtime, int cores = 20) {
  return pod_with(json::object(), env({{"CUDA_VERSION", runtime}}),
                  {{"tencent.com/vcuda-core", cores}, {"tencent.com/vcuda-memory", 8}});
}

/// Matches a text that has the words of this key, whatever fills them.
testing::Matcher<const std::string&> words_of_key(std::string_view key) {
  std::vector<text::parameter> marks;
  const auto pattern = text::pattern_of(key, text::language::en);
  for (const auto name : text::placeholders_of(pattern)) marks.push_back({name, "|"});
  std::vector<std::string> parts;
  std::istringstream words(text::filled(pattern, marks));
  for (std::string part; std::getline(words, part, '|');) parts.push_back(part);
  return words::has_in_order(parts);
}

TEST(compatibility, golden_answers_in_Chinese_have_no_English_sentence) {
  const auto in_chinese = [](const world& world, const json& pod) {
    std::vector<const kube::node*> nodes;
    for (const auto& node : world.nodes) nodes.push_back(&node);
    for (const auto mode : {enforcement::warn, enforcement::deny}) {
      const auto answer =
          cuda::admit(pod, nodes, {.mode = mode, .paddle_allocator = false, .language = text::language::zh});
      auto all = answer.warnings;
      if (!answer.refusal.empty()) all.push_back(answer.refusal);
      for (const auto& sentence : all) EXPECT_FALSE(words::has_english_sentence(sentence)) << sentence;
      if (mode == enforcement::warn) EXPECT_FALSE(all.empty()) << pod;
    }
  };
  for (const auto* wish : {"12.4", ">=99", ">=12.4,<12.0"}) in_chinese(three(), needing(wish));
  in_chinese(three(), pod_with(json::object(), env({{"CUDA_VERSION", "12.4.1"}})));
  in_chinese(three(), pod_with(json::object(), env({{"CUDA_VERSION", "latest"}})));
  world shares;
  shares.add("old", labelled("12.2"), "tencent.com/vcuda-core");
  in_chinese(shares, share("12.8.0"));
  in_chinese(shares, share("11.8.0"));
}

TEST(compatibility, S30_an_annotation_becomes_affinity_that_compares_pairs) {
  const auto world = three();
  for (const auto mode : {enforcement::warn, enforcement::deny}) {
    const auto allow = [&](const char* cuda) { return let_on(world, needing(cuda), world.admit(needing(cuda), mode)); };
    EXPECT_THAT(allow(">=12.2"), ElementsAre("middle", "new")) << "13.0 though its minor is not above 2";
    EXPECT_THAT(allow(">=12.4"), ElementsAre("middle", "new"));
    EXPECT_THAT(allow(">=12.5"), ElementsAre("new"));
    EXPECT_THAT(allow(">=11.0"), ElementsAre("old", "middle", "new"));
    EXPECT_THAT(allow("<12"), ElementsAre("old"));
    EXPECT_THAT(allow(">=12.4,<13"), ElementsAre("middle"));
  }
  EXPECT_THAT(world.admit(needing(">=12.4"), enforcement::warn).warnings, IsEmpty());
  EXPECT_THAT(world.admit(needing(">=12.4"), enforcement::disabled).patch, json::array());
}

TEST(compatibility, S32_a_compute_capability_keeps_volta_and_turing_away_or_says_what_there_is) {
  world world;
  world.add("v100", discovered("12.4", "550.54.14", "7.0", "Tesla-V100-SXM2-32GB"));
  world.add("t4", discovered("12.4", "550.54.14", "7.5", "Tesla-T4"));
  world.add("a100", discovered("12.4", "550.54.14", "8.0", "NVIDIA-A100-SXM4-40GB"));
  world.add("h100", discovered("12.4", "550.54.14", "9.0", "NVIDIA-H100-80GB-HBM3"));
  const auto pod = pod_with({{"quartermaster.io/compute-capability", ">=8.0"}});
  EXPECT_THAT(let_on(world, pod, world.admit(pod, enforcement::warn)), ElementsAre("a100", "h100"));
  world.nodes.resize(2);
  const auto refused = world.admit(pod, enforcement::deny);
  EXPECT_THAT(refused.refusal, words::has_in_order({"quartermaster.io/compute-capability", ">=8.0"}));
  const auto comma = words::english("cuda.facts.comma");
  const auto facts_with = [&](const std::string& capability, const std::string& card) {
    return "CUDA 12.4" + comma + words::english("cuda.facts.driver", {{"driver", "550.54.14"}}) + comma +
           words::english("cuda.facts.capability", {{"capability", capability}}) + comma + card;
  };
  EXPECT_THAT(refused.refusal,
              words::has_in_order(
                  {words::english("cuda.facts.group",
                                  {{"facts", facts_with("7.0", "Tesla-V100-SXM2-32GB")}, {"names", "v100"}}),
                   words::english("cuda.facts.group", {{"facts", facts_with("7.5", "Tesla-T4")}, {"names", "t4"}})}));
  EXPECT_EQ(refused.patch, json::array());
  const auto warned = world.admit(pod, enforcement::warn);
  EXPECT_EQ(warned.refusal, "");
  EXPECT_THAT(warned.warnings, ElementsAre(refused.refusal));
}

TEST(compatibility, S78_what_the_runtime_would_refuse_is_caught_before_it) {
  const auto world = three();
  const auto legacy = pod_with(json::object(), env({{"CUDA_VERSION", "12.4.1"}}));
  EXPECT_THAT(let_on(world, legacy, world.admit(legacy, enforcement::deny)), ElementsAre("middle", "new"));
  const auto image = pod_with(
      json::object(),
      env({{"NVIDIA_REQUIRE_CUDA", "cuda>=13.0 brand=tesla,driver>=550,driver<551"}, {"CUDA_VERSION", "13.0.0"}}));
  EXPECT_THAT(let_on(world, image, world.admit(image, enforcement::deny)), ElementsAre("middle", "new"));
  const auto newer = pod_with(json::object(), env({{"CUDA_VERSION", "13.1.0"}}));
  EXPECT_THAT(world.admit(newer, enforcement::deny).refusal,
              AllOf(HasSubstr(words::english("cuda.need.env", {{"name", "CUDA_VERSION"}, {"container", "main"}})),
                    HasSubstr("13.1.0"), HasSubstr("CUDA 13.0"), HasSubstr("new")));
  const auto unchecked =
      pod_with(json::object(), env({{"CUDA_VERSION", "13.1.0"}, {"NVIDIA_DISABLE_REQUIRE", "true"}}));
  const auto limited = world.admit(unchecked, enforcement::deny);
  EXPECT_THAT(let_on(world, unchecked, limited), ElementsAre("new")) << "minor version compatibility";
  EXPECT_THAT(limited.warnings, ElementsAre(words_of_key("cuda.need.limited")));
}

TEST(compatibility, S78_what_nobody_asked_us_for_is_only_said_while_warning) {
  const auto world = three();
  const auto pod = pod_with(json::object(), env({{"CUDA_VERSION", "12.4.1"}}));
  const auto is = world.admit(pod, enforcement::warn);
  EXPECT_EQ(is.patch, json::array());
  EXPECT_THAT(is.warnings, ElementsAre(AllOf(words_of_key("cuda.need.some_nodes"), HasSubstr("nvidia.com/gpu"),
                                             HasSubstr("old"), HasSubstr("quartermaster.io/cuda"))));
}

TEST(compatibility, pods_without_an_accelerator_or_a_need_are_let_be) {
  const auto world = three();
  for (const auto& pod :
       {json(), json::array(), json::object(), json{{"spec", 7}}, json{{"spec", {{"containers", {1, "x", nullptr}}}}},
        pod_with(json::object()), pod_with({{"quartermaster.io/cuda", ">=99"}}, json(), {{"cpu", 1}}),
        pod_with({{"quartermaster.io/cuda", ">=99"}}, json(), {{"nvidia.com/gpu", 0}}),
        pod_with(json::object(), env({{"CUDA_VERSION", ""}})),
        pod_with(json::object(), json::array({1, nullptr, {{"name", 3}}}))}) {
    const auto is = world.admit(pod, enforcement::deny);
    EXPECT_EQ(is.refusal, "") << pod;
    EXPECT_THAT(is.warnings, IsEmpty()) << pod;
    EXPECT_EQ(is.patch, json::array()) << pod;
  }
}

TEST(compatibility, a_sidecars_version_does_not_count) {
  auto pod = pod_with(json::object());
  pod["spec"]["containers"].push_back({{"name", "sidecar"}, {"env", env({{"CUDA_VERSION", "99.0"}})}});
  EXPECT_EQ(three().admit(pod, enforcement::deny).refusal, "");
}

TEST(compatibility, what_is_malformed_is_said_in_one_line) {
  const auto is = three().admit(needing("12.4"), enforcement::deny);
  EXPECT_THAT(is.refusal,
              AllOf(words_of_key("cuda.need.no_condition"), words::has_in_order({"quartermaster.io/cuda", "12.4"})));
  EXPECT_THAT(three().admit(needing("12.4"), enforcement::warn).warnings, ElementsAre(is.refusal));
}

TEST(compatibility, nodes_that_may_come_or_that_say_nothing_refuse_nobody) {
  world none;
  EXPECT_EQ(none.admit(needing(">=99"), enforcement::deny).refusal, "");
  EXPECT_NE(none.admit(needing(">=99"), enforcement::deny).patch, json::array());
  auto silent = three();
  silent.add("silent", {});
  const auto is = silent.admit(needing(">=99"), enforcement::deny);
  EXPECT_EQ(is.refusal, "");
  EXPECT_THAT(is.warnings, ElementsAre(words_of_key("cuda.need.not_known")));
  auto others = three();
  others.nodes.front().allocatable = {{"example.com/fpga", 1}};
  EXPECT_THAT(others.admit(needing("<12"), enforcement::deny).refusal, words_of_key("cuda.need.no_node"))
      << "the old one offers none";
}

TEST(compatibility, contradictions_are_refused) {
  EXPECT_THAT(three().admit(needing(">=12.4,<12.0"), enforcement::deny).refusal, words_of_key("cuda.need.impossible"));
  auto pod = needing(">=13");
  pod["spec"]["affinity"] =
      json::parse(R"({"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
      {"matchExpressions":[{"key":"cuda-major-version","operator":"In","values":["11"]}]}]}}})");
  EXPECT_THAT(three().admit(pod, enforcement::deny).refusal, words_of_key("cuda.need.excluded"));
}

TEST(compatibility, the_patch_fits_wherever_the_pods_affinity_begins) {
  const auto world = three();
  for (const auto* affinity :
       {"null", "{}", R"({"podAffinity":{}})", R"({"nodeAffinity":null})", R"({"nodeAffinity":{}})",
        R"({"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":null}})",
        R"({"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
                                   {"matchExpressions":[{"key":"cuda-major-version","operator":"Exists"}]}]}}})"}) {
    auto pod = needing(">=12.5");
    pod["spec"]["affinity"] = json::parse(affinity);
    const auto is = world.admit(pod, enforcement::deny);
    EXPECT_THAT(let_on(world, pod, is), ElementsAre("new")) << affinity;
    const auto patched = pod.patch(is.patch);
    if (pod["spec"]["affinity"].contains("podAffinity"))
      EXPECT_TRUE(patched["spec"]["affinity"].contains("podAffinity"));
    EXPECT_EQ(world.admit(patched, enforcement::deny).patch, json::array()) << "asked again, it has nothing to add";
  }
}

TEST(compatibility, S30_the_manuals_affinity_gets_a_warning) {
  auto pod = pod_with(json::object());
  pod["spec"]["affinity"] =
      json::parse(R"({"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
      {"matchExpressions":[{"key":"cuda-major-version","operator":"In","values":["12"]},
                           {"key":"cuda-minor-version","operator":"Gt","values":["2"]}]}]}}})");
  const auto is = three().admit(pod, enforcement::deny);
  EXPECT_EQ(is.refusal, "");
  EXPECT_THAT(is.warnings, ElementsAre(AllOf(words_of_key("cuda.need.shut_out"), HasSubstr("13.x and 12.0-12.2"))));
}

TEST(compatibility, S15_S29_a_share_of_a_card_needs_a_library_that_knows_the_runtime) {
  world world;
  world.add("old", labelled("12.2"), "tencent.com/vcuda-core");
  world.add("middle", labelled("12.8"), "tencent.com/vcuda-core");
  world.add("new", labelled("13.0"), "tencent.com/vcuda-core");
  EXPECT_THAT(let_on(world, share("12.4.0"), world.admit(share("12.4.0"), enforcement::deny)), ElementsAre("middle"))
      << "majors must be the same";
  EXPECT_THAT(
      world.admit(share("12.8.0"), enforcement::deny).refusal,
      AllOf(words_of_key("cuda.need.share_of_other_runtime"),
            words::has_in_order({"main", "tencent.com/vcuda-core", "12.8"}), words::has_in_order({"12.0", "12.4"})));
  EXPECT_THAT(world.admit(share("11.8.0"), enforcement::deny).refusal, words::has_in_order({"12.0", "12.4"}));
  EXPECT_EQ(world.admit(share("12.8.0", 100), enforcement::deny).refusal, "") << "whole cards do not go through it";
  EXPECT_THAT(world.admit(share("12.8.0"), enforcement::warn).warnings,
              ElementsAre(words::has_in_order({"12.0", "12.4"})));
}

TEST(compatibility, S15_a_share_of_a_card_that_is_cut_by_mig_is_refused) {
  world world;
  auto cut = labelled("12.4");
  cut.emplace_back("nvidia.com/mig.strategy", "single");
  world.add("cut", cut, "tencent.com/vcuda-core");
  const auto plain = pod_with(json::object(), json(), {{"tencent.com/vcuda-core", 20}});
  EXPECT_THAT(world.admit(plain, enforcement::deny).refusal,
              AllOf(HasSubstr(words::english("cuda.need.not_cut")),
                    words::has_in_order({words::english("cuda.facts.mig"), "cut"})));
  world.add("whole", labelled("12.4"), "tencent.com/vcuda-core");
  EXPECT_EQ(world.admit(plain, enforcement::deny).refusal, "");
  EXPECT_THAT(let_on(world, share("12.4.0"), world.admit(share("12.4.0"), enforcement::deny)), ElementsAre("whole"));
  const auto both = pod_with(json::object(), json(), {{"tencent.com/vcuda-core", 20}, {"nvidia.com/mig-1g.5gb", 1}});
  EXPECT_THAT(world.admit(both, enforcement::deny).refusal, words_of_key("cuda.need.next_to_mig"));
}

TEST(compatibility, S33_paddle_on_a_share_gets_a_warning_or_its_allocator) {
  const auto paddle = [](int cores, const json& variables = json(),
                         const char* image = "registry/PaddlePaddle/paddle:2.6") {
    auto out = pod_with(json::object(), variables, {{"tencent.com/vcuda-core", cores}});
    out["spec"]["containers"][0]["image"] = image;
    return out;
  };
  const world world;
  EXPECT_THAT(world.admit(paddle(20), enforcement::warn).warnings,
              ElementsAre(AllOf(words_of_key("cuda.need.paddle"), HasSubstr(words::english("cuda.need.own_allocator")),
                                HasSubstr("FLAGS_allocator_strategy=naive_best_fit"))));
  EXPECT_EQ(world.admit(paddle(20), enforcement::warn).patch, json::array());
  for (const auto& variables : {json(), json::array(), env({{"A", "b"}})}) {
    const auto pod = paddle(20, variables);
    const auto is = world.admit(pod, enforcement::warn, true);
    const auto patched = pod.patch(is.patch);
    EXPECT_EQ(patched["spec"]["containers"][0]["env"].back(),
              json({{"name", "FLAGS_allocator_strategy"}, {"value", "naive_best_fit"}}));
    EXPECT_THAT(is.warnings, ElementsAre(words_of_key("cuda.need.paddle_written")));
    EXPECT_EQ(world.admit(patched, enforcement::warn, true).patch, json::array());
  }
  EXPECT_THAT(world.admit(paddle(100), enforcement::warn, true).warnings, IsEmpty()) << "a whole card";
  EXPECT_THAT(world.admit(paddle(20, json(), "pytorch"), enforcement::warn, true).warnings, IsEmpty());
  EXPECT_THAT(
      world.admit(paddle(20, env({{"FLAGS_allocator_strategy", "naive_best_fit"}})), enforcement::warn).warnings,
      IsEmpty());
  const auto elsewhere =
      json::array({{{"name", "FLAGS_allocator_strategy"}, {"valueFrom", {{"configMapKeyRef", {{"name", "x"}}}}}}});
  EXPECT_EQ(world.admit(paddle(20, elsewhere), enforcement::warn, true).patch, json::array())
      << "what it is cannot be seen";
  auto pod = paddle(20);
  pod["spec"]["containers"][0]["envFrom"] = json::array({{{"configMapRef", {{"name", "x"}}}}});
  EXPECT_EQ(world.admit(pod, enforcement::warn, true).patch, json::array()) << "it may stand there";
  const auto chosen =
      world.admit(paddle(20, env({{"FLAGS_allocator_strategy", "auto_growth"}})), enforcement::warn, true);
  EXPECT_THAT(chosen.warnings, ElementsAre(HasSubstr("FLAGS_allocator_strategy=auto_growth")))
      << "what a person wrote is not changed";
  EXPECT_EQ(chosen.patch, json::array());
}

TEST(compatibility, S28_brute_force_pods_go_exactly_where_the_verdict_says) {
  std::mt19937 dice(4711);
  const auto up_to = [&](int n) { return std::uniform_int_distribution<int>(0, n)(dice); };
  const int rounds = test::rounds(100, 600);
  int refused = 0, placed = 0;
  for (int round = 0; round < rounds; ++round) {
    world world;
    for (int i = up_to(6); i >= 0; --i) {
      const auto cuda = std::to_string(11 + up_to(2)) + "." + std::to_string(up_to(8));
      world.add("gpu-" + std::to_string(i),
                up_to(1) ? labelled(cuda, "", "8.0") : discovered(cuda, "", std::to_string(7 + up_to(2)) + ".0"));
    }
    const version needs_cuda{11 + up_to(2), up_to(8)};
    const version needs_card{7 + up_to(2), 0};
    const auto pod = pod_with({{"quartermaster.io/cuda", ">=" + to_string(needs_cuda)},
                               {"quartermaster.io/compute-capability", ">=" + to_string(needs_card)}});
    const auto is = world.admit(pod, enforcement::deny);
    std::vector<std::string> right;
    for (const auto& node : world.nodes) {
      const auto facts = facts_of(node);
      if (facts.cuda >= needs_cuda && facts.capability >= needs_card) right.push_back(node.key.name);
    }
    EXPECT_EQ(!is.refusal.empty(), right.empty()) << pod;
    (right.empty() ? refused : placed) += 1;
    if (!right.empty()) EXPECT_EQ(let_on(world, pod, is), right) << pod;
  }
  EXPECT_GT(refused, rounds / 12);
  EXPECT_GT(placed, rounds / 12);
}

std::string review_of(const json& pod, const char* ns = "team", const char* operation = "CREATE",
                      const char* kind = "Pod") {
  return json({{"apiVersion", "admission.k8s.io/v1"},
               {"kind", "AdmissionReview"},
               {"request",
                {{"uid", "u"},
                 {"kind", {{"kind", kind}}},
                 {"operation", operation},
                 {"namespace", ns},
                 {"object", pod}}}})
      .dump();
}

TEST(compatibility, a_review_is_answered_with_patch_warning_or_refusal) {
  const auto world = three();
  std::vector<const kube::node*> nodes;
  for (const auto& node : world.nodes) nodes.push_back(&node);
  const auto ask = [&](const std::string& review) {
    return admit_review(review, nodes, {.mode = enforcement::deny}, "own");
  };
  const auto filled = ask(review_of(needing(">=12.4")));
  EXPECT_EQ(filled.outcome, "filled");
  EXPECT_EQ(json::parse(filled.body)["response"]["patchType"], "JSONPatch");
  const auto refused = ask(review_of(needing(">=99.0")));
  EXPECT_EQ(refused.outcome, "refused");
  EXPECT_THAT(json::parse(refused.body)["response"]["status"]["message"].get<std::string>(),
              AllOf(words_of_key("cuda.need.no_node"), HasSubstr("CUDA 1")));
  EXPECT_EQ(ask(review_of(needing(">=99.0"), "kube-system")).outcome, "allowed");
  EXPECT_EQ(ask(review_of(needing(">=99.0"), "own")).outcome, "allowed");
  EXPECT_EQ(ask(review_of(needing(">=99.0"), "team", "UPDATE")).outcome, "allowed");
  auto mirror = needing(">=99.0");
  mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "x";
  EXPECT_EQ(ask(review_of(mirror)).outcome, "allowed");
  EXPECT_EQ(ask("{").status, 400);
  EXPECT_EQ(ask(review_of(7)).status, 400);
}

/// Warnings of pods go to the controller that makes them; who writes its template reads them here.
TEST(compatibility, S33_S78_the_author_of_a_template_is_told) {
  const auto world = three();
  std::vector<const kube::node*> nodes;
  for (const auto& node : world.nodes) nodes.push_back(&node);
  const auto find_warning = [&](const json& pod, const char* kind, const char* operation, bool paddle = false) {
    json object = {{"spec", {{"template", pod}}}};
    if (std::string_view(kind) == "CronJob") object = {{"spec", {{"jobTemplate", object}}}};
    const auto answer = admit_review(review_of(object, "team", operation, kind), nodes,
                                     {.mode = enforcement::deny, .paddle_allocator = paddle}, "own");
    const auto response = json::parse(answer.body)["response"];
    EXPECT_EQ(response["allowed"], true) << answer.body;
    EXPECT_FALSE(response.contains("patch"));
    std::string out;
    for (const auto& warning : response.value("warnings", json::array())) out += warning.get<std::string>();
    return out;
  };
  auto paddle = pod_with(json::object(), json(), {{"tencent.com/vcuda-core", 20}});
  paddle["spec"]["containers"][0]["image"] = "paddle:2.6";
  for (const auto* kind : {"Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"}) {
    EXPECT_THAT(find_warning(paddle, kind, "CREATE"), words_of_key("cuda.need.paddle")) << kind;
    EXPECT_THAT(find_warning(needing(">=99.0"), kind, "UPDATE"),
                AllOf(words_of_key("cuda.need.pods_refused"), words_of_key("cuda.need.no_node")))
        << kind;
    EXPECT_EQ(find_warning(needing(">=12.4"), kind, "DELETE"), "") << kind;
  }
  EXPECT_EQ(find_warning(paddle, "Deployment", "CREATE", true), "") << "its pods get it written";
  EXPECT_EQ(
      admit_review(review_of(paddle, "team", "CREATE", "ReplicaSet"), nodes, {.mode = enforcement::deny}, "own").status,
      400);
}

}  // namespace
}  // namespace reconcilers::cuda
