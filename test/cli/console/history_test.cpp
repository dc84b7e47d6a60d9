#include "cli/console/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/facts_in.hpp"
#include "test/words.hpp"

namespace cli::console {
namespace {

using testing::HasSubstr;

chart_request chart(const std::string& query) {
  const auto made = chart_of(*parameters_in(query), 1'800'000'000);
  EXPECT_TRUE(made) << made.error().key;
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

TEST(history, a_pod_has_charts_of_its_own_in_its_namespace) {
  const auto target = chart("chart=pod_memory&namespace=team-a&pod=train-0").target();
  const std::string selector("%7Bnamespace%3D%22team-a%22%2Cpod%3D%22train-0%22%7D");
  std::size_t count = 0;
  for (auto place = target.find(selector); place != target.npos; place = target.find(selector, place + 1)) ++count;
  EXPECT_EQ(count, 4u) << "used and given, once for the lines and once for the largest: " << target;
  for (const auto* words : {"chart=pod_memory", "chart=pod_memory&namespace=team-a",
                            "chart=pod_utilization&pod=train-0", "chart=namespace_cores&namespace=team-a&pod=train-0",
                            "chart=utilization&pod=train-0", "chart=pod_memory&namespace=team-a&pod=a%22%7D"})
    EXPECT_FALSE(chart_of(*parameters_in(words), 1'800'000'000)) << words;
}

TEST(history, a_name_is_a_name) {
  for (const auto* text : {"gpu-1", "a.b-c", "0"}) EXPECT_TRUE(is_name(text)) << text;
  for (const auto* text : {"", "-a", "a-", "A", "a\"}", "a b", "a/b", "..", "a\n"}) EXPECT_FALSE(is_name(text)) << text;
}

/// An answer of Prometheus with these series.
std::string answer_with(const std::string& series) {
  return R"({"status":"success","data":{"resultType":"matrix","result":[)" + series + "]}}";
}
std::string series_with(const std::string& name, const std::string& points) {
  return R"({"metric":{"node":")" + name + R"("},"values":[)" + points + "]}";
}

TEST(history, series_share_their_times_and_gaps_are_null) {
  const auto view = history_view(chart("chart=utilization"),
                                 answer_with(series_with("a", R"([1799996400,"0.5"],[1799996460,"NaN"])") + "," +
                                             series_with("<b>", R"([1799996460,"1"],[1800000000,"0.25"])")));
  EXPECT_EQ(view["available"], true);
  EXPECT_EQ(view["unit"], "ratio");
  EXPECT_EQ(view["times"], ordered_json::parse("[1799996400,1799996460,1800000000]"));
  EXPECT_EQ(view["series"][0]["values"], ordered_json::parse("[0.5,null,null]"));
  EXPECT_EQ(view["series"][1]["values"], ordered_json::parse("[null,1.0,0.25]"));
  EXPECT_EQ(view["series"][1]["name"], "<b>");
}

TEST(history, times_outside_the_range_and_between_its_steps_are_dropped) {
  const auto view =
      history_view(chart("chart=utilization"),
                   answer_with(series_with("a", R"([1799996399,"1"],[1799996400,"2"],[1799996401,"3"],[1799996414,"4"],
          [1799996415,"5"],[1800000000,"6"],[1800000001,"7"],[-5,"8"],[1e300,"9"],[-1e300,"9"])")));
  EXPECT_EQ(view["times"], ordered_json::parse("[1799996400,1799996415,1800000000]"));
  EXPECT_EQ(view["series"][0]["values"], ordered_json::parse("[2.0,5.0,6.0]"));
}

TEST(history, times_that_were_moved_to_whole_steps_are_kept) {
  const auto made = chart("chart=utilization&range=custom&from=1799996401&to=1800000001");
  std::string points;
  for (int i = 0; i <= 240; ++i) points += (i ? "," : "") + ("[" + std::to_string(1'799'996'400 + i * 15) + R"(,"1"])");
  const auto view = history_view(made, answer_with(series_with("a", points)));
  EXPECT_EQ(view["times"].size(), 240u) << "the one before the range is not there";
}

TEST(history, a_hostile_answer_becomes_a_view_of_known_size) {
  std::string series;
  int time = 1'799'950'000;  // begins before the range, and ends after it
  for (int i = 0; i < 25; ++i) {
    std::string points;
    for (int j = 0; j < 4'000; ++j) points += (j ? "," : "") + ("[" + std::to_string(time++) + R"(,"1"])");
    series += (i ? "," : "") + series_with("n-" + std::to_string(i), points);
  }
  const auto body = answer_with(series);
  ASSERT_GT(body.size(), 1'600'000u);
  const auto view = history_view(chart("chart=utilization"), body);
  EXPECT_EQ(view["times"].size(), 241u) << "240 steps have 241 ends";
  EXPECT_EQ(view["series"].size(), most_series);
  for (const auto& item : view["series"]) EXPECT_EQ(item["values"].size(), 241u);
  EXPECT_LT(view.dump().size(), 40'000u);
}

TEST(history, only_labels_of_the_chart_are_shown_and_long_ones_leave_their_series_out) {
  const auto view = history_view(chart("chart=cards"), answer_with(R"({"metric":{"model":"T4","mode":"vgpu","x":")" +
                                                                   std::string(1'000'000, 'x') + R"("}},
      {"metric":{"model":")" + std::string(257, 'x') + R"(","mode":"vgpu"}})"));
  ASSERT_EQ(view["series"].size(), 1u);
  EXPECT_EQ(view["series"][0]["labels"], ordered_json::parse(R"({"mode":"vgpu","model":"T4"})"));
  EXPECT_EQ(view["series"][0]["name"], "vgpu T4");
}

TEST(history, what_is_no_answer_of_prometheus_is_said) {
  for (const auto* body :
       {"", "<html>", "{}", R"({"status":"error"})", R"({"status":"success","data":[]})",
        R"({"status":"success","data":{"result":{}}})", R"({"status":5})", R"({"status":null,"data":1})"}) {
    const auto view = history_view(chart("chart=memory"), body);
    EXPECT_EQ(view["available"], false) << body;
    EXPECT_EQ(view["message"], words::english("console.prometheus_unreadable"));
  }
  const auto odd = history_view(
      chart("chart=memory"), R"({"status":"success","data":{"result":[1,{"metric":3,"values":[[1],"x",[2,"3"]]}]}})");
  EXPECT_EQ(odd["series"].size(), 2u) << "what is malformed in it is left out";
}

TEST(history, the_examples_fields_are_the_views) {
  const auto view = no_history(chart("chart=cards"), {"console.no_prometheus"});
  for (const auto* field :
       {"available", "message", "messages", "chart", "from", "to", "step", "unit", "times", "series", "more"})
    EXPECT_TRUE(view.contains(field)) << field;
}

TEST(history, trends_are_per_model_and_mode) {
  const auto found = trends_in(
      R"({"status":"success","data":{"result":[{"metric":{"model":"T4","mode":"vgpu"},"values":[[1,"100"],[2,"200"]]}]}})");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.at({"T4", "vgpu"}), (trend{{1, 100}, {2, 200}}));
}

TEST(history, measured_use_is_in_percent_by_card_and_nothing_else_is_read) {
  const auto use = measured_in(R"({"status":"success","data":{"resultType":"vector","result":[
    {"metric":{"node":"gpu-1","uuid":"GPU-0"},"value":[1795608000.1,"0.534"]},
    {"metric":{"node":"gpu-1","uuid":"GPU-1"},"value":[1795608000,"7"]},
    {"metric":{"node":"gpu-1"},"value":[1795608000,"0.5"]},
    {"metric":{"node":"gpu-1","uuid":"GPU-2"},"value":[1795608000,"NaN"]}]}})");
  EXPECT_THAT(use, testing::ElementsAre(testing::Pair(testing::Pair("gpu-1", "GPU-0"), 53),
                                        testing::Pair(testing::Pair("gpu-1", "GPU-1"), 100)));
  EXPECT_TRUE(measured_in("<html>").empty());
  EXPECT_THAT(measured_target(), testing::StartsWith("/api/v1/query?query="));
}

}  // namespace
}  // namespace cli::console
