#include "reconcilers/declarations/evaluate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reconcilers/declarations/compiled.hpp"
#include "reconcilers/declarations/pod_spec.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "reconcilers/declarations/vocabulary.hpp"
#include "test/reconcilers/declarations/config_maps.hpp"
#include "test/words.hpp"

namespace reconcilers::declarations {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using role = kube::container::role;

kube::container box(std::string name, kube::quantities limits, role kind = role::main) {
  kube::container out;
  out.name = std::move(name);
  out.kind = kind;
  out.limits = limits;
  out.requests = std::move(limits);
  return out;
}

rule_set rules_from(const std::vector<config_map_text>& config_maps, const compile_options& options = {}) {
  registry all;
  for (const auto& config_map : config_maps) all.put(config_map.view());
  return all.compile(options);
}

const auto core_with_default = sound("tencent.com/vcuda-core", "gpu-manager").with("defaultValue", "20");
const auto memory_with_default = sound("tencent.com/vcuda-memory", "gpu-manager").with("defaultValue", "10");

ruling judge_one(const rule_set& rules, const kube::container& only, const evaluation& evaluation = {}) {
  return evaluate(rules, std::span(&only, 1), "", evaluation);
}

TEST(evaluate, a_pod_that_names_no_declared_key_is_left_alone) {
  EXPECT_EQ(judge_one(rules_from({core_with_default}), box("main", {{"nvidia.com/gpu", 3}})), ruling());
}

const auto container_main = words::english("objection.container", {{"name", "main"}});
std::string source_named(const std::string& config_map) {
  return words::english("objection.source", {{"config_map", "kube-public/" + config_map}});
}
std::string legal_words(std::string_view key) {
  return text::message(vocabulary_of(key)->legal.words, text::language::en);
}
/// What is said of an amount that stands without its partner.
std::string partner_missing(const std::string& key, const std::string& amount, const std::string& other) {
  return words::english("objection.needs_partner",
                        {{"container", container_main}, {"key", key}, {"amount", amount}, {"other", other}});
}
/// The same of an amount that its vocabulary does not have. `legal`: the words for what it has.
std::string amount_not_legal(const std::string& key, const std::string& amount, const std::string& legal,
                             const std::string& nearest) {
  return words::english(
      "objection.not_legal",
      {{"container", container_main}, {"key", key}, {"amount", amount}, {"legal", legal}, {"nearest", nearest}});
}

TEST(evaluate, S24_a_disabled_key_must_not_be_set) {
  const auto rules = rules_from({sound().with("limits", "disabled").without("defaultValue")});
  const auto got = judge_one(rules, box("main", {{"example.com/fpga", 2}}));
  EXPECT_EQ(texts_of(got.refused),
            words::english("objection.forbidden", {{"container", container_main},
                                                   {"key", "example.com/fpga"},
                                                   {"amount", "2"},
                                                   {"source", source_named("cf-crl-lab-fpga")}}));
  EXPECT_TRUE(judge_one(rules, box("main", {{"example.com/fpga", 0}})).allowed()) << "none is asked for";
}

TEST(evaluate, S24_S25_a_required_key_is_filled_where_it_has_a_default_and_refused_otherwise) {
  const auto rules = rules_from({core_with_default, memory_with_default.with("limits", "required")});
  const auto filled_in = judge_one(rules, box("main", {{"tencent.com/vcuda-core", 30}}));
  EXPECT_TRUE(filled_in.allowed());
  EXPECT_THAT(filled_in.fills, ElementsAre(default_amount{0, "tencent.com/vcuda-memory", 10}));

  const auto a = sound("example.com/a", "g");
  const auto b = sound("example.com/b", "g").with("limits", "required").without("defaultValue");
  const auto unfilled = judge_one(rules_from({a, b}), box("main", {{"example.com/a", 1}}));
  EXPECT_THAT(unfilled.fills, IsEmpty());
  EXPECT_EQ(texts_of(unfilled.refused), words::english("objection.missing", {{"container", container_main},
                                                                             {"key", "example.com/b"},
                                                                             {"other", "example.com/a"},
                                                                             {"source", source_named("cf-crl-g-b")}}));
}

TEST(evaluate, S11_what_a_program_behind_a_key_refuses_is_refused_whatever_the_key) {
  const auto rules = rules_from({sound("nvidia.com/mps-core", "mps"), sound("nvidia.com/mps-memory", "mps"),
                                 sound("aliyun.com/gpu-core.percentage").with("defaultValue", "5"),
                                 sound("nvidia.com/gpucores"), core_with_default, memory_with_default});
  const auto refusal = [&](kube::quantities limits) {
    return texts_of(judge_one(rules, box("main", std::move(limits))).refused);
  };
  EXPECT_EQ(refusal({{"nvidia.com/mps-core", 150}, {"nvidia.com/mps-memory", 1}}),
            amount_not_legal("nvidia.com/mps-core", "150", legal_words("nvidia.com/mps-core"), "100"));
  EXPECT_EQ(refusal({{"nvidia.com/mps-core", 50}}),
            words::english("objection.share_needs_partner", {{"container", container_main},
                                                             {"key", "nvidia.com/mps-core"},
                                                             {"amount", "50"},
                                                             {"other", "nvidia.com/mps-memory"},
                                                             {"nearest", "100"}}));
  EXPECT_EQ(refusal({{"nvidia.com/mps-memory", 4}}),
            partner_missing("nvidia.com/mps-memory", "4", "nvidia.com/mps-core"));
  EXPECT_EQ(refusal({{"tencent.com/vcuda-memory", 4}}),
            partner_missing("tencent.com/vcuda-memory", "4", "tencent.com/vcuda-core"));
  EXPECT_EQ(
      refusal({{"aliyun.com/gpu-core.percentage", 7}}),
      amount_not_legal("aliyun.com/gpu-core.percentage", "7", legal_words("aliyun.com/gpu-core.percentage"), "5"));
  EXPECT_EQ(refusal({{"nvidia.com/gpucores", 101}}),
            amount_not_legal("nvidia.com/gpucores", "101", legal_words("nvidia.com/gpucores"), "100"));
  EXPECT_EQ(refusal({{"nvidia.com/mps-core", 200}}), "");
  EXPECT_EQ(refusal({{"aliyun.com/gpu-core.percentage", 10}}), "");
}

TEST(evaluate, S24_what_a_person_wrote_is_never_changed) {
  const auto rules = rules_from({core_with_default, memory_with_default.with("limits", "required")});
  const auto got = judge_one(rules, box("main", {{"tencent.com/vcuda-core", 200}, {"tencent.com/vcuda-memory", 0}}));
  EXPECT_THAT(got.fills, IsEmpty());
  EXPECT_TRUE(got.allowed());
  const auto a = sound("example.com/a", "g");
  const auto b = sound("example.com/b", "g").with("limits", "required");
  EXPECT_FALSE(judge_one(rules_from({a, b}), box("main", {{"example.com/a", 1}, {"example.com/b", 0}})).allowed());
}

TEST(evaluate, S24_what_a_warning_says_is_not_filled_in) {
  evaluation evaluation;
  evaluation.fill = false;
  const auto rules = rules_from({core_with_default, memory_with_default.with("limits", "required")});
  const auto got = judge_one(rules, box("main", {{"tencent.com/vcuda-core", 100}}), evaluation);
  EXPECT_TRUE(got.allowed()) << "a whole card";
  const auto share = judge_one(rules, box("main", {{"tencent.com/vcuda-core", 30}}), evaluation);
  EXPECT_THAT(share.fills, IsEmpty());
  ASSERT_EQ(share.refused.size(), 2U);
  EXPECT_EQ(share.refused[0].kind, objection_kind::needs_partner);
  EXPECT_EQ(share.refused[1].kind, objection_kind::missing);
}

TEST(evaluate, S25_whole_cards_need_no_memory_and_get_none) {
  const auto rules = rules_from({core_with_default, memory_with_default.with("limits", "required")});
  EXPECT_EQ(judge_one(rules, box("main", {{"tencent.com/vcuda-core", 200}})), ruling());
}

/// The table that the API server's form is held to as well (test/admission).
TEST(evaluate, S24_S25_every_amount_of_the_vocabulary) {
  const auto rules = rules_from({core_with_default, memory_with_default});
  const auto verdict = [](const ruling& ruling) {
    if (ruling.allowed()) return "allowed";
    if (ruling.refused.size() == 1 && ruling.refused[0].kind == objection_kind::not_legal) return "not_legal";
    return ruling.refused[0].key == "tencent.com/vcuda-memory" ? "needs_core" : "needs_memory";
  };
  std::ifstream table("test/admission/cases/vcuda-core.tsv");
  std::int64_t rows = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::int64_t amount = -1, nearest = -1;
    std::string want_alone, want_beside;
    fields >> amount >> want_alone >> want_beside >> nearest;
    ASSERT_EQ(amount, rows++);
    const auto alone = judge_one(rules, box("main", {{"tencent.com/vcuda-core", amount}}));
    const auto paired =
        judge_one(rules, box("main", {{"tencent.com/vcuda-core", amount}, {"tencent.com/vcuda-memory", 4}}));
    EXPECT_EQ(verdict(alone), want_alone) << amount;
    EXPECT_EQ(verdict(paired), want_beside) << amount;
    if (amount > 0) EXPECT_EQ(vocabulary_of("tencent.com/vcuda-core")->legal.nearest(amount), nearest) << amount;
    if (want_beside == "not_legal")
      EXPECT_EQ(texts_of(paired.refused),
                amount_not_legal("tencent.com/vcuda-core", std::to_string(amount),
                                 legal_words("tencent.com/vcuda-core"), std::to_string(nearest)));
  }
  EXPECT_EQ(rows, 1001);
}

