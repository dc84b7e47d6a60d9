#include "text/escape.hpp"

#include <gtest/gtest.h>

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  text::append_escaped(out, text);
  return out;
}

TEST(text, cuts_on_a_character_edge) {
  EXPECT_EQ(text::utf8_clean("abcdef", 3), "abc");
  EXPECT_EQ(text::utf8_clean("声明无效", 7), "声明");
  EXPECT_EQ(text::utf8_clean("声明无效", 12), "声明无效");
  EXPECT_EQ(text::utf8_clean("😀😀", 7), "😀");
  EXPECT_EQ(text::utf8_clean("x", 0), "");
}

TEST(text, F37_replaces_what_is_not_utf8) {
  EXPECT_EQ(text::utf8_clean("a\xff"
                             "b"),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(text::utf8_clean("\xc0\xaf"), "\xef\xbf\xbd\xef\xbf\xbd") << "overlong";
  EXPECT_EQ(text::utf8_clean("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd") << "surrogate";
  EXPECT_EQ(text::utf8_clean("\xe5\xa3"), "\xef\xbf\xbd\xef\xbf\xbd") << "cut short";
  EXPECT_EQ(text::utf8_clean("\xf4\x90\x80\x80").size(), 12U) << "beyond Unicode";
}

TEST(text, F37_escapes_what_would_change_a_log_line) {
  EXPECT_EQ(escaped("a\nb\tc\"d\\e"), R"(a\nb\tc\"d\\e)");
  EXPECT_EQ(escaped(std::string("\0\x1b[31m\r", 7)), R"(\u0000\u001b[31m\u000d)");
  EXPECT_EQ(escaped("user\u202Egnp.exe"), R"(user\u202egnp.exe)") << "bidirectional override";
  EXPECT_EQ(escaped("\u2028\u200b\ufeff\u0085"), R"(\u2028\u200b\ufeff\u0085)");
  EXPECT_EQ(escaped("\xff"), R"(\ufffd)");
  EXPECT_EQ(escaped("声明 é 😀"), "声明 é 😀");
}

}  // namespace
