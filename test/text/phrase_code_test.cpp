#include "text/phrase_code.hpp"

#include <gtest/gtest.h>

#include "test/words.hpp"

namespace text {
namespace {

const phrase rest{"status.rollout.rest.one", {{"number", "1"}}};
const phrase halted{"status.rollout.halted",
                    {{"node", "gpu-1"}, {"trouble", phrase("someone else's sentence")}, {"rest", rest}}};

TEST(phrase_code, has_a_flat_map_of_what_fills_a_phrase_and_those_inside_it) {
  const auto code = code_of(halted);
  EXPECT_EQ(code.cause, "status.rollout.halted");
  EXPECT_EQ(code.parameters, (std::map<std::string, std::string, std::less<>>{{"node", "gpu-1"},
                                                                              {"trouble", "someone else's sentence"},
                                                                              {"rest:cause", "status.rollout.rest.one"},
                                                                              {"rest.number", "1"}}));
}

TEST(phrase_code, gives_the_same_words_again_in_both_languages) {
  const phrase lists{"status.runtimes.alone", {{"list", "a and b", "a、b"}}};
  for (const auto& phrase :
       {halted, rest, lists, joined_by_commas({rest, halted, lists}), joined_by_semicolons({rest})})
    for (const auto locale : {language::en, language::zh})
      EXPECT_EQ(words_of(phrase_of(code_of(phrase), "lost"), locale), words_of(phrase, locale));
}

TEST(phrase_code, is_empty_where_someone_else_speaks) {
  EXPECT_TRUE(code_of(phrase("no node fits")).empty());
  EXPECT_TRUE(code_of(phrase()).empty());
  EXPECT_EQ(words_of(phrase_of({}, "no node fits"), language::zh), "no node fits");
}

TEST(phrase_code, of_another_version_says_the_message) {
  const auto chinese = [](const phrase_code& code) { return words_of(phrase_of(code, "own text"), language::zh); };
  EXPECT_EQ(chinese({"status.of_a_later_version", {}}), "own text");
  auto code = code_of(halted);
  code.parameters.erase("node");
  EXPECT_EQ(chinese(code), "own text") << "what its words are about is not all there";
  code = code_of(halted);
  code.parameters["rest:cause"] = "status.of_a_later_version";
  EXPECT_EQ(chinese(code), "own text");
  code = code_of(halted);
  code.parameters["more"] = "of a later version";
  EXPECT_EQ(chinese(code), words_of(halted, language::zh));
}

TEST(phrase_code, stays_within_the_limits_of_the_types) {
  std::vector<phrase> many(most_phrase_parameters, rest);
  EXPECT_TRUE(code_of(joined_by_commas(many)).empty());
  const auto code = code_of({"status.runtimes.of_node", {{"node", "a"}, {"text", std::string(10'000, 'x')}}});
  EXPECT_EQ(code.parameters.at("text").size(), longest_phrase_parameter);
}

TEST(phrase, joins_what_there_is_to_say) {
  EXPECT_TRUE(joined_by_commas({}).empty());
  EXPECT_TRUE(joined_by_semicolons({phrase(), phrase()}).empty());
  EXPECT_EQ(words::line_of(joined_by_commas({phrase(), phrase("a"), phrase(), phrase("b")})),
            "list.commas{first=a,rest=b}");
}

}  // namespace
}  // namespace text
