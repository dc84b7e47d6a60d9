#include "cli/report/right_size.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cluster/prometheus.hpp"
#include "cli/flags/flags.hpp"
#include "cli/program.hpp"
#include "test/facts_in.hpp"
#include "test/words.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json series_of(const std::string& ns, const std::string& pod, const std::string& card, const std::string& value) {
  json out;
  out["metric"] = {{"namespace", ns}, {"pod", pod},   {"container", "main"}, {"model", "Tesla-T4"},
                   {"mode", "vgpu"},  {"uuid", card}, {"node", "gpu-1"}};
  out["value"] = json::array({1795600000, value});
  return out;
}
std::string body_of(std::initializer_list<json> series) {
  json out{{"status", "success"}};
  out["data"] = {{"resultType", "vector"}, {"result", series}};
  return out.dump();
}

std::string unused() {
  return body_of({series_of("team-b", "train", "GPU-2", "0.25"), series_of("team-a", "infer", "GPU-1", "0.0976")});
}
std::string given() {
  return body_of({series_of("team-a", "infer", "GPU-1", "16106127360"),  // 15360 MiB
                  series_of("team-b", "train", "GPU-2", "1073741824")});
}

TEST(right_size, S39_the_query_is_that_of_the_alert) {
  std::ifstream file("charts/quartermaster/files/rules.yaml");
  const std::string rules{std::istreambuf_iterator<char>(file), {}};
  std::string text;  // one blank where there is a line end or several blanks
  for (const char letter : rules) {
    const bool is_blank = letter == ' ' || letter == '\n';
    if (!is_blank || !text.ends_with(' ')) text += is_blank ? ' ' : letter;
  }
  EXPECT_THAT(text, HasSubstr("alert: QuartermasterShareMemoryUnused expr: |- " + unused_query() + " labels:"));
}

TEST(right_size, S39_joins_what_was_used_with_what_was_given) {
  const auto rows = right_sizes(unused(), given(), "");
  ASSERT_TRUE(rows) << rows.error().key;
  ASSERT_EQ(rows->size(), 2u);
  const auto& first = rows->front();
  EXPECT_EQ(first.name_space, "team-a");
  EXPECT_EQ(first.given_mib, 15360);
  EXPECT_EQ(first.peak_mib, 1500) << "rounded up";
  EXPECT_EQ(first.advised_mib(), 2048) << "1875, in units of 256";
  EXPECT_EQ(rows->back().peak_mib, 256);
  EXPECT_EQ(rows->back().advised_mib(), 512);
  EXPECT_EQ(right_sizes(unused(), given(), "team-b")->size(), 1u);
}

TEST(right_size, S39_the_advice_is_never_more_than_what_was_given_and_never_nothing) {
  right_size_row row;
  row.given_mib = 300;
  row.peak_mib = 80;
  EXPECT_EQ(row.advised_mib(), 256);
  row.peak_mib = 260;
  EXPECT_EQ(row.advised_mib(), 300);
  row.given_mib = 4096;
  row.peak_mib = 0;
  EXPECT_EQ(row.advised_mib(), 256);
}

TEST(right_size, a_share_that_ended_between_two_answers_is_left_out) {
  const auto rows = right_sizes(unused(), body_of({series_of("team-a", "infer", "GPU-1", "16106127360")}), "");
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->size(), 1u);
}

TEST(right_size, an_answer_that_cannot_be_read_is_said) {
  for (const auto* body : {"", "<html>", "[]", R"({"status":"error"})", R"({"status":"success","data":[]})"})
    EXPECT_EQ(right_sizes(body, given(), "").error().key, "report.unreadable") << body;
  for (const auto* value : {"NaN", "+Inf", "", "-1", "x"})
    EXPECT_EQ(right_sizes(body_of({series_of("team-a", "infer", "GPU-1", value)}), given(), "")->size(), 0u) << value;
}

std::string printed_sizes(const std::string& output, const std::string& language) {
  std::ostringstream out;
  print(*right_sizes(unused(), given(), ""), {output, language}, out);
  return out.str();
}

TEST(right_size, golden_table) {
  EXPECT_EQ(printed_sizes("table", "en"),
            "NAMESPACE  POD    CONTAINER  MODEL     GIVEN-MIB  PEAK-MIB  USED%  ADVISED-MIB\n"
            "team-a     infer  main       Tesla-T4  15360      1500      9%     2048\n"
            "team-b     train  main       Tesla-T4  1024       256       25%    512\n");
}

TEST(right_size, has_wide_columns_and_is_json) {
  EXPECT_THAT(printed_sizes("wide", "zh"), testing::ContainsRegex("vgpu +gpu-1 +GPU-2\n"));
  const auto data = json::parse(printed_sizes("json", "en"));
  EXPECT_EQ(data["containers"][0]["advisedMiB"], 2048);
  EXPECT_EQ(data["containers"][0]["used"], 0.0976);
  std::ostringstream none;
  print(std::vector<right_size_row>(), {"table", "en"}, none);
  EXPECT_THAT(none.str(), HasSubstr(words::english("report.right_size.nothing")));
}