TEST(evaluate, S25_exclusion_counts_over_the_whole_pod_and_is_said_once) {
  const auto a = sound("example.com/a", "x").with("excludeResources", "example.com/b,example.com/undeclared");
  const auto b = sound("example.com/b", "y").with("excludeResources", "example.com/a");
  const auto rules = rules_from({a, b});
  const std::vector<kube::container> two{box("fetch", {{"example.com/b", 1}}, role::init),
                                         box("main", {{"example.com/a", 2}})};
  EXPECT_EQ(texts_of(evaluate(rules, two, "").refused),
            words::english("objection.excluded", {{"container", container_main},
                                                  {"key", "example.com/a"},
                                                  {"amount", "2"},
                                                  {"other", "example.com/b"},
                                                  {"source", source_named("cf-crl-x-a")}}));
  const std::vector<kube::container> other{box("side", {{"example.com/undeclared", 1}}, role::sidecar),
                                           box("main", {{"example.com/a", 2}})};
  EXPECT_FALSE(evaluate(rules, other, "").allowed());
}

TEST(evaluate, related_and_unoffered_keys_are_said_and_never_refused) {
  const std::set<std::string, std::less<>> offered{"example.com/b"};
  compile_options options;
  options.offered = &offered;
  const auto rules = rules_from(
      {sound("example.com/a", "g").with("relatedResources", "example.com/b"), sound("example.com/b", "g")}, options);
  const auto got = judge_one(rules, box("main", {{"example.com/a", 1}}));
  EXPECT_TRUE(got.allowed());
  ASSERT_EQ(got.warnings.size(), 2U);
  EXPECT_EQ(got.warnings[0].kind, objection_kind::related_missing);
  EXPECT_EQ(got.warnings[1].kind, objection_kind::not_offered);
  const auto never = rules_from({sound("example.com/a").with("limits", "disabled")}, options);
  EXPECT_THAT(judge_one(never, box("main", {{"example.com/a", 1}})).warnings, IsEmpty())
      << "it is refused, so it does not wait";
}

