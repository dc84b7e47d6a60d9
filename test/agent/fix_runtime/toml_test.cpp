#include "agent/container_runtime/toml.hpp"

#include <gtest/gtest.h>

namespace agent::container_runtime {
namespace {

/// "3 twice x": the line, the key below fix_runtime.toml and its value.
std::string problem_of(std::string_view text) {
  const auto document = read_toml(text);
  if (document) return "";
  EXPECT_EQ(document.error().key, "fix_runtime.toml.line");
  const auto& arguments = document.error().arguments;
  const auto& problem = arguments.at(1).inner;
  return arguments.at(0).values.front() + problem.key.substr(problem.key.rfind('.')) +
         (problem.arguments.empty() ? "" : " " + problem.arguments.front().values.front());
}

TEST(toml, each_element_of_an_array_of_tables_has_its_own_keys) {
  EXPECT_EQ(problem_of("[[a]]\nx = 1\n[a.b]\ny = 1\n[[a]]\nx = 2\n[a.b]\ny = 2\n"), "");
  EXPECT_EQ(problem_of("[[a]]\nb.x = 1\n[[a]]\nb.x = 2\n"), "");
  EXPECT_EQ(problem_of("[[a]]\nx = 1\nx = 2\n"), "3.twice x");
  EXPECT_EQ(problem_of("[[a]]\n[a.b]\n[a.b]\n"), "3.table_twice");
}

TEST(toml, a_name_is_a_key_or_a_table) {
  EXPECT_EQ(problem_of("a = 1\n[a]\n"), "2.is_key a");
  EXPECT_EQ(problem_of("[a]\nb = 1\n[[a.b]]\n"), "3.is_key b");
  EXPECT_EQ(problem_of("[a.b]\n[a]\nb = 1\n"), "3.twice b");
}

TEST(toml, a_backslash_does_not_carry_a_text_over_the_line_end) {
  EXPECT_EQ(problem_of("a = \"one\\\ntwo\"\n"), "1.no_quote");
  EXPECT_EQ(problem_of("a = \"one\\\"two\"\n"), "");
}

}  // namespace
}  // namespace agent::container_runtime
