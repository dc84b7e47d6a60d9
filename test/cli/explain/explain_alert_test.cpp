// What people see of `explain alert`: test/golden/explain/alerts.txt; QM_GOLDEN=write writes what differs.
#include "cli/explain/explain_alert.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "cli/alerts/alerts.hpp"
#include "test/english.hpp"
#include "test/facts_in.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using testing::AllOf, testing::HasSubstr, testing::Not, testing::StartsWith;

struct reply {
  int rc;
  std::string out, err;
};
reply alert(const std::string& name, const std::string& language = "en", const std::string& output = "text") {
  std::ostringstream out, err;
  const int rc = run_explain_alert({name, language, output}, out, err);
  return {rc, out.str(), err.str()};
}

std::string file_of(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

/// The alerts of the rules with their severities.
std::vector<std::pair<std::string, std::string>> alerts_of_rules() {
  const auto text = file_of("charts/quartermaster/files/rules.yaml");
  const std::regex pattern(R"(- alert: (\w+)[^]*?severity: (\w+))");
  std::vector<std::pair<std::string, std::string>> out;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i)
    out.emplace_back((*i)[1], (*i)[2]);
  return out;
}

TEST(explain_alert, S31_every_alert_of_the_rules_is_explained) {
  std::vector<std::pair<std::string, std::string>> known;
  for (const auto& entry : known_alerts()) {
    known.emplace_back(entry.name, entry.severity);
    for (const auto* part : {&entry.means, &entry.look, &entry.act})
      EXPECT_TRUE(!part->empty() && !part->front().empty()) << entry.name;
  }
  EXPECT_GT(known.size(), 30U);
  EXPECT_EQ(known, alerts_of_rules());
}

TEST(explain_alert, S31_golden_means_look_and_do_are_said) {
  std::string all;
  for (const auto& [name, severity] : alerts_of_rules()) {
    const auto got = alert(name);
    EXPECT_EQ(got.rc, 0) << got.err;
    // Nothing of Markdown that a terminal does not need.
    EXPECT_THAT(got.out, AllOf(Not(HasSubstr("**")), Not(HasSubstr("```")), Not(HasSubstr("](")))) << name;
    all += "$ quartermaster explain alert " + name + "\n" + got.out + "\n";
  }
  const auto file = std::filesystem::path(TEST_DATA) / "golden/explain/alerts.txt";
  if (std::getenv("QM_GOLDEN") && std::string_view(std::getenv("QM_GOLDEN")) == "write") std::ofstream(file) << all;
  EXPECT_EQ(all, file_of(file)) << "QM_GOLDEN=write writes " << file;
}

TEST(explain_alert, a_name_is_known_in_any_case_and_without_the_family) {
  const auto whole = alert("QuartermasterNodeStuck");
  EXPECT_THAT(whole.out, StartsWith("QuartermasterNodeStuck: "));
  for (const auto* name : {"NodeStuck", "nodestuck", "quartermasternodestuck"}) EXPECT_EQ(alert(name).out, whole.out);
  EXPECT_THAT(alert("gpuallocconflict").out, StartsWith("GPUAllocConflict: "));
}

TEST(explain_alert, a_name_that_is_not_known_is_answered_with_the_one_meant_and_with_all) {
  const auto near = words::english("explain_alert.near", {{"name", "QuartermasterNodeStuck"}});
  for (const auto* name : {"QuartermasterNodeStuk", "NodeStcuk"}) {
    const auto got = alert(name);
    EXPECT_EQ(got.rc, 1);
    EXPECT_EQ(got.out, "");
    EXPECT_THAT(got.err,
                words::has_in_order({"quartermaster: ", name, near, "QuartermasterDown, ", "GPUAllocConflict"}));
    EXPECT_EQ(std::ranges::count(got.err, '\n'), 1);
  }
  const auto pattern = words::english("explain_alert.near");
  const auto none = pattern.substr(0, pattern.find('{'));
  for (const auto* name : {"KubePodCrashLooping", "", "Quartermaster"})
    EXPECT_THAT(alert(name).err, AllOf(Not(HasSubstr(none)), HasSubstr("QuartermasterDown, "))) << name;
  EXPECT_THAT(alert("a\x1b[2J").err, Not(HasSubstr("\x1b")));
  EXPECT_THAT(alert("NodeStuk", "zh").err,
              HasSubstr(words::chinese("explain_alert.near", {{"name", "QuartermasterNodeStuck"}})));
}

/// The code in backquotes of a section, in order of the alphabet: the Chinese page has the same.
std::multiset<std::string> code_of(const known_alert& alert) {
  std::multiset<std::string> out;
  static const std::regex pattern("`[^`]+`");
  for (const auto* part : {&alert.means, &alert.look, &alert.act})
    for (const auto& line : *part)
      for (std::sregex_iterator i(line.begin(), line.end(), pattern), end; i != end; ++i) out.insert(i->str());
  return out;
}

TEST(explain_alert, golden_Chinese_page_says_the_same_of_each_alert) {
  const auto english = known_alerts(), chinese = known_alerts(text::language::zh);
  ASSERT_EQ(english.size(), chinese.size());
  for (std::size_t i = 0; i < english.size(); ++i) {
    EXPECT_EQ(english[i].name, chinese[i].name);
    EXPECT_EQ(english[i].severity, chinese[i].severity) << english[i].name;
    EXPECT_EQ(english[i].delay == "at once", chinese[i].delay == "立即") << english[i].name;
    EXPECT_EQ(code_of(english[i]), code_of(chinese[i])) << english[i].name;
    for (const auto* part : {&chinese[i].means, &chinese[i].look, &chinese[i].act})
      EXPECT_TRUE(!part->empty() && !part->front().empty()) << english[i].name;
    const auto got = alert(std::string(english[i].name), "zh");
    EXPECT_FALSE(words::has_english_sentence(got.out)) << got.out;
    EXPECT_THAT(got.out, AllOf(Not(HasSubstr("**")), Not(HasSubstr("```")), Not(HasSubstr("](")))) << english[i].name;
    EXPECT_THAT(got.out,
                words::has_in_order({words::chinese("explain_alert.means"), words::chinese("explain_alert.look"),
                                     words::chinese("explain_alert.do")}));
  }
}

TEST(explain_alert, json_has_the_same_in_parts) {
  const auto got = nlohmann::json::parse(alert("QuartermasterControlPlaneNode", "en", "json").out);
  EXPECT_EQ(got["alert"], "QuartermasterControlPlaneNode");
  EXPECT_EQ(got["severity"], "warning");
  EXPECT_EQ(got["when"], "after 15 minutes");
  EXPECT_EQ(got["means"].size(), 1U);
  // The command of a block of code is a line of its own.
  EXPECT_THAT(got["look"][1].get<std::string>(), StartsWith("  kubectl get configmap quartermaster-static-pod"));
  EXPECT_THAT(got["do"][0].get<std::string>(), HasSubstr(" docs/scheduler-config.md has the cases."));
}

}  // namespace
}  // namespace cli
