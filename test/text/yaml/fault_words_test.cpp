#include "text/yaml/fault_words.hpp"

#include <gtest/gtest.h>

#include "test/english.hpp"
#include "text/messages.hpp"
#include "text/yaml/source.hpp"

namespace text::yaml {
namespace {

/// Files as people break them. What is wrong with each is a key of the catalogue.
constexpr std::string_view malformed[] = {
    "a: [1, 2\n",
    "a: {b: 1\n",
    "a: 1\n b: 2\n",
    "a:\n  - b\n c: 1\n",
    "- a\nb: 1\n",
    "a: b: c\n",
    "a: \"1\nb: 2\n",
    "a: \"\\q\"\n",
    "a: \"\\xZZ\"\n",
    "a: \"\\ud800\"\n",
    "a: *b\n",
    "a: &\n",
    "a: *\n",
    "a: &a [*a]\n",
    "a: !<x\n",
    "a: ]\n",
    "a: }\n",
    "a: @x\n",
    "a: `x`\n",
    "a: %x\nb: @\n",
    "\ta: 1\n",
    "a:\n\tb: 1\n",
    "a: |0\n x\n",
    "a: |x\n x\n",
    "%YAML 1.1 1.2\n---\na: 1\n",
    "%YAML 3.0\n---\na: 1\n",
    "%YAML x\n---\na: 1\n",
    "%YAML 1.1\n%YAML 1.1\n---\na: 1\n",
    "%TAG !\n---\na: 1\n",
    "a: &x &y 1\n",
    "a: !!str !!int 1\n",
    "? a\n: b\n  c: - d\n",
    "a: - b\n",
    "a: b\x01\n",
    "a: \xff\n",
    "a: \"x\n---\ny\"\n",
};

TEST(yaml_fault_words, of_malformed_files_are_keys_with_words_in_each_language) {
  for (const auto text : malformed) {
    const auto read = parse(std::string(text));
    ASSERT_FALSE(read) << text;
    const auto& fault = read.error().message;
    EXPECT_TRUE(fault.starts_with("yaml.fault.")) << text << ": " << fault;
    const auto phrase = unreadable("f.yaml:1:1: " + fault);
    for (const auto locale : {language::en, language::zh}) EXPECT_NE(pattern_of(fault, locale), "") << fault;
    EXPECT_FALSE(words::has_english_sentence(words_of(phrase, language::zh))) << text;
  }
}

TEST(yaml_fault_words, golden_of_the_system_are_a_quotation) {
  const auto phrase = unreadable("a: b.yaml: no such file or directory");
  EXPECT_FALSE(words::has_english_sentence(words_of(phrase, language::zh)));
  EXPECT_TRUE(words_of(phrase, language::zh).contains("no such file or directory"));
  EXPECT_TRUE(words_of(unreadable("some/dir: yaml.fault.folder"), language::en).contains("some/dir"));
  EXPECT_EQ(unreadable("a: b.yaml:3:1: yaml.fault.quote").arguments.at(0).values.at(0), "a: b.yaml:3:1");
}

}  // namespace
}  // namespace text::yaml