TEST(evaluate, S24_one_mistake_is_said_once) {
  const auto related = core_with_default.with("relatedResources", "tencent.com/vcuda-memory");
  const auto rules = rules_from({related, memory_with_default});
  const auto share = judge_one(rules, box("main", {{"tencent.com/vcuda-core", 30}}));
  ASSERT_EQ(share.refused.size(), 1U);
  EXPECT_EQ(share.refused[0].kind, objection_kind::needs_partner);
  EXPECT_THAT(share.warnings, IsEmpty()) << "that it usually goes with what it cannot go without";
  const auto disabled = rules_from({related.with("limits", "disabled"), memory_with_default});
  EXPECT_EQ(judge_one(disabled, box("main", {{"tencent.com/vcuda-core", 30}})).warnings.size(), 1U)
      << "of a key that must not be there the partner is not refused";
}

TEST(evaluate, S72_requests_that_differ_from_limits_are_refused_in_words) {
  const auto rules = rules_from({sound()});
  auto differs = box("main", {{"example.com/fpga", 2}});
  differs.requests = {{"example.com/fpga", 1}};
  EXPECT_EQ(
      texts_of(judge_one(rules, differs).refused),
      words::english("objection.unequal",
                     {{"container", container_main}, {"key", "example.com/fpga"}, {"amount", "1"}, {"nearest", "2"}}));
  auto alone = box("main", {});
  alone.requests = {{"example.com/fpga", 1}};
  EXPECT_FALSE(judge_one(rules, alone).allowed());
  auto absent = box("main", {{"example.com/fpga", 2}});
  absent.requests.clear();
  EXPECT_TRUE(judge_one(rules, absent).allowed()) << "a template, or before they are copied";
}

