// By hand: one line, one event.

#include "controller/continuity.hpp"

#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using controller::continuity;
using ms = controller::milliseconds;

/// A list asked for at 10 s and complete at 12 s.
continuity listed() {
  continuity made;
  made.ask(10s, true);
  EXPECT_EQ(made.news(12s), std::nullopt) << "nothing was known before";
  made.begin();
  made.complete(12s);
  made.ask(13s, false);
  return made;
}

TEST(continuity, has_no_gap_before_the_first_list_is_complete) {
  continuity news;
  news.ask(1s, true);
  EXPECT_EQ(news.news(2s), std::nullopt);
  news.begin();
  news.ask(3s, true);  // the next page
  EXPECT_EQ(news.news(4s), std::nullopt);
  news.complete(4s);
  news.ask(5s, false);
  EXPECT_EQ(news.news(6s), 1s) << "the first page may have been read when it was asked for";
}

TEST(continuity, takes_the_first_five_seconds_of_a_watch_for_its_backlog) {
  auto news = listed();
  news.open(20s);
  for (const auto now : {20'000ms, 24'999ms}) {
    EXPECT_EQ(news.news(now), 10s);
    news.took(now);
  }
  EXPECT_EQ(news.news(25s), std::nullopt);
  news.took(25s);
  news.end(70s, false);
  news.ask(71s, false);
  EXPECT_EQ(news.news(72s), 25s);
}

TEST(continuity, counts_from_the_first_bytes_where_no_one_sees_the_head) {
  auto news = listed();
  EXPECT_EQ(news.news(60s), 10s);
  news.took(60s);
  EXPECT_EQ(news.news(64s), 10s);
  EXPECT_EQ(news.news(65s), std::nullopt);
}

TEST(continuity, reaches_to_the_end_of_a_watch_that_ends_in_good_order) {
  auto news = listed();
  news.open(13s);
  news.took(14s);
  news.end(15s, true);
  news.ask(16s, false);
  EXPECT_EQ(news.news(17s), 15s);
  news.end(17s, true);
  news.ask(18s, false);
  EXPECT_EQ(news.news(19s), 15s) << "it ended before its news were taken in, so it was not whole";
}

TEST(continuity, believes_no_end_of_a_watch_that_was_never_heard) {
  auto news = listed();
  news.end(14s, true);
  news.ask(15s, false);
  news.open(15s);
  news.end(16s, true);
  news.ask(17s, false);
  EXPECT_EQ(news.news(18s), 10s);
  auto quiet = listed();
  quiet.open(15s);
  quiet.end(75s, true);
  quiet.ask(76s, false);
  EXPECT_EQ(quiet.news(77s), 75s) << "it was open and nothing happened";
}

TEST(continuity, reaches_to_the_last_word_of_a_watch_that_is_cut) {
  auto news = listed();
  news.open(15s);
  news.end(19s, false);
  news.ask(20s, false);
  EXPECT_EQ(news.news(21s), 10s) << "cut while its backlog may have been on its way";
  news.took(21s);
  news.end(60s, false);
  news.ask(61s, false);
  EXPECT_EQ(news.news(62s), 21s) << "the backlog was through";
  news.end(62s, false);
  for (const auto now : {70s, 80s}) {  // the server is away
    news.ask(now, false);
    news.end(now + 1s, false);
  }
  news.ask(90s, false);
  news.open(91s);
  news.end(130s, false);
  news.ask(131s, false);
  EXPECT_EQ(news.news(132s), 91s) << "quiet, so everything before its opening had come";
}

TEST(continuity, is_not_moved_by_a_list_that_is_not_complete) {
  auto news = listed();
  news.open(15s);
  news.took(30s);
  news.end(31s, false);
  news.ask(40s, true);
  news.open(41s);
  news.begin();
  for (const auto now : {42s, 70s}) {
    EXPECT_EQ(news.news(now), 30s) << "all of a list may be old, however long it takes";
    news.took(now);
  }
  news.end(90s, false);
  news.ask(100s, true);
  EXPECT_EQ(news.news(101s), 30s);
  news.begin();
  news.complete(102s);
  EXPECT_EQ(news.news(103s), 100s) << "a WatchList goes on with what happened while it was sent";
  EXPECT_EQ(news.news(107s), std::nullopt);
}

}  // namespace
