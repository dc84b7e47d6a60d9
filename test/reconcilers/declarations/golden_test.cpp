// Every file of test/golden/crl is a set of ConfigMaps judged together; next to it the verdicts they get, as people
// would read them. QM_GOLDEN=write writes what is missing or differs.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reconcilers/declarations/verdict.hpp"
#include "test/reconcilers/declarations/config_maps.hpp"

namespace reconcilers::declarations {
namespace {

using nlohmann::ordered_json;
const std::filesystem::path folder = std::filesystem::path(TEST_DATA) / "golden/crl";

std::string slurp(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::stringstream out;
  out << stream.rdbuf();
  return out.str();
}

/// Verdicts by ConfigMap, and below each the same findings in Chinese.
std::string verdicts_of(const std::string& name) {
  ordered_json out = ordered_json::object();
  for (const auto& entry : judge_together(read_config_maps(folder / (name + ".yaml")))) {
    auto annotation = ordered_json::parse(annotation_of(entry));
    for (const auto& f : entry.findings) annotation["zh"].push_back(message_of(f, text::language::zh));
    out[entry.config_map.name] = std::move(annotation);
  }
  return out.dump(2) + "\n";
}

void expect_golden(const std::string& name) {
  const auto file = folder / (name + ".verdict.json");
  const auto got = verdicts_of(name);
  const auto* write = std::getenv("QM_GOLDEN");
  if (write && std::string_view(write) == "write") std::ofstream(file) << got;
  EXPECT_EQ(got, slurp(file)) << file;
}

TEST(crl_golden, S21_S22_S25_the_manuals_two_declarations) { expect_golden("manual-vcuda"); }
TEST(crl_golden, S21_S22_S23_S26_todays_hami_declarations) { expect_golden("platform-hami-nvidia"); }
TEST(crl_golden, S21_S22_S23_todays_ascend_declarations) { expect_golden("platform-hami-ascend"); }
TEST(crl_golden, S21_S22_S23_todays_whole_card_declarations) { expect_golden("platform-whole-cards"); }
TEST(crl_golden, two_device_configurations_with_one_label) { expect_golden("platform-two-npu-configs"); }
TEST(crl_golden, S25_both_dialects_together) { expect_golden("both-dialects-together"); }
TEST(crl_golden, S22_both_labels_on_one_config_map) { expect_golden("both-labels-on-one"); }
TEST(crl_golden, a_key_declared_twice) { expect_golden("duplicate-key"); }
TEST(crl_golden, S27_a_resource_of_any_vendor) { expect_golden("any-vendor"); }
TEST(crl_golden, S24_three_mistakes) { expect_golden("three-mistakes"); }
TEST(crl_golden, S23_everything_wrong_at_once) { expect_golden("everything-wrong"); }

TEST(crl_golden, every_input_has_a_test) {
  const auto source = slurp(std::filesystem::path(TEST_DATA) / "reconcilers/declarations/golden_test.cpp");
  std::size_t inputs = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".yaml") continue;
    ++inputs;
    EXPECT_NE(source.find("expect_golden(\"" + file.path().stem().string() + "\")"), std::string::npos) << file.path();
  }
  EXPECT_GE(inputs, 11U);
}

TEST(crl_golden, the_page_on_declarations_has_every_field_and_every_code) {
  const auto page = slurp(std::filesystem::path(SOURCE_ROOT) / "docs/declarations.md");
  for (const auto field : known_fields()) EXPECT_NE(page.find("`" + std::string(field) + "`"), page.npos) << field;
  for (const auto field : known_device_fields())
    EXPECT_NE(page.find("`" + std::string(field) + "`"), page.npos) << field;
  const auto first = page.find("\n- Errors:"), second = page.find("\n- Warnings:");
  ASSERT_LT(first, second);
  ASSERT_NE(second, page.npos);
  const auto errors = std::string_view(page).substr(first, second - first);
  const auto warnings = std::string_view(page).substr(second);
  for (std::size_t i = 0; i < code_count; ++i) {
    finding finding;
    finding.kind = static_cast<error_code>(i);
    const auto fact = fact_of(finding, text::language::en);
    const auto code = "`" + std::string(fact.code) + "`";
    const bool is_error = to_string(fact.level) == "error";
    EXPECT_NE((is_error ? errors : warnings).find(code), page.npos) << code;
    EXPECT_EQ((is_error ? warnings : errors).find(code), page.npos) << code;
  }
}

TEST(crl_golden, the_declarations_to_try_are_judged_as_written) {
  const auto all = judge_together(read_config_maps(std::filesystem::path(TEST_DATA) / "try/objects/declarations.yaml"));
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(verdict_of(all[0]), verdict::accepted);
  EXPECT_EQ(verdict_of(all[1]), verdict::accepted);
  EXPECT_EQ(verdict_of(all[2]), verdict::refused);
  EXPECT_EQ(all[2].findings.size(), 3U);
}

}  // namespace
}  // namespace reconcilers::declarations