TEST(evaluate, the_runtime_class_is_filled_in_where_the_pod_has_none) {
  const auto rules = rules_from({sound().with("runtimeClassName", "nvidia")});
  const auto container = box("main", {{"example.com/fpga", 1}});
  EXPECT_EQ(evaluate(rules, std::span(&container, 1), "").runtime_class, "nvidia");
  EXPECT_EQ(evaluate(rules, std::span(&container, 1), "kata").runtime_class, "");
}

TEST(evaluate, the_runtime_class_of_what_is_filled_in_counts_and_a_warning_writes_none) {
  const auto rules =
      rules_from({sound("example.com/a", "g"),
                  sound("example.com/b", "g").with("limits", "required").with("runtimeClassName", "kata")});
  const auto container = box("main", {{"example.com/a", 1}});
  EXPECT_EQ(evaluate(rules, std::span(&container, 1), "").runtime_class, "kata")
      << "a second look at the pod would find it";
  evaluation evaluation;
  evaluation.fill = false;
  EXPECT_EQ(evaluate(rules, std::span(&container, 1), "", evaluation).runtime_class, "");
}

TEST(evaluate, S24_a_request_without_a_limit_is_neither_filled_over_nor_said_twice) {
  const auto rules = rules_from({sound("example.com/a", "g"), sound("example.com/b", "g").with("limits", "required")});
  auto container = box("main", {{"example.com/a", 1}});
  container.requests.emplace_back("example.com/b", 3);
  const auto got = judge_one(rules, container);
  EXPECT_THAT(got.fills, IsEmpty());
  ASSERT_EQ(got.refused.size(), 1U);
  EXPECT_EQ(got.refused[0].kind, objection_kind::unequal);
}

TEST(evaluate, S25_whole_cards_that_are_filled_in_get_no_memory_either) {
  const auto rules =
      rules_from({core_with_default.with("limits", "required").with("defaultValue", "100"),
                  memory_with_default.with("limits", "required"), sound("example.com/third", "gpu-manager")});
  EXPECT_THAT(judge_one(rules, box("main", {{"example.com/third", 1}})).fills,
              ElementsAre(default_amount{0, "tencent.com/vcuda-core", 100}));
}

TEST(evaluate, related_keys_that_nobody_declares_are_not_asked_for) {
  const auto rules = rules_from({sound("example.com/a", "g").with("relatedResources", "example.com/undeclared")});
  EXPECT_EQ(judge_one(rules, box("main", {{"example.com/a", 1}})), ruling());
}

TEST(evaluate, S25_what_the_pod_must_not_have_together_is_said_after_each_container) {
  const auto a = sound("example.com/a", "x").with("excludeResources", "example.com/b");
  const auto c = sound("example.com/c", "y").with("limits", "disabled").without("defaultValue");
  const std::vector<kube::container> two{box("one", {{"example.com/a", 1}}),
                                         box("two", {{"example.com/b", 1}, {"example.com/c", 1}})};
  const auto got = evaluate(rules_from({a, sound("example.com/b", "z"), c}), two, "");
  ASSERT_EQ(got.refused.size(), 2U);
  EXPECT_EQ(got.refused[0].kind, objection_kind::forbidden);
  EXPECT_EQ(got.refused[1].kind, objection_kind::excluded);
}

