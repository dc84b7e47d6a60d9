#include "text/phrase.hpp"

#include <gtest/gtest.h>

#include "test/words.hpp"

namespace text {
namespace {

TEST(phrase, has_words_in_the_language_that_is_asked_for_and_so_has_what_fills_it) {
  const phrase inner{"engine.container", {{"name", "main", "主"}}};
  const phrase outer{"explain.these", {{"text", inner}}};
  EXPECT_EQ(words_of(outer, language::en),
            words::english("explain.these", {{"text", words::english("engine.container", {{"name", "main"}})}}));
  EXPECT_EQ(words_of(outer, language::zh),
            words::chinese("explain.these", {{"text", words::chinese("engine.container", {{"name", "主"}})}}));
  EXPECT_NE(words_of(outer, language::en), words_of(outer, language::zh));
}

TEST(phrase, takes_a_value_for_each_language) {
  const phrase node{"engine.node", {{"name", "a and b", "a、b"}}};
  EXPECT_EQ(words_of(node, language::en), words::english("engine.node", {{"name", "a and b"}}));
  EXPECT_EQ(words_of(node, language::zh), words::chinese("engine.node", {{"name", "a、b"}}));
}

TEST(phrase, without_words_in_the_catalogue_says_its_key) {
  EXPECT_EQ(words_of(phrase{"what someone else says"}, language::zh), "what someone else says");
  EXPECT_EQ(words_of(phrase{}, language::en), "");
  EXPECT_TRUE(phrase{}.empty());
}

}  // namespace
}  // namespace text
