#include "text/yaml/source.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "test/facts_in.hpp"
#include "test/processor_time.hpp"
#include "text/yaml/writer.hpp"

namespace text::yaml {
namespace {

using testing::HasSubstr;

source sound(const std::string& text) {
  auto out = read("f.yaml", text);
  EXPECT_TRUE(out) << out.error();
  return out ? std::move(*out) : source();
}
std::string problem(const std::string& text) {
  const auto out = read("f.yaml", text);
  return out ? "none" : out.error();
}
std::string where(const node* node) {
  return std::to_string(node->location.line) + ":" + std::to_string(node->location.column);
}

TEST(yaml_source, keeps_the_place_of_every_key_and_value) {
  const auto file = sound("a: 1\nb:\n  - c: {d: e}\n---\n# second\nf: g\n");
  ASSERT_EQ(file.documents.size(), 2U);
  const auto* b = find_entry(file.documents[0], "b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(where(b->key), "2:1");
  const auto* c = find_entry(b->value->items.at(0), "c");
  EXPECT_EQ(where(c->key), "3:5");
  EXPECT_EQ(where(find_entry(c->value, "d")->key), "3:9");
  EXPECT_EQ(where(find(c->value, "d")), "3:12");
  EXPECT_EQ(where(find_entry(file.documents[1], "f")->key), "6:1");
}

TEST(yaml_source, counts_characters_and_not_bytes) {
  const auto file = sound("{\"zh\": \"实验室\", \"limits\": \"on\"}");
  EXPECT_EQ(where(find_entry(file.documents.at(0), "limits")->key), "1:15");
  const auto with_bom = sound(
      "\xef\xbb\xbf"
      "a: 1");
  EXPECT_EQ(where(find_entry(with_bom.documents.at(0), "a")->key), "1:1");
}

TEST(yaml_source, reads_json_with_its_escapes) {
  const auto file = sound(R"({"a":"\u0041\/\n","b":"\ud83d\ude00","c":"\\ud83d\\ude00","d":[1,2.5,true,null]})");
  const auto* root = file.documents.at(0);
  EXPECT_EQ(text_at(root, "a"), "A/\n");
  EXPECT_EQ(text_at(root, "b"), "😀");
  EXPECT_EQ(text_at(root, "c"), "\\ud83d\\ude00");
  EXPECT_EQ(to_json(*root)->at("d").dump(), R"([1,"2.5",true,null])");
  const auto tabs = sound("{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n");
  EXPECT_EQ(where(find_entry(find(tabs.documents.at(0), "a"), "b")->key), "3:3");
}

TEST(yaml_source, tells_scalars_apart_as_kubectl_does) {
  const auto type = [](const std::string& text) {
    const auto file = sound("a: " + text);
    return type_of(*find(file.documents.at(0), "a"));
  };
  for (const auto* text : {"on", "off", "yes", "No", "y", "true", "FALSE"})
    EXPECT_EQ(type(text), type::boolean) << text;
  for (const auto* text : {"1", "-1", "+1", "1_000", "0x1F", "0b11", "0o17", "017", "99999999999999999999"})
    EXPECT_EQ(type(text), type::integer) << text;
  for (const auto* text : {"1.5", ".5", "5.", "1e3", "1.5E+3", ".inf", "-.inf", ".nan", "08", "1_000.5"})
    EXPECT_EQ(type(text), type::real) << text;
  for (const auto* text : {"~", "null", "Null", ""}) EXPECT_EQ(type(text), type::null) << text;
  for (const auto* text : {"\"on\"", "'1'", "!!str on", "|\n  on", "oN", "tRue", "1.2.3", "20Mi", "500m", "1:30", ".",
                           "e3", "0x", "_1", "2026-01-01", "1e"})
    EXPECT_EQ(type(text), type::text) << text;
}

TEST(yaml_source, gives_the_text_kubernetes_sees) {
  const auto text = [](const std::string& value) {
    const auto file = sound("a: " + value);
    return canonical(*find(file.documents.at(0), "a"));
  };
  EXPECT_EQ(text("on"), "true");
  EXPECT_EQ(text("No"), "false");
  EXPECT_EQ(text("0x10"), "16");
  EXPECT_EQ(text("1_000"), "1000");
  EXPECT_EQ(text("0.5"), "0.5");
  EXPECT_EQ(text("\"on\""), "on");
  EXPECT_EQ(text(""), "");
  EXPECT_EQ(text("{zh: 卡, list: [1, x]}"), R"({"list":[1,"x"],"zh":"卡"})");
}

TEST(yaml_source, resolves_aliases_and_merge_keys) {
  const auto file = sound("base: &b {x: 1, y: 2}\nmade:\n  <<: *b\n  y: 3\nsame: *b\n");
  const auto* root = file.documents.at(0);
  EXPECT_EQ(text_at(find(root, "made"), "x"), "1");
  EXPECT_EQ(text_at(find(root, "made"), "y"), "3");
  EXPECT_EQ(find(root, "same"), find(root, "base"));
}

TEST(yaml_source, knows_keys_that_are_written_twice) {
  const auto file = sound("a: 1\nb: 2\na: 3\n");
  const auto* root = file.documents.at(0);
  EXPECT_EQ(text_at(root, "a"), "3") << "the last counts, as for kubectl";
  const auto repeated = repeated_keys(root);
  ASSERT_EQ(repeated.size(), 1U);
  EXPECT_EQ(where(repeated[0]), "1:1");
}

TEST(yaml_source, names_the_place_of_what_is_no_yaml) {
  EXPECT_THAT(problem("a: 1\n b: 2\n"), testing::StartsWith("f.yaml:2:"));
  EXPECT_THAT(problem("a: [1, 2\n"), testing::StartsWith("f.yaml:"));
  EXPECT_EQ(problem("a: \"1\nb: 2\n"), "f.yaml:1:4: yaml.fault.quote");
  EXPECT_EQ(problem("a: 'it''s\nb: 2\n"), "f.yaml:1:4: yaml.fault.quote");
  EXPECT_EQ(problem("a: \"\\\"1\"\n"), "none");
  EXPECT_EQ(problem("a: '1'''\n"), "none");
  EXPECT_EQ(problem("- a\nb: 1\n"), "f.yaml:2:1: yaml.fault.does_not_belong");
  EXPECT_EQ(problem("a: 1\n...\nb: 1\n--- \nc: 1\n"), "none");
  EXPECT_EQ(problem("{\"a\": 1}\n{\"b\": 2}\n"), "none") << "as a JSON stream";
  EXPECT_EQ(problem("a: 1\nbc\x01: 2\n"), "f.yaml:2:3: yaml.fault.control_character");
  EXPECT_EQ(problem("实\xff"), "f.yaml:1:2: yaml.fault.not_utf8");
  EXPECT_THAT(problem("a: *b\n"), HasSubstr("f.yaml:1:"));
  EXPECT_THAT(problem("a: &a [*a]\n"), HasSubstr("yaml.fault.alias_inside"));
}

TEST(yaml_source, F35_hostile_files_cost_what_their_size_is) {
  // Each level names the one below nine times: 9^30 values, if anyone counted them out.
  std::string bomb = "a0: &a0 x\n";
  for (int i = 1; i <= 30; ++i) {
    const auto below = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 9; ++j) bomb += below + (j < 8 ? ", " : "]\n");
  }
  const auto begin = test::processor_seconds();
  const auto file = sound(bomb);
  EXPECT_FALSE(to_json(*find(file.documents.at(0), "a30")));
  EXPECT_EQ(canonical(*find(file.documents.at(0), "a30")), "");
  // Deep by brackets, and deeper by aliases than any stack.
  EXPECT_THAT(problem(std::string(100'000, '[')), testing::EndsWith(": yaml.fault.too_deep"));
  std::string chain = "a0: &a0 x\n";
  for (int i = 1; i < 20'000; ++i)
    chain += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + "]\n";
  const auto deep = sound(chain);
  EXPECT_FALSE(to_json(*find(deep.documents.at(0), "a19999")));
  // A megabyte in one line.
  std::string line = "{";
  for (int i = 0; i < 60'000; ++i) line += "\"键" + std::to_string(i) + "\": 1, ";
  const auto wide = sound(line + "\"last\": 1}");
  EXPECT_EQ(find_entry(wide.documents.at(0), "last")->key->location.line, 1);
  EXPECT_LT(test::processor_seconds() - begin, 30);
}

TEST(yaml_source, says_why_a_file_cannot_be_read) {
  std::istringstream input("a: 1");
  EXPECT_EQ(read_file("test/no-such-file.yaml", input).error(), "test/no-such-file.yaml: No such file or directory");
  EXPECT_EQ(read_file("test", input).error(), "test: yaml.fault.folder");
  EXPECT_EQ(read_file("/proc/self/mem", input).error(), "/proc/self/mem: Input/output error")
      << "a file that opens and cannot be read is not an empty one";
  const auto read = read_file("-", input);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "<stdin>");
}

TEST(yaml_writer, writes_what_every_reader_takes_for_the_same) {
  const nlohmann::ordered_json value = {
      {"kind", "ConfigMap"},
      {"words",
       {"on", "yes", "null", "1", "1e3", "-", "", "a: b", "#", "卡", "line\nline", "\"", "a b", "0x1", "~", "Off"}},
      {"empty", nlohmann::ordered_json::array()},
      {"list", {{{"a", "b"}, {"c", {{"d", "e"}}}}, {{"f", 1}}}},
      {"number", 20},
      {"yes", true},
      {"none", nullptr}};
  const auto text = write(value);
  const auto file = sound(text);
  EXPECT_EQ(*to_json(*file.documents.at(0)), nlohmann::json(value)) << text;
  EXPECT_THAT(text, HasSubstr("kind: ConfigMap\n"));
  EXPECT_THAT(text, HasSubstr("list:\n  - a: b\n    c:\n      d: e\n  - f: 1\n")) << text;
}

}  // namespace
}  // namespace text::yaml
