// test/golden/lint/cases.txt: each object with its verdict; QM_GOLDEN=write writes the verdicts.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/lint/lint.hpp"

namespace cli {
namespace {

const std::filesystem::path lint_cases = std::filesystem::path(TEST_DATA) / "golden" / "lint" / "cases.txt";

/// "3 8:amount_in_bytes W4:unfamiliar_resource"; "0 fine".
std::string verdict_of(const std::string& text) {
  lint_options options;
  options.files = {"-"};
  options.output = "json";
  options.strict = true;
  std::istringstream input(text);
  std::ostringstream out, err;
  auto verdict = std::to_string(run_lint(options, input, out, err));
  const auto findings = nlohmann::json::parse(out.str(), nullptr, false);
  if (!findings.is_array()) return verdict + " unreadable";
  for (const auto& finding : findings)
    verdict += std::string(finding["severity"] == "warning" ? " W" : " ") + std::to_string(finding["line"].get<int>()) +
               ":" + finding["code"].get<std::string>();
  return findings.empty() ? verdict + " fine" : verdict;
}

TEST(lint, objects_as_people_write_them_have_their_verdicts) {
  std::ifstream file(lint_cases);
  ASSERT_TRUE(file) << lint_cases;
  std::string written, line, name, expected, text;
  std::size_t count = 0;
  const auto finish = [&] {
    if (name.empty()) return;
    const auto verdict = verdict_of(text);
    EXPECT_EQ(verdict, expected) << name;
    written += "== " + name + " -> " + verdict + "\n" + text;
    ++count;
  };
  while (std::getline(file, line)) {
    if (line.starts_with("== ")) {
      finish();
      const auto arrow = line.find(" -> ");
      ASSERT_NE(arrow, std::string::npos) << line;
      name = line.substr(3, arrow - 3);
      expected = line.substr(arrow + 4);
      text.clear();
    } else if (name.empty()) {
      written += line + "\n";
    } else {
      text += line + "\n";
    }
  }
  finish();
  EXPECT_GE(count, 100U);
  const auto* write = std::getenv("QM_GOLDEN");
  if (write && std::string_view(write) == "write") std::ofstream(lint_cases) << written;
}

}  // namespace
}  // namespace cli
