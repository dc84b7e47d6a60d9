// The tables of checks in the documents and the table of api/check.hpp: names, versions and ends are the same, both
// ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "api/check.hpp"
#include "reconcilers/nodes/preflight.hpp"

namespace reconcilers {
namespace {

struct documented {
  std::vector<std::string> versions;
  std::string ends;
  friend bool operator==(const documented&, const documented&) = default;
  friend void PrintTo(const documented& row, std::ostream* out) {
    for (const auto& version : row.versions) *out << version << " ";
    *out << "otherwise " << row.ends;
  }
};
using documented_checks = std::map<std::string, documented, std::less<>>;

/// Rows of the one table of a page that has a column `otherwise`, by check. A version is a number with a point, or one
/// that is called newer.
documented_checks table_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  documented_checks out;
  bool is_inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| check | wants | otherwise |")) is_inside = true;
    if (!line.starts_with("|")) is_inside = false;
    if (!is_inside || !line.starts_with("| `")) continue;
    std::vector<std::string> cells;
    std::stringstream text(line);
    for (std::string cell; std::getline(text, cell, '|');) cells.push_back(cell);
    documented row;
    static const std::regex version(R"((\d+\.[\d.]*\d)|(\d+) or newer)"), name("`([a-z_]+)`");
    for (std::sregex_iterator match(cells[2].begin(), cells[2].end(), version), end; match != end; ++match)
      row.versions.push_back((*match)[1].matched ? (*match)[1] : (*match)[2]);
    row.ends = cells[3].substr(1, cells[3].size() - 2);
    for (std::sregex_iterator match(cells[1].begin(), cells[1].end(), name), end; match != end; ++match)
      EXPECT_TRUE(out.emplace((*match)[1], row).second) << (*match)[1] << " stands there twice";
  }
  EXPECT_FALSE(out.empty()) << path;
  return out;
}

std::vector<std::string> versions_of(const api::check_entry& entry) {
  if (entry.version.empty()) return {};
  return {std::string(entry.version)};
}

TEST(checks, of_the_agent_are_those_of_its_page) {
  documented_checks expected;
  for (const auto& entry : api::checks()) {
    const auto& [judges, warns, fails] = entry.by_agent;
    if (!judges) continue;
    const auto* ends = warns && fails ? "`failed`, `warning`" : warns ? "`warning`" : fails ? "`failed`" : "-";
    expected[std::string(entry.name)] = {versions_of(entry), ends};
  }
  EXPECT_EQ(table_of("docs/agent.md"), expected);
}

TEST(checks, of_verify_are_those_of_its_page) {
  documented_checks expected;
  for (const auto& entry : api::checks()) {
    const auto& [judges, warns, fails] = entry.by_operator;
    if (!judges) continue;
    const auto* ends = warns ? "warning" : fails ? "wrong" : "as the agent says";
    expected[std::string(entry.name)] = {versions_of(entry), ends};
  }
  const auto dotted = [](int number, int base) {
    return std::to_string(number / base) + "." + std::to_string(number % base);
  };
  expected["cuda"].versions = {dotted(modules::mps.needs.cuda, 100)};
  expected["compute_capability"].versions = {dotted(modules::mps.needs.compute_capability, 10)};
  EXPECT_EQ(table_of("docs/cli.md"), expected);
}

// What the operator judges is what the table says of it, in the words of the catalogue.
TEST(checks, of_the_operator_have_a_judge_and_words) {
  std::vector<std::string> judged, expected;
  for (const auto& row : preflight({}, modules::mps)) judged.push_back(row.name);
  for (const auto& entry : api::checks()) {
    // Of a node without facts: no adapter, no switches.
    const bool is_needed = entry.id != api::check::rdma && entry.id != api::check::fabric_manager;
    if (entry.by_operator.judges && is_needed) expected.emplace_back(entry.name);
    for (const auto language : {text::language::en, text::language::zh})
      if (entry.by_operator.warns || entry.by_operator.fails)
        EXPECT_NE(remedy_of({{std::string(entry.name), api::check_state::failed, "x"}}, language), "") << entry.name;
  }
  EXPECT_EQ(judged, expected);
}

TEST(checks, states_are_read_as_they_are_written_and_other_words_are_unknown) {
  for (const auto state : {api::check_state::ok, api::check_state::warning, api::check_state::failed,
                           api::check_state::unknown, api::check_state::not_needed})
    EXPECT_EQ(api::check_state_in(to_string(state)), state);
  EXPECT_EQ(api::check_state_in("fine"), api::check_state::unknown);
}

}  // namespace
}  // namespace reconcilers
