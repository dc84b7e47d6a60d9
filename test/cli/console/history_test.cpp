#include "cli/console/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace cli::console {
namespace {

using testing::HasSubstr;

chart_request chart(const std::string& query) {
  const auto made = chart_of(*parameters_in(query), 1'800'000'000);
  EXPECT_TRUE(made) << made.error();
  return made.value_or(chart_request());
}

TEST(history, asks_for_the_largest_series_of_the_range) {
  const auto made = chart("chart=namespace_cores&range=30m&namespace=team-a");
  EXPECT_EQ(made.begin, 1'800'000'000 - 1800);
  EXPECT_EQ(made.step, 15);
  const auto target = made.target();
  EXPECT_THAT(target, HasSubstr("/api/v1/query_range?query=sum%20by%20%28namespace%29"));
  EXPECT_THAT(target, HasSubstr("namespace%3D%22team-a%22%7D"));
  EXPECT_THAT(target, HasSubstr("%20%40%20end%28%29"));
  EXPECT_THAT(target, HasSubstr("&start=1799998200&end=1800000000&step=15"));
  EXPECT_EQ(chart("chart=memory&range=7d").step, 7 * 24 * 3600 / 240);
}

TEST(history, a_name_is_a_name) {
  for (const auto* text : {"gpu-1", "a.b-c", "0"}) EXPECT_TRUE(is_name(text)) << text;
  for (const auto* text : {"", "-a", "a-", "A", "a\"}", "a b", "a/b", "..", "a\n"}) EXPECT_FALSE(is_name(text)) << text;
}

TEST(history, series_share_their_times_and_gaps_are_null) {
  const auto view =
      history_view(chart("chart=utilization"), R"({"status":"success","data":{"resultType":"matrix","result":[
      {"metric":{"node":"a"},"values":[[100,"0.5"],[160,"NaN"]]},
      {"metric":{"node":"<b>"},"values":[[160,"1"],[220,"0.25"]]}]}})");
  EXPECT_EQ(view["available"], true);
  EXPECT_EQ(view["unit"], "ratio");
  EXPECT_EQ(view["times"], ordered_json::parse("[100,160,220]"));
  EXPECT_EQ(view["series"][0]["values"], ordered_json::parse("[0.5,null,null]"));
  EXPECT_EQ(view["series"][1]["values"], ordered_json::parse("[null,1.0,0.25]"));
  EXPECT_EQ(view["series"][1]["name"], "<b>");
}

TEST(history, what_is_no_answer_of_prometheus_is_said) {
  for (const auto* body :
       {"", "<html>", "{}", R"({"status":"error"})", R"({"status":"success","data":[]})",
        R"({"status":"success","data":{"result":{}}})", R"({"status":5})", R"({"status":null,"data":1})"}) {
    const auto view = history_view(chart("chart=memory"), body);
    EXPECT_EQ(view["available"], false) << body;
    EXPECT_EQ(view["message"], "Prometheus gave an answer that cannot be read.");
  }
  const auto odd = history_view(
      chart("chart=memory"), R"({"status":"success","data":{"result":[1,{"metric":3,"values":[[1],"x",[2,"3"]]}]}})");
  EXPECT_EQ(odd["series"].size(), 2u) << "what is malformed in it is left out";
}

TEST(history, the_examples_fields_are_the_views) {
  const auto view = no_history(chart("chart=cards"), "none");
  for (const auto* field : {"available", "message", "chart", "from", "to", "step", "unit", "times", "series", "more"})
    EXPECT_TRUE(view.contains(field)) << field;
}

TEST(history, trends_are_per_model_and_mode) {
  const auto found = trends_in(
      R"({"status":"success","data":{"result":[{"metric":{"model":"T4","mode":"vgpu"},"values":[[1,"100"],[2,"200"]]}]}})");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at({"T4", "vgpu"}), (trend{{1, 100}, {2, 200}}));
}

}  // namespace
}  // namespace cli::console
