#include "agent/facts/toml.hpp"

#include <gtest/gtest.h>

namespace agent::facts {
namespace {

/// "3.twice x": the line, the code below config_problem and its value.
std::string problem_of(std::string_view text) {
  const auto document = read_toml(text);
  if (document) return "";
  const auto& problem = document.error();
  return std::to_string(problem.line) + "." + problem.code + (problem.value.empty() ? "" : " " + problem.value);
}

TEST(toml, each_element_of_an_array_of_tables_has_its_own_keys) {
  EXPECT_EQ(problem_of("[[a]]\nx = 1\n[a.b]\ny = 1\n[[a]]\nx = 2\n[a.b]\ny = 2\n"), "");
  EXPECT_EQ(problem_of("[[a]]\nb.x = 1\n[[a]]\nb.x = 2\n"), "");
  EXPECT_EQ(problem_of("[[a]]\nx = 1\nx = 2\n"), "3.twice x");
  EXPECT_EQ(problem_of("[[a]]\n[a.b]\n[a.b]\n"), "3.table_twice b");
}

TEST(toml, a_name_is_a_key_or_a_table) {
  EXPECT_EQ(problem_of("a = 1\n[a]\n"), "2.is_key a");
  EXPECT_EQ(problem_of("[a]\nb = 1\n[[a.b]]\n"), "3.is_key b");
  EXPECT_EQ(problem_of("[a.b]\n[a]\nb = 1\n"), "3.twice b");
}

/// Of go-toml 2.4.3. go-toml 1.9.5 (containerd 1) and BurntSushi/toml 1.6.0 (CRI-O) take all of these.
TEST(toml, a_table_by_a_dotted_key_and_by_a_head_is_refused_by_containerd_2) {
  const auto later = [](std::string_view text) {
    const auto document = read_toml(text);
    EXPECT_TRUE(document);
    if (!document || !document->later_problem) return std::string();
    const auto& problem = *document->later_problem;
    return std::to_string(problem.line) + "." + problem.code + (problem.value.empty() ? "" : " " + problem.value);
  };
  EXPECT_EQ(later("[p]\na.b.c = 1\n[p.a]\nd = 2\n"), "3.dotted_twice a");
  EXPECT_EQ(later("p.a.b = 1\n[p.a]\nd = 2\n"), "2.dotted_twice a");
  EXPECT_EQ(later("[p.a.b]\nd = 2\n[p]\na.b.c = 1\n"), "4.dotted_twice a");
  EXPECT_EQ(later("[p.a.b]\nd = 2\n[p]\na.c = 1\n"), "4.dotted_twice a");
  EXPECT_EQ(later("[p]\na.c = 1\n[p.a.b]\nd = 2\n"), "") << "a table below it is another one";
  EXPECT_EQ(later("[p]\na.b = 1\na.c = 1\nd = {e.f = 1, e.g = 2}\n"), "");
  EXPECT_EQ(later("[[p]]\na.b = 1\n[[p]]\na.b = 2\n[[p]]\n[p.a]\n"), "");
  EXPECT_EQ(later("\xEF\xBB\xBFp = 1\n"), "1.byte_order_mark");
}

TEST(toml, a_backslash_does_not_carry_a_text_over_the_line_end) {
  EXPECT_EQ(problem_of("a = \"one\\\ntwo\"\n"), "1.no_quote");
  EXPECT_EQ(problem_of("a = \"one\\\"two\"\n"), "");
}

TEST(toml, a_text_goes_over_lines_between_three_quotes) {
  const auto document = read_toml("a = \"\"\"\none \\\"\"\" \"two\"\"\"\"\nb = '''x\\'''\nc = 1\nc = 2\n");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().line, 5U) << "the lines of the text count";
  EXPECT_EQ(problem_of("a = \"\"\"\none\n"), "3.no_quote");
  EXPECT_EQ(unquoted("\"\"\"\none\"\"\""), "one");
}

TEST(toml, members_of_inline_tables_are_settings_of_their_own) {
  const auto document = read_toml("[a]\nb = { c = 'x', d.e = { f = [1, { g = 2 }] } } # end\nh = 1\n");
  ASSERT_TRUE(document) << document.error().code;
  ASSERT_TRUE(document->find({"a", "b", "c"}));
  EXPECT_EQ(document->find({"a", "b", "c"})->value, "'x'");
  EXPECT_EQ(document->find({"a", "b", "c"})->line, 2U);
  EXPECT_EQ(document->find({"a", "b", "d", "e", "f"})->value, "[1, { g = 2 }]");
  EXPECT_FALSE(document->find({"a", "b", "d", "e", "f", "g"})) << "an array is left as it is";
  EXPECT_EQ(document->find({"a", "h"})->line, 3U);
  EXPECT_EQ(problem_of("a = { b = 1 }\n[a]\n"), "2.is_key a");
  EXPECT_EQ(problem_of("a = { b = 1 }\na.c = 1\n"), "2.is_key a");
  EXPECT_EQ(problem_of("a.c = 1\na = { b = 1 }\n"), "2.twice a");
  EXPECT_EQ(problem_of("a = { b = 1, b = 2 }\n"), "1.twice b");
  EXPECT_EQ(problem_of("a = { b = 1\n"), "1.no_end");
  std::string deep = "a = ";
  for (int index = 0; index < 20'000; ++index) deep += "{a = ";
  EXPECT_EQ(problem_of(deep), "1.too_deep");
}

}  // namespace
}  // namespace agent::facts
