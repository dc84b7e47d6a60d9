#include "cli/output/table.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace cli {
namespace {

TEST(table, counts_the_cells_a_terminal_gives_a_text) {
  EXPECT_EQ(width_of(""), 0U);
  EXPECT_EQ(width_of("vcuda"), 5U);
  EXPECT_EQ(width_of("核心"), 4U);
  EXPECT_EQ(width_of("（卡）"), 6U);
  EXPECT_EQ(width_of("かな한글"), 8U);
  EXPECT_EQ(width_of("ｱ"), 1U) << "half width kana";
  EXPECT_EQ(width_of("😀"), 2U);
  EXPECT_EQ(width_of("é"), 1U);
  EXPECT_EQ(width_of("e\xcc\x81"), 1U) << "with a combining accent";
  EXPECT_EQ(width_of("…—"), 2U) << "ambiguous ones are narrow";
}

TEST(table, lines_up_whatever_the_script) {
  table table({"资源名", "LABEL", "NOTE"});
  table.add({"a.b/c", "核心数", "x"});
  table.add({"example.com/fpga", "", "很长"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(),
            "资源名            LABEL   NOTE\n"
            "a.b/c             核心数  x\n"
            "example.com/fpga  -       很长\n");
}

TEST(table, shows_what_would_change_the_terminal_as_its_code) {
  table table({"NODE", "STATE"});
  table.add({"a\x1b[31m", "Ready\nNODE b"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(),
            "NODE         STATE\n"
            "a\\u{1b}[31m  Ready NODE b\n");
}

}  // namespace
}  // namespace cli
