#include "cli/output/listing.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "test/words.hpp"

namespace cli {
namespace {

struct machine {
  std::string name;
  int cards = 0;
};

const listing<machine>& machines() {
  static const listing<machine> out{
      .name = "machines",
      .columns = {{"name", [](const machine& row, const bilingual&) { return row.name; }},
                  {"cards", [](const machine& row, const bilingual&) { return std::to_string(row.cards) + "/9"; }},
                  {"kind", "model", [](const machine&, const bilingual& say) { return say.message("column.node"); },
                   true}},
      .json = [](const machine& row) { return nlohmann::ordered_json{{"name", row.name}, {"cards", row.cards}}; },
      .object = [](const machine& row) { return "node/" + row.name; },
      .absence = "inspect.no_pod"};
  return out;
}

std::string printed(const listing_style& style, std::vector<machine> rows = {{"b", 10}, {"c", 2}, {"a", 2}}) {
  std::ostringstream out;
  print(machines(), std::move(rows), style, out, {{"more", 1}});
  return out.str();
}

/// A table without rows says which filter nothing matches; without a filter, that there is nothing.
TEST(listing, a_filter_that_nothing_matches_is_named) {
  EXPECT_EQ(printed({"table", "en"}, {}), words::english("inspect.no_pod") + "\n");
  auto style = filtered_by({"table", "en"}, {"gpu-1", "", namespace_filter("team"), namespace_filter("")});
  style.selector = "foo=bar";
  const auto line = words::english("no_match.rows", {{"filters", "gpu-1, -n team, -l foo=bar"}}) + "\n";
  EXPECT_EQ(printed(style, {}), line);
  EXPECT_NE(printed(style), line);
  style.output = "json";
  EXPECT_EQ(nlohmann::json::parse(printed(style, {}))["machines"], nlohmann::json::array());
  for (const auto* kind : {"nodes", "cards", "pods", "containers"})
    EXPECT_NE(absence_words(kind, {}, filtered_by({"table", "en"}, {"x"})),
              words::english("no_match.rows", {{"filters", "x"}}));
}

TEST(listing, golden_table_in_both_languages) {
  EXPECT_EQ(printed(listing_style()), "NAME  CARDS\nb     10/9\nc     2/9\na     2/9\n");
  EXPECT_EQ(printed({"wide", "zh"}, {{"b", 1}}), "名称  卡   型号\nb     1/9  节点\n");
  EXPECT_EQ(printed({"table", "zh"}, {}), words::chinese("inspect.no_pod") + "\n");
}

TEST(listing, without_a_header_its_columns_are_as_wide_as_what_they_hold) {
  listing_style style;
  style.no_headers = true;
  EXPECT_EQ(printed(style), "b  10/9\nc  2/9\na  2/9\n");
}

TEST(listing, is_sorted_by_a_column_with_numbers_by_their_value) {
  listing_style style;
  style.no_headers = true;
  style.sort_by = "cards";
  EXPECT_EQ(printed(style), "c  2/9\na  2/9\nb  10/9\n") << "equal ones stay in their order";
  style.sort_by = "name";
  style.output = "name";
  EXPECT_EQ(printed(style), "node/a\nnode/b\nnode/c\n");
  style.sort_by = "kind";
  EXPECT_EQ(printed(style), "node/b\nnode/c\nnode/a\n") << "also by one that is not printed";
  EXPECT_EQ(sort_keys(machines()), (std::vector<std::string>{"name", "cards", "kind"}));
}

TEST(listing, is_data_with_what_stands_next_to_it) {
  listing_style style("json");
  style.sort_by = "name";
  EXPECT_EQ(nlohmann::json::parse(printed(style, {{"b", 1}, {"a", 2}})),
            nlohmann::json::parse(R"({"machines":[{"name":"a","cards":2},{"name":"b","cards":1}],"more":1})"));
  EXPECT_EQ(printed({"yaml", "en"}, {}), "machines: []\nmore: 1\n");
}

TEST(listing, numbers_come_before_longer_numbers) {
  EXPECT_TRUE(sorts_before("9/10", "10/10"));
  EXPECT_TRUE(sorts_before("-1", "0"));
  EXPECT_TRUE(sorts_before("gpu-1", "gpu-2"));
  EXPECT_FALSE(sorts_before("4 AMD", "4"));
  EXPECT_FALSE(sorts_before("", ""));
}

}  // namespace
}  // namespace cli
