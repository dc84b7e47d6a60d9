#include "cli/report/capacity_report.hpp"

#include <sstream>

#include "cli/console/views.hpp"
#include "test/cli/console/two_teams.hpp"
#include "test/english.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using console_test::two_teams;
using testing::HasSubstr;
using testing::Not;

struct capacity_report : two_teams {
  console::ordered_json view(const console::trends& trends = {}, const std::string& message = "no Prometheus") {
    return console::capacity_view(read(), everyone(), trends, message);
  }
  static std::string printed(const console::ordered_json& view, const std::string& output,
                             const std::string& language = "en") {
    std::ostringstream out;
    print_capacity(view, {"report.capacity.no_shares"}, {output, language}, out);
    return out.str();
  }
};

TEST_F(capacity_report, is_the_capacity_view_as_a_table) {
  const auto row = view()["models"][0];
  const auto text = printed(view(), "table");
  EXPECT_THAT(text, HasSubstr(words::english("column.model")));
  EXPECT_THAT(text, HasSubstr(row["usedCores"].dump() + "/" + row["cores"].dump()));
  EXPECT_THAT(text, HasSubstr(row["usedMiB"].dump() + "/" + row["memoryMiB"].dump()));
  EXPECT_THAT(text, HasSubstr("\n" +
                              words::english("report.capacity.no_days",
                                             {{"reason", words::english("report.capacity.no_shares")}}) +
                              "\n"));
  EXPECT_FALSE(words::has_english_sentence(printed(view(), "table", "zh")));
  EXPECT_THAT(printed(view(), "table", "zh"), HasSubstr(words::chinese("column.days_until_full")));
  EXPECT_THAT(printed(view(), "wide"), HasSubstr(words::english("column.stranded_cards")));
}

TEST_F(capacity_report, S43_has_days_where_there_is_a_trend) {
  const auto row = view()["models"][0];
  console::trend trend;
  for (int i = 0; i <= 24; ++i) trend.emplace_back(1'795'600'000 + i * 3600, 100.0 + i);
  const auto known = view({{{row["model"], row["mode"]}, trend}}, "");
  std::ostringstream out;
  print_capacity(known, {}, {"table", "en"}, out);
  const auto text = out.str();
  const auto no_days = words::english("report.capacity.no_days", {{"reason", "|"}});
  EXPECT_THAT(text, HasSubstr("  " + known["models"][0]["daysUntilFull"].dump() + "\n"));
  EXPECT_THAT(text, Not(HasSubstr(no_days.substr(0, no_days.find('|')))));
}

TEST_F(capacity_report, json_is_the_answer_of_the_console) {
  EXPECT_EQ(nlohmann::json::parse(printed(view(), "json")), nlohmann::json(view()));
}

TEST(capacity_report_of_nothing, says_so) {
  std::ostringstream out;
  print_capacity({{"models", nlohmann::ordered_json::array()}, {"trendMessage", ""}}, {}, {"table", "en"}, out);
  EXPECT_EQ(out.str(), words::english("report.capacity.nothing") + "\n");
}

}  // namespace
}  // namespace cli
