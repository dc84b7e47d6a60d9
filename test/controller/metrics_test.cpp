#include "controller/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "test/rounds.hpp"

namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(metrics, writes_counters_gauges_and_histograms_as_prometheus_reads_them) {
  controller::registry registry;
  registry.make_counter("a_total", "As.").add(3);
  registry.make_gauge("b", "B.").set(-1.5);
  static constexpr double edges[] = {0.1, 1};
  auto& h = registry.make_histogram("c_seconds", "Cs.", edges);
  h.observe(0.1);
  h.observe(0.5);
  h.observe(7);
  const auto text = registry.text();
  EXPECT_TRUE(has_line(text, "# HELP a_total As.")) << text;
  EXPECT_TRUE(has_line(text, "# TYPE a_total counter"));
  EXPECT_TRUE(has_line(text, "a_total 3"));
  EXPECT_TRUE(has_line(text, "b -1.5"));
  EXPECT_TRUE(has_line(text, R"(c_seconds_bucket{le="0.1"} 1)")) << "an edge belongs to its bucket";
  EXPECT_TRUE(has_line(text, R"(c_seconds_bucket{le="1"} 2)"));
  EXPECT_TRUE(has_line(text, R"(c_seconds_bucket{le="+Inf"} 3)"));
  EXPECT_TRUE(has_line(text, "c_seconds_sum 7.6"));
  EXPECT_TRUE(has_line(text, "c_seconds_count 3"));
}

TEST(metrics, keeps_series_apart_by_their_labels) {
  controller::registry registry;
  auto& family = registry.counters("x_total", "X.", {"verb", "code"});
  family.with({"GET", "200"}).add();
  family.with({"GET", "404"}).add(2);
  family.with({"GET", "200"}).add();
  const auto text = registry.text();
  EXPECT_TRUE(has_line(text, R"(x_total{verb="GET",code="200"} 2)")) << text;
  EXPECT_TRUE(has_line(text, R"(x_total{verb="GET",code="404"} 2)"));
  family.remove({"GET", "200"});
  EXPECT_EQ(registry.text().find("200"), std::string::npos);
}

TEST(metrics, F59_any_number_of_label_values_is_a_bounded_number_of_series) {
  controller::registry registry;
  auto& family = registry.counters("x_total", "X.", {"name"}, 100);
  const int values = test::rounds(100'000, 1'000'000);
  for (int i = 0; i < values; ++i) family.with({std::to_string(i)}).add();
  EXPECT_LE(family.size(), 101U);
  const auto text = registry.text();
  EXPECT_TRUE(has_line(text, R"(x_total{name="other"} )" + std::to_string(values - 100)));
  EXPECT_TRUE(has_line(text, "quartermaster_metrics_series_refused_total " + std::to_string(values - 100)));
}

TEST(metrics, F37_label_values_of_strangers_stay_one_line_of_valid_text) {
  controller::registry registry;
  registry.gauges("x", "X.", {"name"})
      .with({"a\"b\\c\nd\xff"
             "é"})
      .set(1);
  EXPECT_TRUE(has_line(registry.text(), "x{name=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\u00e9\"} 1")) << registry.text();
}

TEST(metrics, writes_numbers_without_losing_or_inventing_digits) {
  controller::metric_text out;
  out.sample("big", {}, 12345678901.0);
  out.sample("fraction", {}, 0.1);
  out.sample("inf", {}, INFINITY);
  out.sample("nan", {}, NAN);
  out.sample("huge", {}, 1e300);
  EXPECT_EQ(out.take(), "big 12345678901\nfraction 0.1\ninf +Inf\nnan NaN\nhuge 1e+300\n");
}

TEST(metrics, a_name_is_registered_once) {
  controller::registry registry;
  registry.make_gauge("x", "X.");
  EXPECT_THROW(registry.make_counter("x", "X."), std::logic_error);
}

TEST(metrics, collectors_write_what_is_true_at_the_scrape) {
  controller::registry registry;
  double now = 1;
  registry.collect([&](controller::metric_text& metric_text) {
    metric_text.family("now", "Now.", "gauge");
    metric_text.sample("now", {}, now);
  });
  EXPECT_TRUE(has_line(registry.text(), "now 1"));
  now = 2;
  EXPECT_TRUE(has_line(registry.text(), "now 2"));
}

TEST(metrics, knows_the_process) {
  controller::registry registry;
  controller::add_process_metrics(registry);
  const auto text = registry.text();
  const auto value = [&](const std::string& name) {
    const auto position = text.find("\n" + name + " ");
    return position == std::string::npos ? -1 : std::stod(text.substr(position + name.size() + 2));
  };
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_GE(value("process_open_fds"), 3);
  EXPECT_GE(value("process_threads"), 1);
  EXPECT_GT(value("process_start_time_seconds"), 1.5e9);
  EXPECT_GE(value("process_cpu_seconds_total"), 0);
  EXPECT_EQ(value("quartermaster_build_info{version=\"" QUARTERMASTER_VERSION "\"}"), 1);
}

}  // namespace