TEST(compiled, a_group_without_its_members_does_no_harm) {
  const auto rules = rules_of(nlohmann::json::parse(
      R"({"keys":["a.b/c"],"rules":{"a.b/c":{"source":"x/y","group":"g","must":true}},"groups":{"g":["d.e/f"]}})"));
  EXPECT_EQ(judge_one(rules, box("main", {{"a.b/c", 1}})), ruling());
}

TEST(evaluate, S26_golden_words_in_chinese) {
  const auto rules =
      rules_from({core_with_default, memory_with_default, sound().with("limits", "disabled").without("defaultValue")});
  const auto got =
      judge_one(rules, box("main", {{"example.com/fpga", 1}, {"tencent.com/vcuda-core", 130}}, role::init));
  EXPECT_EQ(texts_of(got.refused, text::language::zh),
            "初始化容器 main：example.com/fpga 的值为 1，但不允许设置（ConfigMap kube-public/cf-crl-lab-fpga）；"
            "初始化容器 main：tencent.com/vcuda-core 的值为 130；允许 1 到 99（共享一张卡）或 100 "
            "的倍数（整卡），最接近的是 100");
}

TEST(evaluate, what_is_said_stays_within_what_cel_may_return) {
  std::vector<kube::container> many;
  for (int i = 0; i < 200; ++i) many.push_back(box("c" + std::to_string(i), {{"tencent.com/vcuda-core", 130}}));
  EXPECT_EQ(texts_of(evaluate(rules_from({core_with_default}), many, "").refused).size(), 3800U);
}

TEST(compiled, comes_back_as_it_was) {
  const std::set<std::string, std::less<>> offered{"example.com/b"};
  compile_options options;
  options.offered = &offered;
  const auto rules = rules_from({core_with_default, memory_with_default.with("limits", "required"),
                                 sound().with("limits", "disabled").without("defaultValue"),
                                 sound("example.com/a", "x")
                                     .with("excludeResources", "tencent.com/vcuda-core")
                                     .with("runtimeClassName", "nvidia")},
                                options);
  EXPECT_EQ(rules_of(spec_of(rules)), rules);
  const auto spec = spec_of(rules);
  EXPECT_THAT(spec["keys"],
              ElementsAre("example.com/a", "example.com/fpga", "tencent.com/vcuda-core", "tencent.com/vcuda-memory"));
  const quota::amounts& core_amounts = vocabulary_of("tencent.com/vcuda-core")->legal;
  const nlohmann::json amounts = {
      {"from", 1}, {"to", 99}, {"step", 1}, {"whole", 100}, {"words", words::english(core_amounts.words)}};
  EXPECT_EQ(spec["rules"]["tencent.com/vcuda-core"]["amounts"], amounts);
  EXPECT_EQ(spec["amounts"]["tencent.com/vcuda-core"], amounts);
  EXPECT_EQ(spec["rules"]["tencent.com/vcuda-core"]["podAmount"],
            (nlohmann::json{{"name", "tencent.com/vcuda-core-limit"},
                            {"label", false},
                            {"to", 100},
                            {"words", words::english(vocabulary_of("tencent.com/vcuda-core")->on_pod.words)}}));
  EXPECT_EQ(spec["rules"]["tencent.com/vcuda-memory"]["partner"], "tencent.com/vcuda-core");
  EXPECT_EQ(spec["rules"]["tencent.com/vcuda-memory"]["waivedBy"], "tencent.com/vcuda-core");
}

TEST(evaluate, a_percentage_stands_for_the_memory_in_mib) {
  const auto rules =
      rules_from({sound("nvidia.com/gpualloc", "hami").with("relatedResources", "nvidia.com/gpumem"),
                  sound("nvidia.com/gpumem", "hami").with("defaultValue", "4000").with("limits", "required"),
                  sound("nvidia.com/gpumem-percentage", "hami").without("defaultValue")});
  const auto got = judge_one(rules, box("main", {{"nvidia.com/gpualloc", 4}, {"nvidia.com/gpumem-percentage", 100}}));
  EXPECT_EQ(got, ruling()) << "4000 MiB next to it would be another amount of the same memory";
  EXPECT_EQ(spec_of(rules)["rules"]["nvidia.com/gpumem"]["waivedBy"], "nvidia.com/gpumem-percentage");
  EXPECT_EQ(spec_of(rules)["rules"]["nvidia.com/gpumem"]["waivedFrom"], 1);
  EXPECT_EQ(judge_one(rules, box("main", {{"nvidia.com/gpualloc", 4}})).fills.size(), 1U);
}

