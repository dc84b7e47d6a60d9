// The machine by hand. client-go's util/workqueue tests have their counterparts here by name.

#include "controller/work_queue.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using controller::milliseconds;
using namespace std::chrono_literals;

kube::object_key key(std::string name) { return {"", std::move(name)}; }

struct work_queue : testing::Test {
  double jitter = 0;
  controller::work_queue queue{controller::work_queue::settings(), [this] { return jitter; }};

  std::string take(milliseconds now) {
    const auto taken = queue.take(now);
    return taken ? taken->name : "nothing";
  }
};

TEST_F(work_queue, hands_out_each_added_key_once) {  // TestBasic
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 50; ++i) queue.add(key(std::to_string(i)), 0ms);
  }
  std::vector<std::string> seen;
  while (const auto taken = queue.take(0ms)) {
    seen.push_back(taken->name);
    queue.done(*taken);
  }
  ASSERT_EQ(seen.size(), 50U);
  EXPECT_EQ(seen.front(), "0");
  EXPECT_EQ(seen.back(), "49");
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(work_queue, adds_a_key_that_is_processing_again_when_done) {  // TestAddWhileProcessing, TestReinsert
  queue.add(key("foo"), 0ms);
  EXPECT_EQ(take(0ms), "foo");
  queue.add(key("foo"), 0ms);
  EXPECT_EQ(take(0ms), "nothing") << "a key is never processed twice at once";
  EXPECT_FALSE(queue.next_due());
  queue.done(key("foo"));
  EXPECT_EQ(take(0ms), "foo");
  queue.done(key("foo"));
  EXPECT_EQ(take(0ms), "nothing");
}

TEST_F(work_queue, counts_a_key_once_in_its_depth) {  // TestLen
  queue.add(key("foo"), 0ms);
  EXPECT_EQ(queue.depth(0ms), 1U);
  queue.add(key("bar"), 0ms);
  EXPECT_EQ(queue.depth(0ms), 2U);
  queue.add(key("foo"), 0ms);
  EXPECT_EQ(queue.depth(0ms), 2U);
}

TEST_F(work_queue, collapses_adds_before_and_while_processing) {  // TestCollapse, TestCollapseWhileProcessing
  queue.add(key("bar"), 0ms);
  queue.add(key("bar"), 0ms);
  EXPECT_EQ(take(0ms), "bar");
  queue.add(key("bar"), 0ms);
  queue.add(key("bar"), 0ms);
  queue.done(key("bar"));
  EXPECT_EQ(take(0ms), "bar");
  queue.done(key("bar"));
  EXPECT_EQ(take(0ms), "nothing");
}

TEST_F(work_queue, keeps_nothing_of_keys_that_are_done) {  // TestGarbageCollection
  queue.add(key("foo"), 0ms);
  take(0ms);
  EXPECT_EQ(queue.size(), 1U);
  queue.done(key("foo"));
  EXPECT_EQ(queue.size(), 0U);
}

TEST_F(work_queue, done_of_a_key_that_was_not_taken_changes_nothing) {
  queue.add(key("foo"), 0ms);
  queue.done(key("foo"));
  queue.done(key("never seen"));
  EXPECT_EQ(queue.failed(key("never seen"), 0ms), 0ms);
  EXPECT_EQ(take(0ms), "foo");
  EXPECT_EQ(queue.processing(), 1U);
}

TEST_F(work_queue, holds_a_delayed_key_until_it_is_due) {  // TestSimpleQueue
  queue.add(key("foo"), 50ms);
  EXPECT_EQ(take(49ms), "nothing");
  EXPECT_EQ(queue.next_due(), 50ms);
  EXPECT_EQ(take(50ms), "foo");
  queue.done(key("foo"));
  EXPECT_EQ(take(10s), "nothing");
}

TEST_F(work_queue, of_two_delays_the_earlier_counts) {  // TestDeduping
  queue.add(key("foo"), 50ms);
  queue.add(key("foo"), 70ms);
  EXPECT_EQ(take(60ms), "foo");
  queue.done(key("foo"));
  EXPECT_EQ(take(80ms), "nothing");

  queue.add(key("foo"), 130ms);
  queue.add(key("foo"), 110ms);
  EXPECT_EQ(queue.delayed(), 1U);
  EXPECT_EQ(take(120ms), "foo");
  queue.done(key("foo"));
  EXPECT_EQ(take(140ms), "nothing");
}

TEST_F(work_queue, fires_a_later_add_first_when_it_is_due_first) {  // TestAddTwoFireEarly
  queue.add(key("first"), 1000ms);
  queue.add(key("second"), 50ms);
  EXPECT_EQ(take(60ms), "second");
  queue.add(key("third"), 2060ms);
  EXPECT_EQ(take(1060ms), "first");
  EXPECT_EQ(take(3060ms), "third");
}

TEST_F(work_queue, gives_keys_that_became_due_together_in_the_order_of_their_times) {  // TestCopyShifting
  queue.add(key("first"), 1000ms);
  queue.add(key("second"), 500ms);
  queue.add(key("third"), 250ms);
  EXPECT_EQ(queue.depth(2000ms), 3U);
  EXPECT_EQ(take(2000ms), "third");
  EXPECT_EQ(take(2000ms), "second");
  EXPECT_EQ(take(2000ms), "first");
}

