#include "agent/cards/history.hpp"

#include <gtest/gtest.h>

#include "api/xid.hpp"

namespace agent::cards {
namespace {

using namespace std::chrono_literals;

card card_named(const std::string& uuid, int minor) {
  card out;
  out.uuid = uuid;
  out.model = "Tesla T4";
  out.minor = minor;
  out.memory_mib = 15360;
  return out;
}

/// Two cards on one host bridge.
inventory pair() {
  inventory out;
  out.driver = "535.183.01";
  out.cards = {card_named("GPU-a", 0), card_named("GPU-b", 1)};
  const quota::link bridge{quota::path::host_bridge, 0};
  out.cards[0].links = {{}, bridge};
  out.cards[1].links = {bridge, {}};
  return out;
}

inventory first_alone() {
  auto out = pair();
  out.cards.pop_back();
  out.cards[0].links.pop_back();
  return out;
}

TEST(history, changes_nothing_while_all_cards_answer) {
  history history;
  EXPECT_EQ(history.complete(pair(), 0s), pair());
}

TEST(history, keeps_the_facts_and_links_of_a_lost_card) {
  history history;
  history.complete(pair(), 0s);
  auto seen = first_alone();
  seen.silent = 1;
  auto expected = pair();
  expected.silent = 1;
  expected.cards[1].defect = "Lost";
  EXPECT_EQ(history.complete(seen, 1s), expected);
  expected.silent = 0;
  EXPECT_EQ(history.complete(pair(), 2s), expected) << "it answers again, but for how long?";
  EXPECT_EQ(history.due(), 12s);
  EXPECT_EQ(history.complete(pair(), 12s), pair());
  EXPECT_EQ(history.due(), std::nullopt);
}

TEST(history, keeps_a_card_lost_that_comes_and_goes) {
  history history;
  history.complete(pair(), 0s);
  auto seen = first_alone();
  seen.silent = 1;
  for (auto now = 1s; now < 100s; now += 2s) {
    EXPECT_EQ(history.complete(seen, now).cards[1].defect, "Lost");
    EXPECT_EQ(history.complete(pair(), now + 1s).cards[1].defect, "Lost");
  }
}

TEST(history, drops_a_card_that_the_driver_no_longer_counts) {
  history history;
  history.complete(pair(), 0s);
  EXPECT_EQ(history.complete(first_alone(), 0s), first_alone());
}

TEST(history, withdraws_a_card_at_its_first_fatal_xid_until_the_driver_is_loaded_anew) {
  history history;
  history.complete(pair(), 0s);
  EXPECT_TRUE(history.see("GPU-b", 48).withdraws);
  EXPECT_FALSE(history.see("GPU-b", 95).withdraws) << "it has been withdrawn already";
  EXPECT_EQ(history.complete(pair(), 0s).cards[0].defect, "");
  EXPECT_EQ(history.complete(pair(), 0s).cards[1].defect, "XID 48");
  history.forget_defects();
  EXPECT_EQ(history.complete(pair(), 0s), pair());
}

TEST(history, keeps_a_card_whose_program_failed) {
  history history;
  for (const std::uint64_t xid : {13, 31, 43, 45, 94, 63, 92, 5, 4711})
    EXPECT_FALSE(history.see("GPU-a", xid).withdraws);
  EXPECT_EQ(history.complete(pair(), 0s), pair());
}

TEST(history, of_a_storm_is_one_verdict) {
  history history;
  int withdrawn = 0;
  for (int i = 0; i < 800'000; ++i) withdrawn += history.see("GPU-a", 95).withdraws ? 1 : 0;
  EXPECT_EQ(withdrawn, 1);
}

TEST(history, reports_all_known_cards_while_there_is_no_driver) {
  history history;
  history.complete(pair(), 0s);
  inventory none;
  none.problem = "the NVIDIA driver does not start: Driver Not Loaded";
  const auto report = history.complete(none, 0s);
  ASSERT_EQ(report.cards.size(), 2U);
  EXPECT_EQ(report.cards[0].defect, "NoDriver");
  EXPECT_EQ(report.cards[1].links, pair().cards[1].links);
  EXPECT_EQ(history.complete(pair(), 0s), pair()) << "the driver is back";
}

TEST(history, recalls_what_an_earlier_agent_reported) {
  history before;
  before.complete(pair(), 0s);
  before.see("GPU-b", 79);
  auto seen = first_alone();
  seen.silent = 1;
  const auto report = before.complete(seen, 0s);
  EXPECT_EQ(report.cards[1].defect, "XID 79");
  for (int silent : {0, 1}) {
    history after;
    after.recall(report.cards);
    seen.silent = silent;
    EXPECT_EQ(after.complete(seen, 0s).cards, report.cards)
        << "a lost card, which NVML no longer counts after its start";
  }
}

TEST(history, of_cards_without_a_name_is_their_number) {
  history history;
  auto seen = first_alone();
  seen.silent = 1;
  EXPECT_EQ(history.complete(seen, 0s), seen) << "no one has ever seen the other card";
}

TEST(history, reports_all_cards_while_the_driver_hangs) {
  history history;
  history.complete(pair(), 0s);
  history.see("GPU-b", 48);
  inventory hung;
  hung.problem = "the driver does not come back";
  hung.hangs = true;
  const auto report = history.complete(hung, 1s);
  ASSERT_EQ(report.cards.size(), 2U);
  EXPECT_EQ(report.cards[0].defect, "NotAnswering");
  EXPECT_EQ(report.cards[1].defect, "XID 48") << "so that the next agent knows it";
  EXPECT_EQ(history.complete(pair(), 2s).cards[0].defect, "") << "it answers again";
  EXPECT_EQ(history.complete(pair(), 2s).cards[1].defect, "XID 48") << "and is as sick as before";
}

TEST(history, of_an_agent_that_ended_while_the_driver_hung_is_whole) {
  history before;
  before.complete(pair(), 0s);
  before.see("GPU-a", 48);
  auto seen = first_alone();
  seen.silent = 1;
  before.complete(seen, 1s);
  inventory hung;
  hung.problem = "the driver does not come back";
  hung.hangs = true;
  const auto report = before.complete(hung, 2s);
  history after;
  after.recall(report.cards);
  const auto later = after.complete(seen, 3s);
  ASSERT_EQ(later.cards.size(), 2U);
  EXPECT_EQ(later.cards[0].defect, "XID 48");
  EXPECT_EQ(later.cards[1].defect, "Lost");
}

TEST(history, takes_an_xid_back_when_a_person_says_so) {
  history history;
  history.complete(pair(), 0s);
  history.see("GPU-b", 48);
  history.restore("GPU-b");
  EXPECT_EQ(history.complete(pair(), 0s), pair());
  EXPECT_TRUE(history.see("GPU-b", 48).withdraws) << "a later one counts again";
}

TEST(history, takes_nothing_else_back) {
  history history;
  history.complete(pair(), 0s);
  auto seen = first_alone();
  seen.silent = 1;
  history.complete(seen, 0s);
  history.restore("GPU-b");
  EXPECT_EQ(history.complete(seen, 0s).cards[1].defect, "Lost");
}

/// Clocks go down with every load: the object is not written each time.
TEST(history, keeps_a_warning_that_comes_and_goes) {
  history history;
  auto warm = pair();
  warm.cards[1].warnings = {"HwSlowdown"};
  history.complete(warm, 0s);
  for (auto now = 10s; now < 1'000s; now += 20s) {
    EXPECT_EQ(history.complete(pair(), now).cards[1].warnings, warm.cards[1].warnings);
    EXPECT_EQ(history.complete(warm, now + 10s), warm);
  }
  EXPECT_EQ(history.complete(pair(), 2'000s), warm);
  EXPECT_EQ(history.due(), 2'300s);
  EXPECT_EQ(history.complete(pair(), 2'299s), warm);
  EXPECT_EQ(history.complete(pair(), 2'300s), pair());
  EXPECT_EQ(history.due(), std::nullopt);
}

TEST(xid, is_of_one_class) {
  std::uint64_t last = 0;
  for (std::uint64_t xid = 0; xid < 200; ++xid) {
    const auto* entry = api::find_xid(xid);
    EXPECT_EQ(entry == nullptr, api::name_of(xid).empty()) << xid;
    if (entry == nullptr) EXPECT_EQ(api::class_of(xid), api::xid_class::notice) << xid;
    if (entry != nullptr) last = entry->number;
  }
  EXPECT_EQ(last, 172u);
  EXPECT_EQ(api::class_of(79), api::xid_class::fatal);
  EXPECT_EQ(api::class_of(31), api::xid_class::application);
  EXPECT_EQ(api::class_of(69), api::xid_class::application);
  EXPECT_EQ(api::class_of(63), api::xid_class::notice);
  EXPECT_EQ(api::class_of(160), api::xid_class::notice);
  EXPECT_EQ(api::class_of(100'000), api::xid_class::notice);
}

TEST(history, S20_a_card_whose_mps_has_failed_is_sick_until_mps_is_back) {
  history history;
  history.complete(pair(), 0s);
  history.take_without_mps({"GPU-b", "GPU-none"});
  auto expected = pair();
  expected.cards[1].defect = "MpsFailed";
  EXPECT_EQ(history.complete(pair(), 1s), expected);
  history.see("GPU-b", 79);
  expected.cards[1].defect = "XID 79";
  EXPECT_EQ(history.complete(pair(), 2s), expected) << "what is wrong with the card itself comes first";
  history.restore("GPU-b");
  history.take_without_mps({});
  EXPECT_EQ(history.complete(pair(), 3s), pair());
}

TEST(history, a_card_that_the_driver_limits_is_reported_while_it_does) {
  history history;
  history.take_limited({"GPU-b", "GPU-none"});
  auto expected = pair();
  expected.cards[1].is_limited = true;
  EXPECT_EQ(history.complete(pair(), 0s), expected);
  history.take_limited({});
  EXPECT_EQ(history.complete(pair(), 1s), pair());
}

TEST(history, a_report_of_failed_mps_is_no_memory_of_a_later_agent) {
  auto reported = pair();
  reported.cards[1].defect = "MpsFailed";
  history history;
  history.recall(reported.cards);
  EXPECT_EQ(history.complete(pair(), 0s), pair());
}

}  // namespace
}  // namespace agent::cards