TEST(evaluate, a_second_share_is_refused_where_the_plugin_refuses_it) {
  const auto shared = sound("nvidia.com/gpu.shared").without("defaultValue");
  compile_options options;
  options.one_only = "nvidia.com/gpu.shared";
  const auto strict = rules_from({shared}, options);
  EXPECT_THAT(texts_of(judge_one(strict, box("main", {{"nvidia.com/gpu.shared", 2}})).refused),
              testing::HasSubstr(words::english("engine.refusal.one_share")));
  EXPECT_TRUE(judge_one(strict, box("main", {{"nvidia.com/gpu.shared", 1}})).allowed());
  EXPECT_TRUE(judge_one(rules_from({shared}), box("main", {{"nvidia.com/gpu.shared", 2}})).allowed());
  EXPECT_EQ(spec_of(strict)["rules"]["nvidia.com/gpu.shared"]["amounts"]["to"], 1);
  EXPECT_EQ(rules_of(spec_of(strict)), strict);
}

TEST(evaluate, S49_what_the_pod_says_beside_a_key_is_held_to_what_is_allowed) {
  const auto rules = rules_from({core_with_default, memory_with_default});
  const auto judge_limit = [&](std::string_view limit, std::int64_t cores, text::language lang = text::language::en) {
    const pod_amounts written{{"tencent.com/vcuda-core-limit", std::string(limit)}};
    evaluation evaluation;
    evaluation.on_pod = &written;
    const auto container = box("main", {{"tencent.com/vcuda-core", cores}, {"tencent.com/vcuda-memory", 4}});
    return texts_of(judge_one(rules, container, evaluation).refused, lang);
  };
  EXPECT_EQ(judge_limit("50", 50), "");
  EXPECT_EQ(judge_limit("100", 50), "");
  EXPECT_EQ(judge_limit("200", 200), "");
  EXPECT_EQ(judge_limit("banana", 50),
            words::english("objection.pod_amount_no_number",
                           {{"container", container_main},
                            {"kind", words::english("objection.annotation")},
                            {"other", "tencent.com/vcuda-core-limit"},
                            {"key", "tencent.com/vcuda-core"},
                            {"amount", "50"},
                            {"on_pod", words::english(vocabulary_of("tencent.com/vcuda-core")->on_pod.words)}}));
  EXPECT_EQ(judge_limit("49", 50),
            words::english("objection.pod_amount",
                           {{"container", container_main},
                            {"kind", words::english("objection.annotation")},
                            {"other", "tencent.com/vcuda-core-limit"},
                            {"nearest", "49"},
                            {"key", "tencent.com/vcuda-core"},
                            {"amount", "50"},
                            {"on_pod", words::english(vocabulary_of("tencent.com/vcuda-core")->on_pod.words)}}));
  EXPECT_THAT(judge_limit("banana", 50, text::language::zh), HasSubstr("tencent.com/vcuda-core-limit"));
}

TEST(evaluate, S49_reads_only_what_carries_an_amount_and_where_it_does) {
  const std::map<std::string, std::string> names{{"tencent.com/vcuda-core-limit", "50"}, {"aliyun.com/gpu-count", "2"}};
  EXPECT_THAT(pod_amounts_in(names, std::map<std::string, std::string>{}),
              ElementsAre(std::pair<std::string, std::string>("tencent.com/vcuda-core-limit", "50")));
  EXPECT_THAT(pod_amounts_in(std::map<std::string, std::string>{}, names),
              ElementsAre(std::pair<std::string, std::string>("aliyun.com/gpu-count", "2")));
}

