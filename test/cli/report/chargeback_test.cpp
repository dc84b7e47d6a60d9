#include "cli/chargeback/chargeback.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "test/english.hpp"
#include "test/facts_in.hpp"
#include "test/words.hpp"
#include "text/yaml/source.hpp"

namespace cli {
namespace {

using api::accelerator_usage;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr quota::seconds hour = 3600;
constexpr std::string_view billed_month = "2026-11";
const auto begin = api::bounds_of(billed_month)->begin;

/// A Tesla-T4 has 15360 MiB.
quota::card_time cards(std::int64_t cores, std::int64_t mib, std::int64_t hours = 1) {
  return {cores * hours * hour, mib * hours * hour};
}

accelerator_usage object_of(const std::string& ns, quota::seconds end) {
  accelerator_usage out;
  out.month = billed_month;
  out.name_space = ns;
  out.key.name = api::usage_name(billed_month, ns);
  out.since = begin;
  out.until = end;
  return out;
}

/// Ten hours of two Tesla-T4 and of one FPGA; team-a and team-b hold parts of them.
struct month_of_two_teams : testing::Test {
  std::vector<accelerator_usage> objects;
  reconcilers::chargeback_spec spec{"EUR", "", {{"Tesla-*", 2'500'000}, {"*", 1'000'000}}};

