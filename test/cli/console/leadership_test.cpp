#include "cli/console/leadership.hpp"

#include <gtest/gtest.h>

namespace cli::console {
namespace {

using namespace std::chrono_literals;
using controller::milliseconds;

constexpr std::int64_t clock_us = 1'800'000'000'000'000;

kube::lease lease_of(std::string holder, std::int64_t renewed_us) {
  kube::lease out;
  out.holder = std::move(holder);
  out.duration_seconds = 15;
  out.renewed_us = renewed_us;
  return out;
}

/// Looks every 5 s at a holder whose clock is an hour behind.
struct lease_looks {
  leadership seen{5s};
  milliseconds now{1'000'000};
  std::int64_t renewed = clock_us - 3'600'000'000;
  void renew() { seen.see(lease_of("a", ++renewed), now += 5s, clock_us); }
  void stale() { seen.see(lease_of("a", renewed), now += 5s, clock_us); }
};

TEST(leadership, says_nothing_before_the_first_look) { EXPECT_EQ(leadership(5s).leaderless(1h), std::nullopt); }

TEST(leadership, ends_a_lease_and_one_look_after_the_last_renewal_that_was_seen) {
  lease_looks looks;
  looks.renew();
  looks.renew();
  for (int i = 0; i < 4; ++i) looks.stale();
  EXPECT_EQ(looks.seen.leaderless(looks.now), std::nullopt) << "20 s";
  EXPECT_EQ(looks.seen.leaderless(looks.now + 1ms), 20'001ms) << "of our clock, whatever the holder's says";
  looks.renew();
  EXPECT_EQ(looks.seen.leaderless(looks.now), std::nullopt);
}

TEST(leadership, a_lease_that_has_never_changed_is_as_old_as_its_stamp) {
  lease_looks looks;
  for (int i = 0; i < 5; ++i) looks.stale();
  EXPECT_EQ(looks.seen.leaderless(looks.now), std::nullopt) << "it may be renewed by a clock that is behind";
  looks.stale();
  EXPECT_EQ(looks.seen.leaderless(looks.now), 1h + 25s);
}

TEST(leadership, a_released_lease_has_one_look_to_be_taken) {
  lease_looks looks;
  looks.renew();
  looks.seen.see(lease_of("", looks.renewed), looks.now, clock_us);
  EXPECT_EQ(looks.seen.leaderless(looks.now + 5s), std::nullopt);
  EXPECT_EQ(looks.seen.leaderless(looks.now + 6s), 6s);
  looks.seen.see(lease_of("b", looks.renewed + 1), looks.now + 6s, clock_us);
  EXPECT_EQ(looks.seen.leaderless(looks.now + 6s), std::nullopt);
}

TEST(leadership, a_lease_that_is_not_there_is_no_leader) {
  leadership seen(5s);
  seen.see(std::nullopt, 1000s, clock_us);
  EXPECT_EQ(seen.leaderless(1001s), std::nullopt);
  seen.see(std::nullopt, 1006s, clock_us);
  EXPECT_EQ(seen.leaderless(1006s), 6s);
}

TEST(leadership, an_api_server_that_does_not_answer_says_nothing_of_the_operator) {
  lease_looks looks;
  looks.renew();
  looks.renew();
  looks.seen.lose(looks.now += 5s);
  EXPECT_EQ(looks.seen.leaderless(looks.now + 1h), std::nullopt);
  looks.now += 1h;
  looks.stale();
  EXPECT_EQ(looks.seen.leaderless(looks.now + 20s), std::nullopt) << "it has not been able to renew it";
  EXPECT_EQ(looks.seen.leaderless(looks.now + 21s), 21s);
}

TEST(leadership, what_was_said_before_the_api_server_fell_silent_stays) {
  lease_looks looks;
  looks.renew();
  looks.renew();
  const auto last = looks.now;
  for (int i = 0; i < 5; ++i) looks.stale();
  looks.seen.lose(looks.now += 5s);
  EXPECT_EQ(looks.seen.leaderless(looks.now), looks.now - last);
  looks.stale();
  EXPECT_EQ(looks.seen.leaderless(looks.now), looks.now - last);
}

}  // namespace
}  // namespace cli::console
