// The machine by hand, one line an event. client-go's tools/leaderelection tests have their counterparts here, and so
// have the accidents that leader election is known for.

#include "controller/lease_machine.hpp"

#include <gtest/gtest.h>

namespace {

using controller::lease_record;
using controller::lease_settings;
using controller::lease_step;
using controller::milliseconds;
using kind = controller::lease_step::kind;
using namespace std::chrono_literals;

lease_settings ours() {
  lease_settings out;
  out.identity = "baz";
  return out;
}

lease_record record(std::string holder, std::string version = "1", std::int64_t transitions = 3) {
  lease_record out;
  out.holder = std::move(holder);
  out.duration_seconds = 15;
  out.transitions = transitions;
  out.renew_time = "2026-01-01T00:00:00.000000Z";
  out.resource_version = std::move(version);
  return out;
}

kube::error failure(kube::errc code) { return {code, 0, "it failed", {}}; }

struct lease_machine : testing::Test {
  double jitter = 0;
  controller::lease_machine machine{ours(), [this] { return jitter; }};

  kind next(milliseconds now) { return machine.next(now).action; }
  /// Leads from `now` on, the write having been sent then.
  void lead(milliseconds now) {
    ASSERT_EQ(next(now), kind::read);
    machine.on_record(std::nullopt, now);
    ASSERT_EQ(next(now), kind::acquire);
    machine.on_written(record("baz", "10", 0), now, now + 5ms);
    ASSERT_TRUE(machine.held(now + 5ms));
  }
};

TEST_F(lease_machine, acquires_when_there_is_no_object) {
  EXPECT_EQ(next(0ms), kind::read);
  machine.on_record(std::nullopt, 10ms);
  const auto step = machine.next(10ms);
  EXPECT_EQ(step.action, kind::acquire);
  EXPECT_TRUE(step.create);
  EXPECT_EQ(step.transitions, 0);
  EXPECT_FALSE(machine.held(10ms)) << "leads only once the server has taken the write";
  machine.on_written(record("baz"), 10ms, 20ms);
  EXPECT_TRUE(machine.held(20ms));
  EXPECT_EQ(machine.holder(), "baz");
}

TEST_F(lease_machine, acquires_a_record_without_a_holder_and_counts_the_transition) {
  next(0ms);
  machine.on_record(record(""), 0ms);
  const auto step = machine.next(0ms);
  EXPECT_EQ(step.action, kind::acquire);
  EXPECT_FALSE(step.create);
  EXPECT_EQ(step.transitions, 4);
  EXPECT_FALSE(step.keep_acquire_time);
}

TEST_F(lease_machine, does_not_acquire_from_a_holder_whose_time_is_not_over) {
  next(0ms);
  machine.on_record(record("bing"), 0ms);
  EXPECT_EQ(machine.next(0ms).wait, 2000ms);
  for (auto now = 2000ms; now < 15'000ms; now += 2000ms) {
    ASSERT_EQ(next(now), kind::read) << now.count();
    machine.on_record(record("bing"), now);
    ASSERT_EQ(next(now), kind::wait) << now.count();
  }
  EXPECT_EQ(machine.holder(), "bing");
}

TEST_F(lease_machine, acquires_when_the_record_did_not_change_for_its_own_duration) {
  auto short_lease = record("bing");
  short_lease.duration_seconds = 3;
  next(0ms);
  machine.on_record(short_lease, 0ms);
  EXPECT_EQ(next(2000ms), kind::read);
  machine.on_record(short_lease, 2999ms);
  EXPECT_EQ(next(2999ms), kind::wait);
  EXPECT_EQ(next(5000ms), kind::read);
  machine.on_record(short_lease, 5000ms);
  const auto step = machine.next(5000ms);
  EXPECT_EQ(step.action, kind::acquire);
  EXPECT_EQ(step.transitions, 4);
}

TEST_F(lease_machine, every_renewal_of_the_holder_starts_its_time_anew) {
  milliseconds now = 0ms;
  for (int i = 0; i < 20; ++i, now += 4000ms) {
    ASSERT_EQ(next(now), kind::read);
    machine.on_record(record("bing", std::to_string(i)), now);
    ASSERT_EQ(next(now), kind::wait);
  }
}

TEST_F(lease_machine, F26_the_other_clock_is_never_read) {
  for (const char* entry : {"1970-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z", "nonsense", ""}) {
    controller::lease_machine other(ours(), [] { return 0.0; });
    auto lease = record("bing");
    lease.renew_time = entry;
    other.next(0ms);
    other.on_record(lease, 0ms);
    EXPECT_EQ(other.next(1ms).action, kind::wait) << entry;
    other.next(14'999ms);
    other.on_record(lease, 14'999ms);
    EXPECT_EQ(other.next(14'999ms).action, kind::wait) << entry;
    other.next(17'100ms);
    other.on_record(lease, 17'100ms);
    EXPECT_EQ(other.next(17'100ms).action, kind::acquire) << entry;
  }
}

TEST_F(lease_machine, survives_any_duration_somebody_wrote) {
  for (const std::int64_t seconds : {std::int64_t(-5), std::int64_t(0), INT64_MAX, INT64_MIN}) {
    controller::lease_machine other(ours(), [] { return 0.0; });
    auto lease = record("bing");
    lease.duration_seconds = seconds;
    other.next(0ms);
    other.on_record(lease, 0ms);
    EXPECT_EQ(other.next(0ms).action, seconds > 0 ? kind::wait : kind::acquire) << seconds;
  }
}

TEST_F(lease_machine,
       a_record_with_our_name_is_renewed_not_acquired) {  // our write was accepted but the answer was lost
  next(0ms);
  machine.on_record(record("baz"), 0ms);
  EXPECT_FALSE(machine.held(0ms));
  const auto step = machine.next(0ms);
  EXPECT_EQ(step.action, kind::renew);
  EXPECT_EQ(step.transitions, 3);
  EXPECT_TRUE(step.keep_acquire_time);
}

TEST_F(lease_machine, renews_without_reading_while_all_is_well) {  // TestFastPathLeaderElection, first case
  lead(0ms);
  for (auto now = 2000ms; now < 60'000ms; now += 2000ms) {
    ASSERT_EQ(next(now - 1ms), kind::wait);
    const auto step = machine.next(now);
    ASSERT_EQ(step.action, kind::renew);
    EXPECT_EQ(step.transitions, 0);
    machine.on_written(record("baz", std::to_string(now.count()), 0), now, now + 3ms);
    ASSERT_TRUE(machine.held(now + 3ms));
  }
}

TEST_F(lease_machine, looks_once_when_a_renewal_is_refused) {  // TestFastPathLeaderElection, second case
  lead(0ms);
  EXPECT_EQ(next(2000ms), kind::renew);
  machine.on_failed(failure(kube::errc::conflict), 2010ms);
  EXPECT_EQ(next(2010ms), kind::read);
  machine.on_record(record("baz", "11", 0), 2020ms);
  EXPECT_EQ(next(2020ms), kind::renew);
  machine.on_failed(failure(kube::errc::conflict), 2030ms);
  EXPECT_EQ(next(2030ms), kind::wait) << "a second writer must not make us spin";
  EXPECT_EQ(next(4030ms), kind::read);
}

TEST_F(lease_machine, is_lost_at_once_when_another_has_it) {
  lead(0ms);
  EXPECT_EQ(next(2000ms), kind::renew);
  machine.on_failed(failure(kube::errc::conflict), 2010ms);
  EXPECT_EQ(next(2010ms), kind::read);
  machine.on_record(record("bing", "12"), 2020ms);
  EXPECT_FALSE(machine.held(2020ms));
  const auto step = machine.next(2020ms);
  EXPECT_EQ(step.action, kind::lost);
  EXPECT_NE(step.reason.find("bing"), std::string::npos);
}

TEST_F(lease_machine, F27_stops_at_the_renew_deadline_when_cut_off) {
  lead(0ms);
  auto now = 2000ms;
  while (machine.held(now)) {
    const auto step = machine.next(now);
    ASSERT_NE(step.action, kind::lost) << now.count();
    if (step.action == kind::wait) {
      ASSERT_GT(step.wait, 0ms);
      now += step.wait;
      continue;
    }
    EXPECT_LE(now + step.deadline, 10'000ms) << "no request may last longer than the lease";
    now += step.deadline;
    machine.on_failed(failure(kube::errc::timeout), now);
  }
  EXPECT_EQ(now, 10'000ms);
  const auto step = machine.next(now);
  EXPECT_EQ(step.action, kind::lost);
  EXPECT_NE(step.reason.find("it failed"), std::string::npos) << step.reason;
}

TEST_F(lease_machine, F27_the_follower_leads_within_lease_and_retry) {
  next(0ms);
  machine.on_record(record("dead"), 0ms);
  jitter = 0.999;
  milliseconds now = 0ms;
  while (machine.next(now).action != kind::acquire) {
    const auto step = machine.next(now);
    if (step.action == kind::wait)
      now += step.wait;
    else
      machine.on_record(record("dead"), now);
    ASSERT_LE(now, 20'000ms);
    if (now >= 15'000ms) break;
  }
  if (machine.next(now).action == kind::read) machine.on_record(record("dead"), now);
  EXPECT_LE(now, 17'500ms);
}

TEST_F(lease_machine, F28_does_not_hold_after_having_been_frozen) {
  lead(0ms);
  EXPECT_TRUE(machine.held(9'999ms));
  EXPECT_FALSE(machine.held(10'000ms));
  EXPECT_FALSE(machine.held(60'000ms)) << "asked by the fence before anything else ran";
  EXPECT_EQ(machine.remaining(60'000ms), 0ms);
  EXPECT_EQ(next(60'000ms), kind::lost);
}

TEST_F(lease_machine, F28_an_answer_from_before_the_freeze_does_not_bring_the_lease_back) {
  lead(0ms);
  EXPECT_EQ(next(2000ms), kind::renew);
  machine.on_written(record("baz", "11", 0), 2000ms, 62'000ms);
  EXPECT_FALSE(machine.held(62'000ms)) << "counted from the sending";
  EXPECT_EQ(next(62'000ms), kind::lost);
  machine.on_written(record("baz", "12", 0), 62'000ms, 62'000ms);
  EXPECT_FALSE(machine.held(62'000ms)) << "lost is final";
  EXPECT_EQ(next(63'000ms), kind::lost);
}

TEST_F(lease_machine, does_not_lead_on_a_write_that_failed) {  // state set before the update succeeded
  for (const auto code : {kube::errc::conflict, kube::errc::already_exists, kube::errc::timeout, kube::errc::forbidden,
                          kube::errc::server}) {
    controller::lease_machine other(ours(), [] { return 0.0; });
    other.next(0ms);
    other.on_record(std::nullopt, 0ms);
    ASSERT_EQ(other.next(0ms).action, kind::acquire);
    other.on_failed(failure(code), 5ms);
    EXPECT_FALSE(other.held(5ms));
    EXPECT_EQ(other.next(5ms).action, kind::wait);
    EXPECT_EQ(other.next(2005ms).action, kind::read);
  }
}

TEST_F(lease_machine,
       a_refusal_of_any_kind_ends_leadership_at_the_deadline) {  // quota error on renew: a leader that believes
  for (const auto code : {kube::errc::forbidden, kube::errc::too_many_requests, kube::errc::invalid, kube::errc::server,
                          kube::errc::unauthorized}) {
    controller::lease_machine other(ours(), [] { return 0.0; });
    other.next(0ms);
    other.on_record(std::nullopt, 0ms);
    other.next(0ms);
    other.on_written(record("baz"), 0ms, 1ms);
    for (auto now = 2000ms; now < 10'000ms; now += 1000ms) {
      const auto step = other.next(now);
      ASSERT_NE(step.action, kind::lost);
      if (step.action != kind::wait) other.on_failed(failure(code), now);
    }
    EXPECT_EQ(other.next(10'000ms).action, kind::lost);
  }
}

TEST_F(lease_machine, makes_the_record_again_when_somebody_deleted_it) {
  lead(0ms);
  EXPECT_EQ(next(2000ms), kind::renew);
  machine.on_failed(failure(kube::errc::not_found), 2001ms);
  EXPECT_EQ(next(2001ms), kind::read);
  machine.on_record(std::nullopt, 2002ms);
  const auto step = machine.next(2002ms);
  EXPECT_EQ(step.action, kind::acquire);
  EXPECT_TRUE(step.create);
  EXPECT_TRUE(machine.held(2002ms)) << "no one else can have led within our time";
}

TEST_F(lease_machine, a_release_by_hand_is_a_loss) {
  lead(0ms);
  EXPECT_EQ(next(2000ms), kind::renew);
  machine.on_failed(failure(kube::errc::conflict), 2001ms);
  next(2001ms);
  machine.on_record(record("", "15"), 2002ms);
  EXPECT_EQ(next(2002ms), kind::lost);
}

// A failed request between, because etcd is not restored while its server answers.
TEST_F(lease_machine, F7_a_leader_stops_when_the_lease_is_older_than_before) {
  lead(0ms);
  EXPECT_EQ(next(2000ms), kind::renew);
  machine.on_failed(failure(kube::errc::connect), 2001ms);
  EXPECT_EQ(next(4001ms), kind::read);
  machine.on_record(record("baz", "7", 0), 4002ms);
  EXPECT_FALSE(machine.held(4002ms)) << "the fence asks before anything else runs";
  const auto step = machine.next(4002ms);
  EXPECT_EQ(step.action, kind::restored);
  EXPECT_EQ(step.fall.seen, 10U);
  EXPECT_EQ(step.fall.version, 7U);
  EXPECT_EQ(next(60'000ms), kind::restored) << "it is final";
}

TEST_F(lease_machine, F7_one_that_waits_notices_it_too) {
  for (const char* holder : {"bing", ""}) {
    controller::lease_machine other(ours(), [] { return 0.0; });
    other.next(0ms);
    other.on_record(record("bing", "100"), 0ms);
    EXPECT_EQ(other.next(2000ms).action, kind::read);
    other.on_record(record(holder, "90"), 2000ms);
    EXPECT_EQ(other.next(2000ms).action, kind::restored) << "not acquired: " << holder;
    EXPECT_EQ(other.holder(), "bing");
  }
}

TEST_F(lease_machine, F7_the_answer_to_a_write_shows_it_where_the_older_state_has_no_lease) {
  lead(0ms);
  EXPECT_EQ(next(2000ms), kind::renew);
  machine.on_failed(failure(kube::errc::not_found), 2001ms);
  EXPECT_EQ(next(2001ms), kind::read);
  machine.on_record(std::nullopt, 2002ms);
  EXPECT_TRUE(machine.next(2002ms).create);
  machine.on_written(record("baz", "4", 0), 2002ms, 2003ms);
  EXPECT_FALSE(machine.held(2003ms));
  EXPECT_EQ(next(2003ms), kind::restored);
}

TEST_F(lease_machine, F7_a_lease_made_again_has_a_higher_version_and_is_no_sign_of_it) {
  next(0ms);
  machine.on_record(record("bing", "9"), 0ms);
  next(2000ms);
  machine.on_record(record("bing", "9"), 2000ms);  // not renewed
  EXPECT_EQ(next(2000ms), kind::wait);
  next(4000ms);
  machine.on_record(std::nullopt, 4000ms);
  EXPECT_EQ(next(4000ms), kind::acquire);
  machine.on_written(record("baz", "12", 0), 4000ms, 4001ms);
  EXPECT_TRUE(machine.held(4001ms)) << "12 is less than 9 as text only";
}

TEST_F(lease_machine, versions_that_are_no_numbers_are_not_compared) {
  next(0ms);
  for (const char* version : {"50", "", "x7", "7x", "99999999999999999999999", "51"}) {
    machine.on_record(record("bing", version), 0ms);
    EXPECT_EQ(next(0ms), kind::wait) << version;
  }
}

TEST_F(lease_machine, F7_is_not_confirmed_from_a_failure_until_the_next_answer) {
  auto unreachable = failure(kube::errc::server);
  unreachable.http = 500;  // etcd is away
  auto refused = failure(kube::errc::conflict);
  refused.http = 409;
  for (const auto& trouble : {failure(kube::errc::connect), unreachable}) {
    controller::lease_machine other(ours(), [] { return 0.0; });
    other.next(0ms);
    other.on_record(std::nullopt, 0ms);
    other.next(0ms);
    other.on_written(record("baz", "10", 0), 0ms, 1ms);
    EXPECT_TRUE(other.is_confirmed());
    other.on_failed(trouble, 2000ms);
    EXPECT_FALSE(other.is_confirmed());
    EXPECT_TRUE(other.held(2000ms)) << "it still leads";
    other.next(4000ms);
    other.on_failed(refused, 4000ms);
    EXPECT_FALSE(other.is_confirmed()) << "a refusal says nothing of the server's data";
    other.next(4000ms);
    other.on_record(record("baz", "10", 0), 4001ms);
    EXPECT_TRUE(other.is_confirmed());
    other.on_failed(refused, 6000ms);
    EXPECT_TRUE(other.is_confirmed()) << "the server was not away";
  }
}

TEST_F(lease_machine, F7_a_watch_that_broke_is_a_doubt_until_a_later_answer) {
  next(0ms);
  machine.on_record(std::nullopt, 0ms);
  EXPECT_EQ(next(0ms), kind::acquire);
  machine.on_written(record("baz", "10", 0), 0ms, 1ms);
  EXPECT_EQ(next(2000ms), kind::renew);
  machine.doubt(2001ms);
  EXPECT_FALSE(machine.is_confirmed());
  EXPECT_TRUE(machine.held(2001ms)) << "it still leads";
  machine.on_written(record("baz", "11", 0), 2000ms, 2002ms);
  EXPECT_FALSE(machine.is_confirmed()) << "the answer left before the watch broke, maybe";
  machine.doubt(2100ms);
  EXPECT_EQ(next(2100ms), kind::wait);
  EXPECT_EQ(next(2101ms), kind::renew) << "at once, and not at 4000 ms";
  machine.on_written(record("baz", "12", 0), 2101ms, 2102ms);
  EXPECT_TRUE(machine.is_confirmed());
  EXPECT_EQ(next(2103ms), kind::wait);
}

TEST_F(lease_machine, one_that_waits_is_not_hurried_by_a_doubt) {
  next(0ms);
  machine.on_record(record("bing", "9"), 0ms);
  machine.doubt(100ms);
  EXPECT_EQ(next(200ms), kind::wait);
}

TEST_F(lease_machine, releases_what_it_holds_and_is_silent_afterwards) {  // TestReleaseLease
  lead(0ms);
  const auto out = machine.release(3000ms);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->holder, "");
  EXPECT_EQ(out->duration_seconds, 1);
  EXPECT_EQ(out->transitions, 0);
  EXPECT_FALSE(machine.held(3000ms)) << "not held from the moment of the release, whatever the server answers";
  EXPECT_EQ(next(4000ms), kind::wait);
  EXPECT_EQ(next(60'000ms), kind::wait) << "a released lease is not lost";
}

TEST_F(lease_machine, has_nothing_to_release_when_it_does_not_lead) {  // release acquired lock from no object
  EXPECT_FALSE(machine.release(0ms));
  controller::lease_machine late(ours(), [] { return 0.0; });
  late.next(0ms);
  late.on_record(std::nullopt, 0ms);
  late.next(0ms);
  late.on_written(record("baz"), 0ms, 0ms);
  EXPECT_FALSE(late.release(10'000ms)) << "its time is over: the record may be another's by now";
}

TEST_F(lease_machine, followers_spread_out_and_the_leader_does_not) {
  jitter = 0.5;
  next(0ms);
  machine.on_record(record("bing"), 0ms);
  EXPECT_EQ(machine.next(0ms).wait, 2200ms);
  controller::lease_machine leader(ours(), [] { return 0.5; });
  leader.next(0ms);
  leader.on_record(std::nullopt, 0ms);
  leader.next(0ms);
  leader.on_written(record("baz"), 0ms, 0ms);
  EXPECT_EQ(leader.next(0ms).wait, 2000ms);
}

TEST(lease_settings, refuses_periods_that_cannot_work) {  // TestLeaderElectionConfigValidation
  EXPECT_TRUE(ours().problem().empty());
  auto bad = ours();
  bad.identity.clear();
  EXPECT_EQ(bad.problem().key, "usage.lease.identity");
  bad = ours();
  bad.duration = bad.renew_deadline;
  EXPECT_EQ(bad.problem().key, "usage.lease.duration");
  bad = ours();
  bad.retry = 9000ms;
  EXPECT_EQ(bad.problem().key, "usage.lease.deadline");
  bad = ours();
  bad.duration = 900ms, bad.renew_deadline = 500ms, bad.retry = 100ms;
  EXPECT_EQ(bad.problem().key, "usage.lease.second");
}

}  // namespace