  month_of_two_teams() {
    const auto end = begin + 10 * hour;
    auto cluster = object_of("", end);
    quota::model_time t4;
    t4.capacity = cards(200, 2 * 15360, 10);
    t4.parts = cards(30, 7680, 4) + cards(100, 15360, 1) + cards(50, 1536, 2);
    t4.unhealthy = cards(100, 15360, 1);
    t4.unattributed = cards(1, 1, 1);
    t4.idle = t4.capacity - t4.parts - t4.unhealthy - t4.unattributed;
    cluster.models["Tesla-T4"] = t4;
    quota::model_time fpga;
    fpga.capacity = cards(100, 0, 10);
    fpga.parts = cards(100, 0, 3);
    fpga.idle = cards(100, 0, 7);
    cluster.models["example.com/fpga"] = fpga;
    auto a = object_of("team-a", end);
    a.rows[{"Tesla-T4", "vGPU", "research", 0}] = cards(30, 7680, 4);
    a.rows[{"Tesla-T4", "pGPU", "research", 100}] = cards(100, 15360, 1);
    auto b = object_of("team-b", end);
    b.rows[{"Tesla-T4", "vGPU", "", -10}] = cards(50, 1536, 2);
    b.rows[{"example.com/fpga", "device", "", 0}] = cards(100, 0, 3);
    auto other_month = object_of("team-a", begin - 1);
    other_month.month = "2026-10";
    other_month.rows[{"Tesla-T4", "vGPU", "", 0}] = cards(100, 15360, 700);
    objects = {b, cluster, other_month, a};
  }
  accelerator_usage& object(std::string_view ns) {
    for (auto& entry : objects)
      if (entry.name_space == ns && entry.month == billed_month) return entry;
    throw std::out_of_range("no such object");
  }
  chargeback report(std::string_view ns = {}) { return chargeback_of(billed_month, objects, spec, ns).value(); }
  std::string printed(const std::string& output, const std::string& language = "en", std::string_view ns = {}) {
    std::ostringstream out;
    print(report(ns), {output, language}, out);
    return out.str();
  }
};

std::string golden(const std::string& name) {
  std::ifstream file(TEST_DATA "/golden/report/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The begin of the line that says that it does not add up.
const auto discrepancy = [] {
  const auto text = words::english("report.discrepancy", {{"text", "|"}});
  return text.substr(0, text.find('|'));
}();

TEST_F(month_of_two_teams, golden_tables_in_both_languages) {
  for (const std::string language : {"en", "zh"})
    for (const std::string output : {"table", "wide"}) {
      const auto name = "chargeback." + output + "." + language + ".txt";
      EXPECT_EQ(printed(output, language), golden(name)) << name;
    }
  EXPECT_EQ(printed("csv"), golden("chargeback.csv"));
  EXPECT_EQ(printed("json"), golden("chargeback.json"));
}

TEST_F(month_of_two_teams, json_and_yaml_are_one_answer) {
  const auto yaml = text::yaml::read("report", printed("yaml"));
  ASSERT_TRUE(yaml) << yaml.error();
  EXPECT_EQ(*text::yaml::to_json(*yaml->documents.at(0)), nlohmann::json::parse(printed("json")));
}

TEST_F(month_of_two_teams, rows_are_ordered_and_priced) {
  const auto made = report();
  ASSERT_EQ(made.rows.size(), 4u);
  EXPECT_EQ(made.rows[0].key.mode, "pGPU");
  EXPECT_EQ(made.rows[0].price, (cost{2'500'000, 250}));
  EXPECT_EQ(made.rows[1].price, (cost{5'000'000, 500})) << "half of the memory for four hours";
  EXPECT_EQ(made.rows[2].price, (cost{2'500'000, 250})) << "half of the cores for two hours";
  EXPECT_EQ(made.rows[3].price, (cost{3'000'000, 300})) << "the FPGA has the price of *";
  EXPECT_EQ(made.sum, (cost{13'000'000, 1'300}));
  EXPECT_TRUE(made.discrepancy.empty());
}

TEST_F(month_of_two_teams, S68_the_first_price_that_matches_counts) {
  spec.prices = {{"*", 1'000'000}, {"Tesla-T4", 9'000'000}};
  EXPECT_EQ(report().rows[0].card_hour, 1'000'000);
}

TEST_F(month_of_two_teams, S40_the_table_adds_up_though_each_row_is_rounded) {
  spec.prices = {{"*", 4'000}};  // rows of 0.004, 0.008, 0.004 and 0.012
  const auto made = report();
  std::int64_t sum = 0;
  for (const auto& row : made.rows) sum += row.price->hundredths;
  EXPECT_EQ(sum, 2);
  EXPECT_EQ(made.sum.hundredths, sum);
  EXPECT_EQ(made.sum.millionths, 28'000) << "rounded once it would be 0.03";
}

TEST_F(month_of_two_teams, a_model_without_a_price_is_named) {
  spec.prices.pop_back();
  const auto made = report();
  EXPECT_THAT(made.without_price, ElementsAre("example.com/fpga"));
  EXPECT_EQ(made.rows[3].price, std::nullopt);
  EXPECT_EQ(made.sum.hundredths, 1'000);
  EXPECT_THAT(printed("table"),
              HasSubstr(words::english("report.without_price", {{"models", "example.com/fpga"}}) + "\n"));
  spec.prices.clear();
  EXPECT_THAT(printed("table"), HasSubstr(words::english("report.no_prices")));
  EXPECT_THAT(printed("table"), Not(HasSubstr("Sum")));
}

TEST_F(month_of_two_teams, one_namespace_has_its_rows_alone) {
  const auto made = report("team-b");
  ASSERT_EQ(made.rows.size(), 2u);
  EXPECT_EQ(made.sum.hundredths, 550);
  EXPECT_EQ(made.models, std::nullopt);
  EXPECT_TRUE(made.discrepancy.empty()) << "the check is of all namespaces";
  EXPECT_THAT(printed("table", "en", "team-b"), Not(HasSubstr("team-a")));
  EXPECT_THAT(printed("table", "en", "none"), HasSubstr(words::english("report.no_part", {{"month", "2026-11"}})));
}

TEST_F(month_of_two_teams, of_a_checkpoint_that_was_broken_off_the_state_before_counts) {
  auto& ahead = object("team-a");
  ahead.before_through = ahead.until;
  ahead.before_rows = ahead.rows;
  ahead.until += 300;
  for (auto& [key, time] : ahead.rows) time += cards(1, 1, 1);
  auto fresh = object_of("team-c", ahead.until);
  fresh.rows[{"Tesla-T4", "vGPU", "", 0}] = cards(5, 5, 1);
  objects.push_back(fresh);
  const auto made = report();
  EXPECT_TRUE(made.discrepancy.empty());
  EXPECT_EQ(made.rows.size(), 4u) << "team-c had nothing at that checkpoint";
  EXPECT_EQ(made.sum.hundredths, 1'300);
}

/// "of_model Tesla-T4": the key and the model of what differs.
std::string difference_of(const chargeback& report) {
  const auto& phrase = report.discrepancy;
  const auto model = std::ranges::find(phrase.arguments, "model", &text::phrase_argument::name);
  return phrase.key.substr(phrase.key.rfind('.') + 1) + " " +
         (model == phrase.arguments.end() ? "" : model->values.front());
}

TEST_F(month_of_two_teams, parts_that_differ_are_said) {
  object("team-b").rows[{"example.com/fpga", "device", "", 0}].core_seconds += 1;
  EXPECT_EQ(difference_of(report()), "of_model example.com/fpga");
  const auto amount = [](const char* cores) {
    return words::english("report.difference.amount", {{"cores", cores}, {"memory", "0"}});
  };
  const auto sentence = words_of(report().discrepancy, text::language::en);
  EXPECT_EQ(sentence,
            words::english("report.difference.of_model",
                           {{"model", "example.com/fpga"}, {"rows", amount("1080001")}, {"parts", amount("1080000")}}));
  EXPECT_THAT(printed("table"), HasSubstr(discrepancy + sentence));
  EXPECT_FALSE(words::has_english_sentence(words_of(report().discrepancy, text::language::zh)));
  std::erase_if(objects, [](const accelerator_usage& entry) { return entry.name_space == "team-b"; });
  EXPECT_EQ(difference_of(report()), "of_model Tesla-T4") << "an object that is gone";
  EXPECT_EQ(difference_of(report("team-a")), "of_model Tesla-T4");
}

TEST_F(month_of_two_teams, S40_a_model_whose_columns_do_not_add_up_is_said) {
  object("").models["Tesla-T4"].idle.memory_mib_seconds -= 1;
  EXPECT_EQ(difference_of(report()), "capacity Tesla-T4");
}

/// What differs is a line on stderr, too.
TEST_F(month_of_two_teams, a_model_moves_no_cursor_in_what_differs) {
  object("team-b").rows[{"T4\x1b[2J", "vGPU", "", 0}] = cards(1, 1);
  EXPECT_EQ(difference_of(report()), "of_model T4\\u{1b}[2J");
  object("").models["T5\x1b[2J"].idle = cards(1, 1);
  EXPECT_EQ(difference_of(report()), "capacity T5\\u{1b}[2J");
}

/// Who may write the objects can write any number, and gets a report that says so.
TEST_F(month_of_two_teams, numbers_that_no_one_measured_are_said) {
  const auto most = std::numeric_limits<std::int64_t>::max();
  auto& bogus = object("").models["bogus"];
  bogus.capacity = {5, most};
  bogus.parts = bogus.idle = bogus.unhealthy = {most, most};
  bogus.beyond = {-most, -most};
  object("team-a").rows[{"bogus", "vGPU", "", 0}] = {most, most};
  object("team-b").rows[{"bogus", "vGPU", "", 0}] = {most, most};
  for (auto& entry : objects) {
    auto read = accelerator_usage::decode(entry.encode().dump());
    ASSERT_TRUE(read);
    entry = *read;
  }
  EXPECT_THAT(difference_of(report()), HasSubstr("bogus"));
  EXPECT_THAT(printed("wide"), HasSubstr(discrepancy));
}

TEST_F(month_of_two_teams, rows_too_many_are_one_row_and_the_totals_are_compared) {
  auto& rows = object("team-b").rows;
  auto fpga = rows.extract({"example.com/fpga", "device", "", 0});
  rows[{"other", "other", "other", 0}] = fpga.mapped();
  EXPECT_TRUE(report().discrepancy.empty());
  rows[{"other", "other", "other", 0}].core_seconds -= 1;
  EXPECT_EQ(difference_of(report()), "all_models ");
}

TEST_F(month_of_two_teams, says_since_when_it_counts) {
  EXPECT_THAT(printed("table"),
              HasSubstr(words::english("report.balanced", {{"period", "2026-11-01T10:00:00Z"}}) + "\n"));
  object("").since = begin + hour;
  EXPECT_THAT(printed("table"), HasSubstr(words::english("report.period", {{"until", "2026-11-01T10:00:00Z"},
                                                                           {"since", "2026-11-01T01:00:00Z"}})));
}

TEST_F(month_of_two_teams, a_month_that_nobody_counted_has_no_report) {
  EXPECT_EQ(chargeback_of("2026-12", objects, spec), std::nullopt);
  std::erase_if(objects, [](const accelerator_usage& entry) { return entry.name_space.empty(); });
  EXPECT_EQ(chargeback_of(billed_month, objects, spec), std::nullopt);
}

TEST(csv_text, is_quoted_by_rfc_4180_and_is_no_formula) {
  EXPECT_EQ(csv_text("plain text"), "plain text");
  EXPECT_EQ(csv_text("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_text("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_text("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_text(""), "");
  for (const std::string sign : {"=", "+", "-", "@"}) EXPECT_EQ(csv_text(sign + "1"), "'" + sign + "1");
  EXPECT_EQ(csv_text("=HYPERLINK(\"http://x\",1)"), "\"'=HYPERLINK(\"\"http://x\"\",1)\"");
}

}  // namespace
}  // namespace cli
