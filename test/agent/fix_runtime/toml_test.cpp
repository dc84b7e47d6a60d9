#include "agent/container_runtime/toml.hpp"

#include <gtest/gtest.h>

#include "test/facts_in.hpp"

namespace agent::container_runtime {
namespace {

std::string problem_of(std::string_view text) {
  const auto document = read_toml(text);
  return document ? "" : document.error();
}

TEST(toml, each_element_of_an_array_of_tables_has_its_own_keys) {
  EXPECT_EQ(problem_of("[[a]]\nx = 1\n[a.b]\ny = 1\n[[a]]\nx = 2\n[a.b]\ny = 2\n"), "");
  EXPECT_EQ(problem_of("[[a]]\nb.x = 1\n[[a]]\nb.x = 2\n"), "");
  EXPECT_THAT(problem_of("[[a]]\nx = 1\nx = 2\n"), words::has_in_order({"line 3 is not understood: ", "x twice"}));
  EXPECT_THAT(problem_of("[[a]]\n[a.b]\n[a.b]\n"),
              words::has_in_order({"line 3 is not understood: ", "table", "twice"}));
}

TEST(toml, a_name_is_a_key_or_a_table) {
  EXPECT_THAT(problem_of("a = 1\n[a]\n"), words::has_in_order({"line 2 is not understood: ", "a is a key"}));
  EXPECT_THAT(problem_of("[a]\nb = 1\n[[a.b]]\n"), words::has_in_order({"line 3 is not understood: ", "b is a key"}));
  EXPECT_THAT(problem_of("[a.b]\n[a]\nb = 1\n"), words::has_in_order({"line 3 is not understood: ", "b twice"}));
}

TEST(toml, a_backslash_does_not_carry_a_text_over_the_line_end) {
  EXPECT_THAT(problem_of("a = \"one\\\ntwo\"\n"), words::has_in_order({"line 1 is not understood: ", "closing quote"}));
  EXPECT_EQ(problem_of("a = \"one\\\"two\"\n"), "");
}

}  // namespace
}  // namespace agent::container_runtime
