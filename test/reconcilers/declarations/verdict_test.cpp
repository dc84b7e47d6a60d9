#include "reconcilers/declarations/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/reconcilers/declarations/config_maps.hpp"
#include "test/words.hpp"
#include "text/text.hpp"

namespace reconcilers::declarations {
namespace {

judgement judged(const config_map_text& config_map_text) { return judge_together({config_map_text}).at(0); }

config_map_text three_mistakes() {
  return sound().labelled("features.cpaas.io/enabled", "yes").with("defaultValue", "half").with("limits", "requried");
}

/// What is wrong with data.limits of such a value.
std::string limits_wrong(const std::string& value) {
  return words::english("declaration.not_in_vocabulary.wrong", {{"field", "data.limits"}, {"value", value}});
}

TEST(verdict, is_one_line_of_json_that_names_everything) {
  const auto text = annotation_of(judged(three_mistakes()));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["v"], 1);
  EXPECT_EQ(json["verdict"], "refused");
  EXPECT_EQ(json["key"], "example.com/fpga");
  ASSERT_EQ(json["findings"].size(), 3U);
  EXPECT_FALSE(json.contains("more"));
  const auto& limits = json["findings"][0];
  EXPECT_EQ(limits["severity"], "error");
  EXPECT_EQ(limits["code"], "not_in_vocabulary");
  EXPECT_EQ(limits["field"], "data.limits");
  EXPECT_EQ(limits["value"], "requried");
  EXPECT_EQ(limits["allowed"], "disabled, required, optional");
  EXPECT_EQ(limits["remedy"], words::english("declaration.not_in_vocabulary.remedy_with_hint", {{"hint", "required"}}));
  EXPECT_THAT(limits["message"].get<std::string>(), testing::StartsWith(limits_wrong("requried")));
  EXPECT_EQ(json["observed"].get<std::string>().size(), 16U);
}

TEST(verdict, is_accepted_warning_or_refused) {
  EXPECT_EQ(verdict_of(judged(sound())), verdict::accepted);
  EXPECT_EQ(verdict_of(judged(sound().with("colour", "red"))), verdict::warning);
  EXPECT_EQ(verdict_of(judged(sound().with("limits", "x"))), verdict::refused);
  EXPECT_EQ(nlohmann::json::parse(annotation_of(judged(sound())))["findings"], nlohmann::json::array());
}

TEST(verdict, is_the_same_text_for_the_same_content) {
  auto three_mistake = three_mistakes();
  const auto text = annotation_of(judged(three_mistake));
  three_mistake.labels["team"] = "a";
  EXPECT_EQ(annotation_of(judged(three_mistake)), text) << "labels of others are not judged";
  auto view = three_mistake.view();
  std::ranges::reverse(view.data);
  std::ranges::reverse(view.labels);
  EXPECT_EQ(annotation_of(judge_all(std::vector{view}).at(0)), text) << "the order of the wire is not content";
}

TEST(verdict, tells_new_words_from_a_new_hash) {
  const auto before = annotation_of(judged(sound()));
  const auto after = annotation_of(judged(sound().with("descriptionEn", "Other")));
  EXPECT_NE(before, after);
  EXPECT_TRUE(same_words(before, after));
  EXPECT_FALSE(same_words(before, annotation_of(judged(three_mistakes()))));
  EXPECT_FALSE(same_words("", before));
}

TEST(verdict, F36_says_that_the_last_accepted_content_stays_in_force) {
  auto declaration = judged(three_mistakes());
  const auto annotation = annotation_of(declaration);
  EXPECT_FALSE(nlohmann::json::parse(annotation).contains("meanwhile"));
  declaration.kept = true;
  const auto updated = annotation_of(declaration);
  EXPECT_EQ(nlohmann::json::parse(updated)["meanwhile"], words::english("declaration_note.kept"));
  EXPECT_FALSE(same_words(updated, annotation)) << "news for people";
  EXPECT_THAT(note_of(declaration), testing::StartsWith(words::english("declaration_note.kept") +
                                                        words::english("finding.remedy") + limits_wrong("requried")));
  EXPECT_THAT(note_of(declaration, text::language::zh), testing::StartsWith(words::chinese("declaration_note.kept")));
}

TEST(note, names_field_value_allowed_and_remedy_of_the_first_findings) {
  const auto note = note_of(judged(three_mistakes()));
  for (const auto* part : {"data.limits", "requried", "disabled, required, optional", "required", "half", "yes"}) {
    EXPECT_THAT(note, testing::HasSubstr(part));
  }
  EXPECT_THAT(
      note_of(judged(three_mistakes()), text::language::zh),
      testing::HasSubstr(words::chinese("declaration.not_in_vocabulary.remedy_with_hint", {{"hint", "required"}})));
}

TEST(note, is_cut_between_findings_with_a_count) {
  auto many = sound();
  for (int i = 0; i < 8; ++i) many.data["colour" + std::to_string(i) + std::string(60, 'x')] = "red";
  many.data["relatedResources"] = std::string(70, 'a') + "," + std::string(71, 'b') + "," + std::string(72, 'c');
  const auto note = note_of(judged(many));
  EXPECT_LE(note.size(), 1000U);
  const auto more = words::english("declaration_note.more", {{"number", "|"}});
  EXPECT_THAT(note, testing::HasSubstr(more.substr(0, more.find('|'))));
  EXPECT_THAT(note, testing::EndsWith(more.substr(more.find('|') + 1)));
}

// --- hostile content

void expect_bounded(const config_map_text& config_map_text) {
  const auto declaration = judged(config_map_text);
  const auto text = annotation_of(declaration);
  EXPECT_LE(text.size(), max_verdict_bytes);
  EXPECT_TRUE(nlohmann::json::accept(text)) << text;
  EXPECT_TRUE(text::is_plain_text(text));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  for (const auto entry : {text::language::en, text::language::zh}) {
    EXPECT_LE(note_of(declaration, entry).size(), 1000U);
    EXPECT_TRUE(text::is_plain_text(note_of(declaration, entry)));
  }
  EXPECT_NE(verdict_of(declaration), verdict::accepted);
}

TEST(verdict, F35_is_bounded_for_values_of_a_mebibyte) {
  for (const auto fill : {'<', '\x01', '\xff', '{', '[', ',', '"', '\\', '7'}) {
    for (const auto field :
         {"key", "limits", "requests", "defaultValue", "group", "groupI18n", "resourceUnit", "relatedResources",
          "ignoreNodeCheck", "runtimeClassName", "descriptionEn", "labelZh", "dataType"}) {
      if (fill == ',' && std::string_view(field) == "relatedResources") continue;  // an empty list
      expect_bounded(sound().with(field, std::string(1 << 20, fill)));
    }
  }
}

TEST(verdict, F35_is_bounded_for_ten_thousand_fields) {
  auto many = sound();
  for (int i = 0; i < 10'000; ++i) many.data["field-" + std::to_string(i)] = "x";
  expect_bounded(many);
  EXPECT_EQ(judged(many).findings.size(), max_unknown_fields + 1);
  EXPECT_EQ(judged(many).findings.back().count, 10'000 - max_unknown_fields);
}

TEST(verdict, F35_cuts_long_lists_and_long_texts) {
  std::string list;
  for (int i = 0; i < 20'000; ++i) list += "example.com/r" + std::to_string(i) + ",";
  const auto declared = sound()
                            .with("relatedResources", list)
                            .with("excludeResources", list)
                            .with("descriptionEn", std::string(100'000, 'd'));
  expect_bounded(declared);
  const auto declaration = parse(declared.view()).value;
  EXPECT_EQ(declaration.related.size(), max_list_items);
  EXPECT_LE(declaration.description_en.size(), max_text_bytes);
}

TEST(verdict, F37_is_valid_json_for_broken_utf8_controls_and_bidi) {
  for (const std::string_view bad :
       {std::string_view("\xc3\x28"), std::string_view("a\0b", 3), std::string_view("\xed\xa0\x80"),
        std::string_view("line\r\u2028line"), std::string_view("\u202egpu"), std::string_view("{hint}{field}\x7f")}) {
    for (const auto field : {"key", "limits", "descriptionZh", "groupI18n", "relatedResources", "runtimeClassName"}) {
      expect_bounded(sound().with(field, std::string(bad)));
    }
    expect_bounded(sound().with(std::string(bad), "x"));
    expect_bounded(sound().labelled("features.cpaas.io/enabled", std::string(bad)));
  }
  EXPECT_THAT(note_of(judged(sound().with("limits", "{hint}"))), testing::StartsWith(limits_wrong("{hint}")));
}

TEST(verdict, says_more_than_fits_with_a_count) {
  auto all = sound();
  for (const auto field : {"relatedResources", "excludeResources"}) {
    for (int i = 0; i < 30; ++i) all.data[field] += std::string(70, '\\') + std::to_string(i) + ",";
  }
  for (int i = 0; i < 20; ++i) all.data[std::string(60, 'x') + std::to_string(i)] = "";
  expect_bounded(all);
  const auto json = nlohmann::json::parse(annotation_of(judged(all)));
  EXPECT_EQ(json["findings"].size() + json["more"].get<std::size_t>(), judged(all).findings.size());
}

}  // namespace
}  // namespace reconcilers::declarations
