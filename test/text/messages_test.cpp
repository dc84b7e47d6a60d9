#include "text/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <set>

#include "text/fact.hpp"
#include "text/text.hpp"

namespace text {
namespace {

using enum language;

std::string_view words_of(const catalogue_entry& row, language locale) {
  return row.words[static_cast<std::size_t>(locale)];
}

/// The placeholders: {name} of small letters.
std::set<std::string> placeholders_of(std::string_view pattern) {
  std::set<std::string> out;
  for (auto open = pattern.find('{'); open != pattern.npos; open = pattern.find('{', open + 1)) {
    const auto name =
        pattern.substr(open + 1, pattern.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", open + 1) - open - 1);
    if (!name.empty() && pattern.substr(open + 1 + name.size()).starts_with('}')) out.emplace(name);
  }
  return out;
}

void read(const YAML::Node& node, const std::string& path, std::map<std::string, std::string>& out) {
  if (!node.IsMap()) {
    out[path] = node.as<std::string>();
    return;
  }
  for (const auto& entry : node)
    read(entry.second, path.empty() ? entry.first.as<std::string>() : path + "." + entry.first.as<std::string>(), out);
}

TEST(messages, golden_table_is_what_the_two_files_say) {
  for (const auto locale : {en, zh}) {
    std::map<std::string, std::string> file;
    read(YAML::LoadFile(std::string(SOURCE_ROOT "/text/messages.") + (locale == en ? "en" : "zh") + ".yaml"), "", file);
    EXPECT_EQ(file.size(), catalogue().size()) << "each key is in both files";
    for (const auto& [key, words] : file) EXPECT_EQ(pattern_of(key, locale), words) << key;
  }
}

TEST(messages, have_the_same_placeholders_in_both_languages) {
  EXPECT_EQ(placeholders_of("{a} and {\"b\":1} {c_d}{"), (std::set<std::string>{"a", "c_d"}));
  for (const auto& row : catalogue()) {
    // There the English sentence names the label itself, and the Chinese one stands before it.
    if (row.key != "verify.foreign_label.wrong")
      EXPECT_EQ(placeholders_of(words_of(row, en)), placeholders_of(words_of(row, zh))) << row.key;
    EXPECT_EQ(words_of(row, en).empty(), words_of(row, zh).empty()) << row.key;
    EXPECT_FALSE(has_cjk(words_of(row, en))) << row.key;
  }
}

/// Words that only a sentence has, outside of quotes. Names, commands and values are the same in both languages.
bool has_english(std::string_view text) {
  std::string plain(text), words = " ";
  for (auto open = plain.find("“"); open != plain.npos; open = plain.find("“", open + 1))
    plain.erase(open, plain.find("”", open) - open);
  bool quoted = false;
  for (const char c : plain) {
    if (c == '"') quoted = !quoted;
    words +=
        !quoted && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '/' || c == '.') ? c : ' ';
  }
  words += ' ';
  for (const auto* word :
       {" the ", " a ",  " an ",   " is ",    " are ",  " has ", " no ",  " of ",   " to ",    " in ", " it ",
        " and ", " or ", " that ", " which ", " this ", " its ", " for ", " with ", " write ", " by "}) {
    if (words.contains(word)) return true;
  }
  return false;
}

TEST(messages, golden_chinese_has_no_english_sentence) {
  EXPECT_TRUE(has_english("the node is not Ready"));
  EXPECT_TRUE(has_english("节点：no pod"));
  EXPECT_FALSE(has_english("请执行 kubectl get pods -A，见 \"Who owns the policy?\""));
  for (const auto& row : catalogue())
    EXPECT_FALSE(has_english(words_of(row, zh))) << row.key << ": " << words_of(row, zh);
}

TEST(messages, are_filled_in_one_pass) {
  const std::vector<parameter> parameters{{"a", "{b}"}, {"b", "2"}};
  EXPECT_EQ(filled("{a} {b} {c}", parameters), "{b} 2 {c}") << "a value is no pattern";
  EXPECT_EQ(filled("{\"x\":{\"{b}\":{", parameters), "{\"x\":{\"2\":{") << "other braces stand for themselves";
  EXPECT_EQ(filled("", parameters), "");
}

TEST(messages, a_key_without_words_is_its_own_words) {
  EXPECT_EQ(pattern_of("no.such.key", en), "");
  EXPECT_EQ(message("no.such.key", zh), "no.such.key");
  EXPECT_EQ(pattern_of("lint", en), "");
}

TEST(messages, golden_finding_says_what_is_wrong_what_is_allowed_and_what_to_do) {
  fact stated{.table = "lint",
              .code = "name_malformed",
              .parameters = {{"field", "metadata.name"}, {"value", "A"}, {"hint", "a"}}};
  EXPECT_EQ(wrong_of(stated, en), "metadata.name is \"A\", which Kubernetes refuses");
  EXPECT_EQ(remedy_of(stated, en), "write \"a\"");
  EXPECT_EQ(message_of(stated, zh),
            "metadata.name 的值为“A”，Kubernetes 不接受；允许：小写 DNS 名称：字母、数字、- 与 "
            ".，首尾为字母或数字；请改为“a”");
  stated.parameters.pop_back();
  stated.allowed = "b";
  EXPECT_EQ(message_of(stated, en), "metadata.name is \"A\", which Kubernetes refuses; allowed: b; write a legal name");
}

}  // namespace
}  // namespace text