TEST_F(work_queue, a_delayed_add_while_processing_waits_for_its_time) {
  queue.add(key("foo"), 0ms);
  take(0ms);
  queue.add(key("foo"), 500ms);
  queue.add(key("foo"), 300ms);
  queue.done(key("foo"));
  EXPECT_EQ(take(299ms), "nothing");
  EXPECT_EQ(take(300ms), "foo");
}

TEST_F(work_queue, takes_the_higher_priority_first_and_equals_in_order) {
  queue.add(key("start 1"), 0ms, 0);
  queue.add(key("start 2"), 0ms, 0);
  queue.add(key("changed"), 0ms, 10);
  EXPECT_EQ(take(0ms), "changed");
  EXPECT_EQ(take(0ms), "start 1");
  EXPECT_EQ(take(0ms), "start 2");
}

TEST_F(work_queue, raises_the_priority_of_a_queued_key_and_never_lowers_it) {
  queue.add(key("a"), 0ms, 0);
  queue.add(key("b"), 0ms, 0);
  queue.depth(0ms);
  queue.add(key("b"), 0ms, 5);
  queue.add(key("b"), 0ms, 1);
  EXPECT_EQ(take(0ms), "b");
  EXPECT_EQ(take(0ms), "a");
}

TEST_F(work_queue, a_priority_ends_with_the_processing_it_was_given_for) {
  queue.add(key("a"), 0ms, 9);
  take(0ms);
  queue.done(key("a"));
  queue.add(key("b"), 0ms, 1);
  queue.add(key("a"), 0ms, 0);
  EXPECT_EQ(take(0ms), "b");
}

TEST_F(work_queue, doubles_the_back_off_of_each_key_up_to_the_cap) {  // TestItemExponentialFailureRateLimiter(OverFlow)
  milliseconds now = 0ms;
  std::vector<long> delays;
  queue.add(key("one"), now);
  for (int i = 0; i < 70; ++i) {
    ASSERT_EQ(take(now), "one");
    const auto delay = queue.failed(key("one"), now);
    delays.push_back(delay.count());
    ASSERT_EQ(take(now + delay - 1ms), "nothing");
    now += delay;
  }
  EXPECT_EQ((std::vector<long>(delays.begin(), delays.begin() + 5)), (std::vector<long>{5, 10, 20, 40, 80}));
  EXPECT_EQ(delays.back(), 30'000);
  EXPECT_EQ(queue.failures(key("one")), 70U);

  queue.add(key("two"), now - 1ms);
  ASSERT_EQ(take(now - 1ms), "two");
  EXPECT_EQ(queue.failed(key("two"), now - 1ms), 5ms) << "keys do not share their back-off";
}

TEST_F(work_queue, starts_over_after_forget) {  // TestRateLimitingQueue
  queue.add(key("one"), 0ms);
  take(0ms);
  queue.failed(key("one"), 0ms);
  take(100ms);
  EXPECT_EQ(queue.failed(key("one"), 100ms), 10ms);
  take(200ms);
  queue.forget(key("one"));
  EXPECT_EQ(queue.failures(key("one")), 0U);
  EXPECT_EQ(queue.failed(key("one"), 200ms), 5ms);
}

TEST_F(work_queue, jitter_only_shortens_a_back_off_and_by_a_fifth_at_most) {
  jitter = 0.999;
  queue.add(key("one"), 0ms);
  milliseconds now = 0ms, last = 0ms;
  for (int i = 0; i < 20; ++i) {
    take(now);
    last = queue.failed(key("one"), now);
    ASSERT_GE(last, 1ms);
    now += last;
  }
  EXPECT_GE(last, 24'000ms);
  EXPECT_LT(last, 30'000ms);
}

TEST_F(work_queue, a_change_ends_the_back_off_but_not_the_count_of_failures) {
  queue.add(key("one"), 0ms);
  take(0ms);
  queue.failed(key("one"), 0ms);
  queue.add(key("one"), 1ms);
  EXPECT_EQ(take(1ms), "one");
  EXPECT_EQ(queue.failures(key("one")), 1U);
}

TEST_F(work_queue, a_key_that_changed_while_it_failed_does_not_wait) {
  queue.add(key("one"), 0ms);
  take(0ms);
  queue.add(key("one"), 2ms);
  queue.failed(key("one"), 3ms);
  EXPECT_EQ(take(3ms), "one");
}

TEST_F(work_queue, F32_depth_is_bounded_by_the_number_of_keys_in_a_storm) {
  for (int change = 0; change < 100'000; ++change) {
    queue.add(key("node-" + std::to_string(change % 500)), milliseconds(change / 100));
    if (change % 50 == 0) {
      if (const auto taken = queue.take(milliseconds(change / 100))) queue.done(*taken);
    }
  }
  EXPECT_LE(queue.depth(10s), 500U);
  EXPECT_LE(queue.size(), 500U);
}

TEST_F(work_queue, tells_how_long_a_key_was_due) {
  queue.add(key("one"), 100ms);
  take(175ms);
  EXPECT_EQ(queue.last_wait(), 75ms);
}

}  // namespace