TEST(evaluate, F38_a_pod_beyond_the_bounds_is_refused_and_nothing_is_filled_in) {
  const auto rules = rules_from({core_with_default, memory_with_default.with("limits", "required")});
  const auto evaluate_pod = [&](std::size_t containers, std::size_t limits) {
    std::vector<kube::container> all(containers, box("main", {}));
    if (!all.empty()) all.back() = box("last", {{"tencent.com/vcuda-core", 30}});
    evaluation evaluation;
    evaluation.limits = limits;
    return evaluate(rules, all, "", evaluation);
  };
  EXPECT_EQ(evaluate_pod(256, 2048).fills.size(), 1U);
  for (const auto& got : {evaluate_pod(257, 0), evaluate_pod(1, 2049)}) {
    EXPECT_THAT(got.fills, IsEmpty());
    EXPECT_EQ(texts_of(got.refused), words::english("objection.too_large"));
    EXPECT_EQ(texts_of(got.refused, text::language::zh), words::chinese("objection.too_large"));
  }
  const std::vector<kube::container> others(300, box("main", {{"nvidia.com/gpu", 1}}));
  EXPECT_EQ(evaluate(rules, others, ""), ruling()) << "it names no declared key";
}

TEST(compiled, F36_what_others_wrote_into_the_object_is_read_without_harm) {
  using nlohmann::json;
  for (const auto* text :
       {"null", "[]", "3", R"({"rules":[]})", R"({"rules":{"a/b":3}})", R"({"rules":{"a/b":{"fill":7,"must":"x"}}})",
        R"({"groups":{"g":{"a":1}}})", R"({"rules":{"a/b":{"fill":"-7","source":"no-slash"}}})"})
    EXPECT_NO_THROW(rules_of(json::parse(text))) << text;
  EXPECT_FALSE(rules_of(json::parse(R"({"rules":{"a/b":{"fill":"-7"}}})")).rules[0].fill);
}

TEST(compiled, names_the_config_maps_its_rules_came_from) {
  const auto rules = rules_from({core_with_default, memory_with_default});
  EXPECT_THAT(sources_of(spec_of(rules).dump()), testing::ElementsAre(core_with_default.key, memory_with_default.key));
  for (const auto* other : {"", "null", "[]", "{\"rules\":[]}", "{\"rules\":{\"a/b\":1}}", "{\"rules\":"})
    EXPECT_THAT(sources_of(other), testing::IsEmpty()) << other;
}

TEST(compiled, what_does_not_fit_is_left_out_and_counted) {
  std::vector<config_map_text> many;
  for (int i = 0; i < 12'000; ++i)
    many.push_back(sound("example.com/r" + std::to_string(i), "g").with("limits", "required"));
  const auto whole = rules_from(many);
  const auto part = fitting(whole);
  EXPECT_GT(part.left_out, 0U);
  EXPECT_EQ(part.rules.rules.size() + part.left_out, whole.rules.size());
  EXPECT_LE(spec_of(part.rules).dump().size(), max_spec_bytes);
  EXPECT_EQ(part.rules.groups[0].members.size(), part.rules.rules.size());
}

TEST(pod_spec, reads_what_counts_and_in_the_order_of_the_projection) {
  const auto got = parse_pod_spec(R"({"runtimeClassName":"kata","containers":[{"name":"main","resources":{"limits":{
    "cpu":"1","example.com/b":2,"example.com/a":"1k"},"requests":{"example.com/b":"2"}}}],"initContainers":[
    {"name":"one"},{"name":"two","restartPolicy":"Always","resources":{"limits":{"example.com/a":"x"}}}]})");
  ASSERT_TRUE(got) << got.error().message;
  ASSERT_EQ(got->containers.size(), 3U);
  EXPECT_EQ(got->init, 2U);
  EXPECT_EQ(got->runtime_class, "kata");
  EXPECT_EQ(got->containers[1].kind, role::sidecar);
  EXPECT_THAT(got->containers[1].limits, IsEmpty());
  EXPECT_THAT(got->containers[2].limits, ElementsAre(std::pair<std::string, std::int64_t>("example.com/a", 1000),
                                                     std::pair<std::string, std::int64_t>("example.com/b", 2)));
  EXPECT_EQ(got->path(1), "/spec/initContainers/1");
  EXPECT_EQ(got->path(2), "/spec/containers/0");
  EXPECT_EQ(got->limits, 4U) << "cpu and what is no amount count";
  EXPECT_FALSE(parse_pod_spec("{\"containers\":"));
}

}  // namespace
}  // namespace reconcilers::declarations