TEST(right_size, numbers_of_no_card_are_left_out) {
  for (const auto* size : {"1e308", "+Inf", "NaN", "-1"})
    EXPECT_TRUE(
        right_sizes(body_of({series_of("a", "p", "GPU-1", "0.1")}), body_of({series_of("a", "p", "GPU-1", size)}), "")
            ->empty())
        << size;
  EXPECT_TRUE(
      right_sizes(body_of({series_of("a", "p", "GPU-1", "1e17")}), body_of({series_of("a", "p", "GPU-1", "1e17")}), "")
          ->empty());
}

TEST(right_size, an_answer_that_is_nested_without_end_is_none) {
  EXPECT_TRUE(answer_in(std::string(1 << 20, '[')).is_discarded());
  EXPECT_TRUE(answer_in("{\"a\":" + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}").is_discarded());
  EXPECT_EQ(answer_in(R"({"text":"[[[[[[[[[[[[[[[[[[[[\\\"{{{"})")["text"], "[[[[[[[[[[[[[[[[[[[[\\\"{{{");
  EXPECT_TRUE(answer_in("]]]]").is_discarded());
}

std::pair<int, std::string> run(std::vector<std::string> words) {
  testing::internal::CaptureStdout(), testing::internal::CaptureStderr();
  const int rc = run_program("quartermaster", std::move(words));
  testing::internal::GetCapturedStdout();
  return {rc, testing::internal::GetCapturedStderr()};
}

TEST(report_verbs, golden_lines_of_wrong_words) {
  using testing::AllOf, testing::ContainsRegex, testing::Not, testing::Pair, testing::EndsWith;
  EXPECT_THAT(run({"report", "right-size"}),
              Pair(2, words::has_in_order({"quartermaster: right-size ", "--prometheus-url URL\n"})));
  EXPECT_THAT(run({"report", "right-size", "--prometheus-url", "prometheus:9090"}),
              Pair(2, "quartermaster: --prometheus-url prometheus:9090: it begins with http:// or https://\n"));
  for (const auto* url : {"http://", "https:///", "http://:9090", "http://prometheus\n:9090"})
    EXPECT_THAT(run({"report", "right-size", "--prometheus-url", url}),
                Pair(2, AllOf(HasSubstr(": there is no host"), ContainsRegex("^[^\n]+\n$"))))
        << url;
  for (const auto* url : {"http://admin:secret@prometheus:9090", "https://admin:secret@p/x", "admin:secret@prometheus"})
    EXPECT_THAT(
        run({"report", "right-size", "--prometheus-url", url}),
        Pair(2, AllOf(HasSubstr("leave out what is before @"), Not(HasSubstr("secret")), ContainsRegex("^[^\n]+\n$"))))
        << url;
  for (const auto* url : {"http://p:9090/?x=1", "http://p:9090#x"})
    EXPECT_THAT(run({"report", "capacity", "--prometheus-url", url}),
                Pair(2, HasSubstr(words::english("usage.prometheus.query", {{"url", url}}))))
        << url;
  EXPECT_THAT(run({"report", "capacity", "--snapshot", "test"}),
              Pair(1, words::has_in_order({"quartermaster: test: ", "folder\n"})));
  EXPECT_THAT(run({"report", "chargeback", "--month", "2026\n11"}),
              Pair(2, HasSubstr(words::english("usage.no_month", {{"name", "--month"}, {"value", "2026 11"}}))));
  for (const auto* month : {"2026-13", "2026-1", "november", "2026-11-01", ""})
    EXPECT_THAT(run({"report", "chargeback", "--month", month}),
                Pair(2, HasSubstr(words::english("usage.no_month", {{"name", "--month"}, {"value", month}}))))
        << month;
  for (const auto* name : {"Team_A", "team.a", "-team", "team\na", ""})
    for (const auto* verb : {"chargeback", "right-size"})
      EXPECT_THAT(run({"report", verb, "-n", name}),
                  Pair(2, AllOf(HasSubstr(words::english("usage.not_a_namespace",
                                                         {{"name", "--namespace"}, {"value", text::shown(name)}})),
                                ContainsRegex("^[^\n]+\n$"))))
          << name;
  EXPECT_THAT(run({"report", "capacity", "-o", "csv"}), Pair(2, HasSubstr("csv")));
  EXPECT_THAT(run({"inspect", "nodes", "--watch", "-o", "json"}),
              Pair(2, words::has_in_order({"quartermaster: --watch ", "leave out -o json\n"})));
  EXPECT_THAT(run({"report", "right-size", "--prometheus-url", "http://127.0.0.1:1"}),
              Pair(1, AllOf(HasSubstr("quartermaster: Prometheus http://127.0.0.1:1: "),
                            HasSubstr("connect 127.0.0.1:1: connection refused"), EndsWith("\n"))));
}

}  // namespace
}  // namespace cli
