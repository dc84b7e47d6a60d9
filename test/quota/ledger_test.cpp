#include "quota/ledger.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#if __has_feature(address_sanitizer)
#include <sanitizer/allocator_interface.h>
#endif

namespace quota {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

node_inventory two_cards() {
  return {.name = "n",
          .serves = {},
          .cards = {{.uuid = "A", .model = {}, .memory_mib = 8192, .max_sharers = 3},
                    {.uuid = "B", .model = {}, .memory_mib = 4096}},
          .counts = {{"example.com/fpga", 2}},
          .placement = {}};
}
grant share(const char* card, std::int32_t cores, std::int64_t mib) {
  return {.cores = cores, .memory_mib = mib, .card = card};
}
grant whole(const char* card) { return {.whole = true, .card = card}; }
holding on_n(std::vector<grant> grants, std::vector<count> counts = {}) {
  return {.node = "n", .grants = std::move(grants), .counts = std::move(counts)};
}

class book : public testing::Test {
 protected:
  book() { ledger_.put(two_cards()); }
  const card_use& used(std::size_t index) { return ledger_.view("n")->used[index]; }
  ledger ledger_;
};

TEST_F(book, S8_S70_whole_cards_and_shares_are_in_one_sum) {
  EXPECT_EQ(ledger_.assume("a", on_n({whole("A")}), 10), booked::done);
  EXPECT_EQ(ledger_.assume("b", on_n({share("A", 1, 1)}), 10), booked::over_commit);
  EXPECT_EQ(ledger_.assume("b", on_n({whole("A")}), 10), booked::over_commit);
  EXPECT_EQ(ledger_.assume("b", on_n({share("B", 1, 1)}), 10), booked::done);
  EXPECT_EQ(ledger_.assume("c", on_n({whole("B")}), 10), booked::over_commit);
}

TEST_F(book, S12_no_card_is_given_out_beyond_its_cores_memory_and_sharers) {
  EXPECT_EQ(ledger_.assume("a", on_n({share("A", 60, 4096)}), 10), booked::done);
  EXPECT_EQ(ledger_.assume("b", on_n({share("A", 41, 1)}), 10), booked::over_commit);
  EXPECT_EQ(ledger_.assume("b", on_n({share("A", 1, 4097)}), 10), booked::over_commit);
  EXPECT_EQ(ledger_.assume("b", on_n({share("A", 40, 4096)}), 10), booked::done);
  EXPECT_EQ(ledger_.assume("c", on_n({share("A", 0, 0)}), 10), booked::over_commit);
  EXPECT_EQ(ledger_.assume("d", on_n({share("B", -1, 1)}), 10), booked::over_commit);
  EXPECT_EQ(ledger_.assume("d", on_n({share("B", 1, -1)}), 10), booked::over_commit);
}

TEST_F(book, an_entry_is_taken_whole_or_not_at_all) {
  EXPECT_EQ(ledger_.assume("a", on_n({share("B", 10, 1), share("B", 95, 1)}), 10), booked::over_commit);
  EXPECT_EQ(ledger_.assume("a", on_n({share("B", 10, 1)}, {{"example.com/fpga", 1}, {"example.com/fpga", 2}}), 10),
            booked::over_commit);
  EXPECT_EQ(ledger_.assume("a", on_n({share("B", 10, 1), share("gone", 1, 1)}), 10), booked::no_card);
  EXPECT_EQ(ledger_.assume("a", {.node = "m", .grants = {}, .counts = {}}, 10), booked::no_node);
  EXPECT_EQ(used(1), card_use{});
  EXPECT_EQ(ledger_.size(), 0U);
}

TEST_F(book, shares_without_cores_of_one_pod_do_not_stand_in_each_others_way) {
  EXPECT_EQ(ledger_.assume("a", on_n({share("A", 50, 1), share("A", 50, 1), share("A", 0, 1)}), 10), booked::done);
}

TEST_F(book, the_same_pod_twice_is_one_entry) {
  const auto held = on_n({share("A", 60, 4096)});
  EXPECT_EQ(ledger_.assume("a", held, 10), booked::done);
  EXPECT_EQ(ledger_.assume("a", held, 20), booked::already);
  EXPECT_EQ(ledger_.assume("a", on_n({share("B", 60, 4096)}), 20), booked::elsewhere);
  EXPECT_THAT(ledger_.expire(10), IsEmpty());
  EXPECT_EQ(used(0).cores, 60);
  EXPECT_TRUE(ledger_.release("a"));
  EXPECT_FALSE(ledger_.release("a"));
  EXPECT_EQ(used(0), card_use{});
}

#if __has_feature(address_sanitizer)
TEST_F(book, pods_that_came_and_went_leave_nothing_behind) {
  const auto life = [&] {
    for (int i = 0; i < 1000; ++i) {
      const auto uid = "a-pod-with-a-long-name-" + std::to_string(i);
      ASSERT_EQ(ledger_.assume(uid, on_n({share("A", 10, 10)}), INT64_MAX), booked::done);
      ledger_.release(uid);
    }
  };
  life();
  const auto before = __sanitizer_get_current_allocated_bytes();
  life();
  EXPECT_EQ(__sanitizer_get_current_allocated_bytes(), before);
}
#endif

TEST_F(book, what_is_confirmed_does_not_expire) {
  ledger_.assume("a", on_n({share("A", 10, 1)}), 10);
  ledger_.assume("b", on_n({share("A", 10, 1)}), 10);
  EXPECT_TRUE(ledger_.confirm("a"));
  EXPECT_FALSE(ledger_.confirm("nobody"));
  EXPECT_THAT(ledger_.expire(9), IsEmpty());
  EXPECT_THAT(ledger_.expire(10), ElementsAre("b"));
  EXPECT_EQ(used(0).cores, 10);
}

TEST_F(book, a_pod_released_and_assumed_anew_has_only_its_new_deadline) {
  ledger_.assume("a", on_n({share("A", 10, 1)}), 10);
  ledger_.release("a");
  ledger_.assume("a", on_n({share("B", 10, 1)}), 30);
  EXPECT_THAT(ledger_.expire(20), IsEmpty());
  EXPECT_THAT(ledger_.expire(30), ElementsAre("a"));
}

TEST_F(book, what_the_api_says_replaces_what_was_assumed_even_beyond_the_card) {
  ledger_.assume("a", on_n({share("A", 10, 1)}), 10);
  EXPECT_EQ(ledger_.record("a", on_n({share("B", 60, 1)})), booked::done);
  EXPECT_EQ(used(0), card_use{});
  EXPECT_EQ(ledger_.record("b", on_n({share("B", 60, 1)})), booked::over_given);
  EXPECT_EQ(ledger_.over_given("n"), 1U);
  EXPECT_EQ(ledger_.record("b", on_n({share("B", 60, 1)})), booked::already);
  EXPECT_EQ(ledger_.assume("c", on_n({share("B", 1, 1)}), 10), booked::over_commit);
  ledger_.release("a");
  EXPECT_EQ(ledger_.over_given("n"), 0U);
}

TEST_F(book, forged_numbers_give_no_room_and_do_not_overflow) {
  ledger_.record(
      "a", on_n({share("A", -100, INT64_MIN), share("A", INT32_MAX, INT64_MAX)}, {{"example.com/fpga", INT64_MIN}}));
  EXPECT_EQ(used(0).cores, 100);
  EXPECT_EQ(ledger_.assume("b", on_n({share("A", 1, 1)}), 10), booked::over_commit);
  EXPECT_EQ(ledger_.view("n")->counts_used[0], 0);
  ledger_.release("a");
  EXPECT_EQ(used(0), card_use{});
}

TEST_F(book, pods_may_come_before_their_node_and_outlive_it) {
  EXPECT_EQ(ledger_.record("a", {.node = "m", .grants = {share("A", 30, 1)}, .counts = {}}), booked::no_node);
  EXPECT_FALSE(ledger_.view("m"));
  auto late = two_cards();
  late.name = "m";
  std::swap(late.cards[0], late.cards[1]);
  ledger_.put(late);
  EXPECT_EQ(ledger_.view("m")->used[1].cores, 30);
  ledger_.remove("m");
  EXPECT_FALSE(ledger_.view("m"));
  ledger_.put(late);
  EXPECT_EQ(ledger_.view("m")->used[1].cores, 30);
  ledger_.release("a");
  ledger_.remove("m");
  EXPECT_FALSE(ledger_.view("m"));
}

TEST_F(book, a_card_that_shrinks_or_goes_keeps_its_holders_and_takes_no_more) {
  ledger_.assume("a", on_n({share("A", 10, 8000)}), 10);
  auto two_card = two_cards();
  two_card.cards[0].memory_mib = 4096;
  ledger_.put(two_card);
  EXPECT_EQ(ledger_.over_given("n"), 1U);
  EXPECT_EQ(ledger_.assume("b", on_n({share("A", 10, 1)}), 10), booked::over_commit);
  two_card.cards.erase(two_card.cards.begin());
  ledger_.put(two_card);
  EXPECT_EQ(ledger_.over_given("n"), 0U);
  EXPECT_TRUE(ledger_.release("a"));
  ledger_.put(two_cards());
  EXPECT_EQ(used(0), card_use{});
}

}  // namespace
}  // namespace quota
