#include "agent/cards/xid_log.hpp"

#include <gtest/gtest.h>

namespace agent::cards {
namespace {

using namespace std::chrono_literals;

struct logged_xids : testing::Test {
  xid_log log;
  std::chrono::milliseconds now{1'000'000};
  std::vector<xid_line> lines;

  void see(const std::string& card, std::uint64_t xid, bool withdraws = false) {
    if (auto line = log.see({card, xid, withdraws}, now)) lines.push_back(std::move(*line));
  }
  void tick() {
    for (auto& line : log.due(now)) lines.push_back(std::move(line));
  }
};

TEST_F(logged_xids, one_is_logged_at_once) {
  see("a", 79, true);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].card, "a");
  EXPECT_EQ(lines[0].numbers(), "79");
  EXPECT_EQ(lines[0].names(), "fallen off the bus");
  EXPECT_EQ(lines[0].count, 1u);
  now += 1s;
  see("a", 79);
  EXPECT_EQ(lines.size(), 2u) << "a second later there is another line";
}

TEST_F(logged_xids, a_storm_is_one_line_per_card_and_second) {
  const std::vector<std::string> cards{"a", "b", "c", "d"};
  std::size_t seen = 0;
  for (int second = 0; second < 10; ++second)
    for (int i = 0; i < 1'000; ++i) {
      see(cards[i % cards.size()], 1'000 + static_cast<std::uint64_t>(i));
      ++seen;
      now += 1ms;
      if (i == 500) tick();
    }
  now += 1s;
  tick();
  EXPECT_LE(lines.size(), cards.size() * 12);
  std::size_t counted = 0;
  for (const auto& line : lines) {
    counted += line.count;
    EXPECT_LE(line.numbers().size(), 32u);
  }
  EXPECT_EQ(counted, seen) << "each is in a line";
}

TEST_F(logged_xids, the_one_that_withdraws_a_card_is_named_in_a_storm) {
  for (std::uint64_t xid = 1'000; xid < 1'020; ++xid) see("a", xid);
  see("a", 79, true);
  for (std::uint64_t xid = 1'020; xid < 1'040; ++xid) see("a", xid);
  EXPECT_EQ(lines.size(), 1u);
  now += 1s;
  tick();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].numbers(), "79, 1001, 1002 and 37 more");
  EXPECT_EQ(lines[1].names(), "fallen off the bus");
}

TEST_F(logged_xids, what_is_counted_at_the_end_is_not_lost) {
  see("a", 1'000);
  see("a", 1'001);
  const auto rest = log.rest();
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest[0].numbers(), "1001");
  EXPECT_TRUE(log.rest().empty());
}

TEST_F(logged_xids, quiet_cards_are_forgotten) {
  see("a", 1'000);
  see("b", 1'000);
  see("b", 1'001);
  now += 1s;
  tick();
  EXPECT_EQ(log.size(), 1u) << "b had a line just now";
  now += 1s;
  tick();
  EXPECT_EQ(log.size(), 0u);
}

}  // namespace
}  // namespace agent::cards
