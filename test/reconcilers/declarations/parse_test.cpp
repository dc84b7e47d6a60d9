#include "reconcilers/declarations/parse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "test/reconcilers/declarations/config_maps.hpp"
#include "test/words.hpp"

namespace reconcilers::declarations {
namespace {

struct expectation {
  std::string_view name;
  config_map_text source;
  error_code expected;
  std::string field, value, allowed, remedy;
};

void PrintTo(const expectation& e, std::ostream* out) { *out << e.name; }

class one_mistake : public testing::TestWithParam<expectation> {};

TEST_P(one_mistake, is_named_with_field_and_value) {
  const auto& want = GetParam();
  const auto findings = findings_of(want.source);
  ASSERT_EQ(findings.size(), 1U) << findings.size();
  const auto& f = findings.front();
  EXPECT_EQ(to_string(f.kind), to_string(want.expected));
  EXPECT_EQ(f.field, want.field);
  EXPECT_EQ(f.value, want.value);
  EXPECT_EQ(f.config_map, want.source.key);
  EXPECT_EQ(parse(want.source.view()).value.sound, severity_of(f) == text::severity::warning);
}

TEST_P(one_mistake, golden_words_say_what_is_wrong_what_is_allowed_and_what_to_do) {
  const auto& want = GetParam();
  const auto findings = findings_of(want.source);
  ASSERT_EQ(findings.size(), 1U) << findings.size();
  const auto& f = findings.front();
  if (!want.allowed.empty()) EXPECT_EQ(allowed_of(f, text::language::en), want.allowed);
  EXPECT_EQ(remedy_of(f, text::language::en), want.remedy);
  const auto message = message_of(f, text::language::en);
  EXPECT_THAT(message, testing::HasSubstr(f.field));
  EXPECT_THAT(message, testing::HasSubstr(f.value));
  EXPECT_THAT(message, testing::EndsWith(want.remedy));
  EXPECT_THAT(message_of(f, text::language::zh), testing::HasSubstr(f.field));
}

const std::string enabled = "features.cpaas.io/enabled";
const std::string group = "features.cpaas.io/group";
const std::string limits_words = "disabled, required, optional";
const std::string requests_words = "disabled, required, optional, fromLimits";

INSTANTIATE_TEST_SUITE_P(
    declaration, one_mistake,
    testing::Values(
        expectation{"key_missing", sound().without("key"), error_code::missing, "data.key", "", "<domain>/<name>",
                    "add data.key"},
        expectation{"key_empty", sound().with("key", " "), error_code::missing, "data.key", "", "", "add data.key"},
        expectation{"key_without_domain", sound().with("key", "fpga"), error_code::key_without_domain, "data.key",
                    "fpga", "", "write the name the device plugin advertises on the node"},
        expectation{"key_in_kubernetes_io", sound().with("key", "kubernetes.io/fpga"), error_code::key_native,
                    "data.key", "kubernetes.io/fpga", "", "write the name the device plugin advertises on the node"},
        expectation{"key_of_a_quota", sound().with("key", "requests.nvidia.com/gpu"), error_code::key_native,
                    "data.key", "requests.nvidia.com/gpu", "",
                    "write the name the device plugin advertises on the node"},
        expectation{"key_upper_case_domain", sound().with("key", "Example.COM/Fpga"), error_code::key_malformed,
                    "data.key", "Example.COM/Fpga", "", "write \"example.com/Fpga\""},
        expectation{"key_two_slashes", sound().with("key", "example.com/a/b"), error_code::key_malformed, "data.key",
                    "example.com/a/b", "", "write the name the device plugin advertises on the node"},
        expectation{"limits_missing", sound().without("limits"), error_code::missing, "data.limits", "", limits_words,
                    "add data.limits"},
        expectation{"requests_missing", sound().without("requests"), error_code::missing, "data.requests", "",
                    requests_words, "add data.requests"},
        expectation{"S24_limits_swapped_letters", sound().with("limits", "requried"), error_code::not_in_vocabulary,
                    "data.limits", "requried", limits_words, "write \"required\""},
        expectation{"S24_limits_wrong_case", sound().with("limits", "Optional"), error_code::not_in_vocabulary,
                    "data.limits", "Optional", limits_words, "write \"optional\""},
        expectation{"S24_limits_far_off", sound().with("limits", "maybe"), error_code::not_in_vocabulary, "data.limits",
                    "maybe", limits_words, "use one of them"},
        expectation{"S24_limits_cannot_come_from_limits", sound().with("limits", "fromLimits"),
                    error_code::not_in_vocabulary, "data.limits", "fromLimits", limits_words, "use one of them"},
        expectation{"S24_requests_dashed", sound().with("requests", "from-limits"), error_code::not_in_vocabulary,
                    "data.requests", "from-limits", requests_words, "write \"fromLimits\""},
        expectation{"enabled_missing", sound().unlabelled(enabled), error_code::enabled_missing,
                    "metadata.labels[" + enabled + "]", "", "true, false", "add the label"},
        expectation{"enabled_yes", sound().labelled(enabled, "yes"), error_code::not_in_vocabulary,
                    "metadata.labels[" + enabled + "]", "yes", "true, false", "write \"true\""},
        expectation{"enabled_upper_case", sound().labelled(enabled, "False"), error_code::not_in_vocabulary,
                    "metadata.labels[" + enabled + "]", "False", "true, false", "write \"false\""},
        expectation{"default_is_a_word", sound().with("defaultValue", "half"), error_code::default_not_a_number,
                    "data.defaultValue", "half", "", "write a number, or leave it empty"},
        expectation{"default_with_unit", sound().with("defaultValue", "20Mi"), error_code::default_not_a_number,
                    "data.defaultValue", "20Mi", "", "write \"20\"; the unit belongs in data.resourceUnit"},
        expectation{"default_with_fraction", sound().with("defaultValue", "0.5"), error_code::default_not_a_number,
                    "data.defaultValue", "0.5", "", "write a number, or leave it empty"},
        expectation{"default_negative", sound().with("defaultValue", "-1"), error_code::default_not_a_number,
                    "data.defaultValue", "-1", "", "write a number, or leave it empty"},
        expectation{"default_too_large", sound().with("defaultValue", "9223372036854775808"),
                    error_code::default_not_a_number, "data.defaultValue", "9223372036854775808", "",
                    "write a number, or leave it empty"},
        expectation{"type_missing", sound().without("dataType"), error_code::data_type, "data.dataType", "", "integer",
                    "write \"integer\""},
        expectation{"type_other", sound().with("dataType", "vGPU"), error_code::data_type, "data.dataType", "vGPU",
                    "integer", "write \"integer\""},
        expectation{"group_label_differs", sound().with("group", "labs"), error_code::group_differs, "data.group",
                    "labs", "", "make data.group and the label equal"},
        expectation{"group_label_missing", sound().unlabelled(group), error_code::group_missing,
                    "metadata.labels[" + group + "]", "", "", "add metadata.labels[" + group + "]"},
        expectation{"group_data_missing", sound().without("group"), error_code::group_missing, "data.group", "", "",
                    "add data.group"},
        expectation{"group_nowhere", sound().without("group").unlabelled(group), error_code::group_absent, "data.group",
                    "", "", "add both"},
        expectation{"group_malformed", sound().with("group", "a b").unlabelled(group).labelled(group, "a b"),
                    error_code::group_malformed, "data.group", "a b", "", "write a legal label value"},
        expectation{"S23_unknown_field_near_a_known_one", sound().with("labelEN", "x"), error_code::unknown_field,
                    "data.labelEN", "", "", "did you mean data.labelEn?"},
        expectation{"S23_unknown_field", sound().with("colour", "red"), error_code::unknown_field, "data.colour", "",
                    "", "remove it"},
        expectation{"group_names_not_json", sound().with("groupI18n", "zh=实验室"), error_code::group_names_malformed,
                    "data.groupI18n", "zh=实验室", "", "write an object with the two texts zh and en"},
        expectation{"group_names_half", sound().with("groupI18n", R"({"zh":"x"})"), error_code::group_names_malformed,
                    "data.groupI18n", R"({"zh":"x"})", "", "write an object with the two texts zh and en"},
        expectation{"unit_in_chinese", sound().with("resourceUnit", "个"), error_code::unit_not_plain,
                    "data.resourceUnit", "个", "", "write such a unit"},
        expectation{"node_check_yes", sound().with("ignoreNodeCheck", "yes"), error_code::flag_not_boolean,
                    "data.ignoreNodeCheck", "yes", "true, false", "write \"true\""},
        expectation{"runtime_class", sound().with("runtimeClassName", "no spaces"), error_code::runtime_class_malformed,
                    "data.runtimeClassName", "no spaces", "", "write a lower-case DNS name"},
        expectation{"related_malformed", sound().with("relatedResources", "fpga-memory"),
                    error_code::list_item_malformed, "data.relatedResources", "fpga-memory", "",
                    "correct or remove it"},
        expectation{"excluded_upper_case", sound().with("excludeResources", "EXAMPLE.com/gpu"),
                    error_code::list_item_malformed, "data.excludeResources", "EXAMPLE.com/gpu", "",
                    "write \"example.com/gpu\""},
        expectation{"related_itself", sound().with("relatedResources", "example.com/fpga"),
                    error_code::list_names_itself, "data.relatedResources", "example.com/fpga", "", "remove it"},
        expectation{"related_and_excluded",
                    sound().with("relatedResources", "example.com/a").with("excludeResources", "example.com/a"),
                    error_code::related_and_excluded, "data.excludeResources", "example.com/a", "",
                    "take \"example.com/a\" out of one of them"},
        expectation{"limits_off_requests_required",
                    sound().with("limits", "disabled").with("requests", "required").without("defaultValue"),
                    error_code::impossible_requests, "data.requests", "required", "",
                    "set data.limits to \"optional\", or data.requests to \"disabled\""},
        expectation{"default_the_plugin_refuses", sound("tencent.com/vcuda-core").with("defaultValue", "150"),
                    error_code::default_not_legal, "data.defaultValue", "150",
                    "1 to 99 (a share of a card) and multiples of 100 (whole cards)",
                    "write \"100\", or leave it empty"},
        expectation{"default_of_no_share", sound("tencent.com/vcuda-core").with("defaultValue", "0"),
                    error_code::default_not_legal, "data.defaultValue", "0",
                    "1 to 99 (a share of a card) and multiples of 100 (whole cards)", "write \"1\", or leave it empty"},
        expectation{
            "nobody_may_use_it", sound().with("limits", "disabled").without("defaultValue"), error_code::unusable,
            "data.limits", "disabled", "",
            "if no one shall use it, set the enabled label to \"false\"; otherwise set data.limits to \"optional\""},
        expectation{"S22_domains_differ",
                    sound()
                        .labelled("features.alauda.io/type", "CustomResourceLimitation")
                        .labelled("features.alauda.io/enabled", "false"),
                    error_code::label_domains_differ, "metadata.labels[features.alauda.io/enabled]", "false", "",
                    "remove the label of features.alauda.io, or make them equal"},
        expectation{"name", sound().named("my-fpga"), error_code::name_without_prefix, "metadata.name", "my-fpga", "",
                    "give it such a name, which is what the console and people look for"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(declaration, S21_reads_the_manuals_form_and_todays_form) {
  const auto manual = parse(sound("tencent.com/vcuda-core", "gpu-manager", "features.alauda.io/").view());
  EXPECT_THAT(manual.findings, testing::IsEmpty());
  EXPECT_EQ(manual.value.written_in, dialect::alauda);
  const auto today = parse(sound("nvidia.com/gpualloc", "hami-nvidia").view());
  EXPECT_THAT(today.findings, testing::IsEmpty());
  EXPECT_EQ(today.value.written_in, dialect::cpaas);
}

TEST(declaration, S22_is_selected_by_the_type_label_of_either_domain_and_never_by_name) {
  EXPECT_EQ(kind_of(sound("a.b/c", "g", "features.alauda.io/").named("anything").view()), kind::declaration);
  EXPECT_EQ(kind_of(sound("a.b/c", "g", "features.cpaas.io/").view()), kind::declaration);
  EXPECT_EQ(kind_of(device().view()), kind::device_config);
  EXPECT_EQ(kind_of(config_map_text{}.view()), kind::none) << "the name alone says nothing";
  EXPECT_EQ(kind_of(sound().labelled("features.cpaas.io/type", "Other").view()), kind::none);
}

TEST(declaration, S22_takes_the_newer_domain_where_both_disagree) {
  const auto both = sound()
                        .labelled("features.alauda.io/type", "CustomResourceLimitation")
                        .labelled("features.alauda.io/enabled", "false");
  const auto got = parse(both.view());
  EXPECT_EQ(got.value.written_in, dialect::both);
  EXPECT_TRUE(got.value.enabled);
}

TEST(declaration, S23_reads_every_field) {
  auto source = sound("nvidia.com/gpucores", "hami-nvidia");
  source.data.insert({{"labelEn", "cores"},
                      {"labelZh", "算力"},
                      {"groupI18n", R"({"zh":"HAMi 组","en":"HAMi"})"},
                      {"resourceUnit", "%"},
                      {"relatedResources", "nvidia.com/gpumem, nvidia.com/gpualloc,,nvidia.com/gpumem"},
                      {"excludeResources", "tencent.com/vcuda-core"},
                      {"ignoreNodeCheck", "true"},
                      {"runtimeClassName", "nvidia"}});
  source.data["limits"] = "required";
  source.data["requests"] = "fromLimits";
  source.data["defaultValue"] = " 20 ";
  source.created = 7;
  const auto [declaration, findings] = parse(source.view());
  EXPECT_THAT(findings, testing::IsEmpty());
  EXPECT_EQ(declaration.key, "nvidia.com/gpucores");
  EXPECT_EQ(declaration.group, "hami-nvidia");
  EXPECT_EQ(declaration.created, 7);
  EXPECT_EQ(declaration.limits, use::required);
  EXPECT_EQ(declaration.requests, use::from_limits);
  EXPECT_EQ(declaration.default_value, 20);
  EXPECT_EQ(declaration.unit, "%");
  EXPECT_EQ(declaration.related, (std::vector<std::string>{"nvidia.com/gpualloc", "nvidia.com/gpumem"}));
  EXPECT_EQ(declaration.excluded, std::vector<std::string>{"tencent.com/vcuda-core"});
  EXPECT_TRUE(declaration.ignore_node_check);
  EXPECT_EQ(declaration.runtime_class, "nvidia");
  EXPECT_TRUE(declaration.in_force());
}

TEST(declaration, S23_has_no_default_where_the_field_is_empty_or_absent) {
  EXPECT_FALSE(parse(sound().with("defaultValue", "").view()).value.default_value);
  EXPECT_FALSE(parse(sound().without("defaultValue").view()).value.default_value);
  EXPECT_EQ(parse(sound().with("defaultValue", "0").view()).value.default_value, 0);
}

TEST(declaration, S24_knows_every_word_of_the_vocabulary) {
  for (const std::string limits : {"disabled", "required", "optional"}) {
    for (const std::string requests : {"disabled", "required", "optional", "fromLimits"}) {
      const auto [declaration, findings] =
          parse(sound().with("limits", limits).with("requests", requests).without("defaultValue").view());
      EXPECT_EQ(to_string(declaration.limits), limits);
      EXPECT_EQ(to_string(declaration.requests), requests);
      const bool impossible = limits == "disabled" && requests == "required";
      EXPECT_EQ(declaration.sound, !impossible) << limits << " " << requests;
      EXPECT_EQ(findings.empty(), limits != "disabled");
    }
  }
}

TEST(declaration, says_that_a_default_without_limits_is_never_used) {
  const auto findings = findings_of(sound().with("limits", "disabled"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, error_code::default_unused);
}

TEST(declaration, S26_has_texts_in_both_languages_and_falls_back_to_the_other) {
  auto source = sound().with("labelEn", "FPGA").with("groupI18n", R"({"zh":"实验室","en":"Laboratory"})");
  const auto declaration = parse(source.view()).value;
  EXPECT_EQ(declaration.description(text::language::en), "Cards");
  EXPECT_EQ(declaration.description(text::language::zh), "卡");
  EXPECT_EQ(declaration.label(text::language::zh), "FPGA");
  EXPECT_EQ(declaration.group_label(text::language::en), "Laboratory");
  EXPECT_EQ(declaration.group_label(text::language::zh), "实验室");
}

TEST(declaration, belongs_into_its_namespace) {
  auto elsewhere = sound();
  elsewhere.key.ns = "default";
  const auto findings = findings_of(elsewhere);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].kind, error_code::wrong_namespace);
  EXPECT_EQ(findings[0].hint, "kube-public");
  parse_settings settings;
  settings.ns = "default";
  EXPECT_THAT(parse(elsewhere.view(), settings).findings, testing::IsEmpty());
}

TEST(declaration, F35_ignores_binary_data_and_says_so) {
  const auto source = sound();
  auto view = source.view();
  view.binary = 3;
  const auto findings = parse(view).findings;
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(to_string(findings[0].kind), "binary_data");
  EXPECT_EQ(findings[0].field, "binaryData");
  EXPECT_EQ(findings[0].count, 3U);
}

TEST(device_config, names_the_node_label) {
  const auto [config, findings] = parse_device(device().view());
  EXPECT_THAT(findings, testing::IsEmpty());
  EXPECT_EQ(config.name, "HAMi");
  EXPECT_EQ(config.label_key, "gpu");
  EXPECT_EQ(config.label_value, "on");
}

TEST(device_config, is_refused_without_a_legal_label) {
  const auto codes = [](const config_map_text& config_map_text) {
    std::vector<error_code> out;
    for (const auto& f : parse_device(config_map_text.view()).findings) out.push_back(f.kind);
    return out;
  };
  EXPECT_EQ(codes(device().without("nodeLabelKey")), std::vector{error_code::missing});
  EXPECT_EQ(codes(device().without("deviceName")), std::vector{error_code::missing});
  EXPECT_EQ(codes(device("x", "a b")), std::vector{error_code::device_label_key_malformed});
  EXPECT_EQ(codes(device("x", "a", "!")), std::vector{error_code::device_label_value_malformed});
  EXPECT_EQ(codes(device().with("nodeLabel", "x")), std::vector{error_code::unknown_field});
}

TEST(words, S26_are_complete_in_both_languages_for_every_finding) {
  for (std::size_t i = 0; i < code_count; ++i) {
    const finding all{.kind = static_cast<error_code>(i),
                      .config_map = {},
                      .field = "f",
                      .value = "v",
                      .allowed = "a",
                      .hint = "h",
                      .other = "o",
                      .count = 7};
    for (const auto locale : {text::language::en, text::language::zh}) {
      const auto fact = fact_of(all, locale);
      EXPECT_FALSE(pattern_of(fact, "remedy", locale).empty()) << fact.code;
      EXPECT_THAT(std::string(pattern_of(fact, "wrong", locale)), testing::HasSubstr("{field}")) << fact.code;
      for (const auto* mark : {"{field}", "{value}", "{allowed}", "{hint}", "{other}", "{count}"})
        EXPECT_THAT(message_of(all, locale), testing::Not(testing::HasSubstr(mark))) << fact.code;
    }
  }
}

}  // namespace
}  // namespace reconcilers::declarations
