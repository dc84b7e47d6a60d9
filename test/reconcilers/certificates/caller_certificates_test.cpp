// Callers show real certificates, time is an argument: what the policy, an event and the metric say of their ends.

#include "reconcilers/certificates/caller_certificates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/controller/rig.hpp"
#include "test/reconcilers/certificates/times.hpp"
#include "test/reconcilers/recording_recorder.hpp"
#include "test/words.hpp"

namespace reconcilers {
namespace {

namespace x509 = controller::x509;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using words::line_of;

struct caller_certificates_test : controller_test::rig {
  recording_recorder events;
  controller::store<accelerator_policy> policies;
  controller::pem_pair authority = x509::make_authority("callers", {start - year, start + 10 * year});
  std::int64_t wall = start;
  int reported = 0;
  caller_certificates callers{
      policies, events, metrics, {.wall = [this] { return wall; }, .on_state = [this] { ++reported; }}};

  caller_certificates_test() {
    accelerator_policy policy;
    policy.key = {{}, "default"};
    policy.generation = 7;
    policies.begin();
    policies.put(policy);
    policies.commit();
  }
  x509::info leaf(const std::string& name, std::int64_t until, std::int64_t not_before = start - year) const {
    return x509::read(x509::issue(authority, name, {}, {not_before, until}, x509::usage::client)->certificate).at(0);
  }
  /// "status reason" of what the leader says; empty: nothing.
  std::string said() {
    callers.look();
    const auto is = callers.state();
    if (!is) return {};
    EXPECT_EQ(is->type, "CallerCertificatesValid");
    EXPECT_EQ(is->generation, 7);
    return is->status + " " + is->reason;
  }
  double ends() const { return metric("quartermaster_extender_caller_certificate_expiry_seconds"); }
};

TEST_F(caller_certificates_test, a_certificate_may_end_after_the_clock_does) {
  callers.note(leaf("for-ever", 10'435'425'104));
  EXPECT_EQ(said(), "True Valid");
  EXPECT_THAT(line_of(callers.state()->message), HasSubstr("time=2262-04-11T"));
}

TEST_F(caller_certificates_test, says_sixty_days_ahead_who_is_going_to_be_refused_and_what_to_do) {
  const auto by_hand = leaf("kube-scheduler", start + 61 * day);
  callers.note(by_hand);
  callers.note(leaf("other", start + 300 * day));
  EXPECT_EQ(said(), "True Valid");
  EXPECT_THAT(line_of(callers.state()->message),
              HasSubstr("name=kube-scheduler,serial=" + by_hand.serial + ",time=2027-03-17T"));
  EXPECT_THAT(events.events, IsEmpty());
  wall += 2 * day;
  callers.note(by_hand);
  EXPECT_EQ(said(), "False ExpiringSoon");
  const auto message = callers.state()->message;
  EXPECT_EQ(message.key, "status.callers.ending");
  EXPECT_THAT(line_of(message), HasSubstr("name=kube-scheduler,serial=" + by_hand.serial + ",time=2027-03-17T"));
  EXPECT_THAT(line_of(message), HasSubstr("secret=quartermaster-extender-client"));
  EXPECT_THAT(line_of(message), Not(HasSubstr("other")));
  ASSERT_THAT(events.events, SizeIs(1));
  EXPECT_EQ(events.events[0].reason, "CallerCertificateExpiring");
  EXPECT_EQ(events.events[0].type, controller::event_type::warning);
  EXPECT_EQ(events.events[0].note, words_of(message, text::language::en));
  const auto before = reported;
  for (int i = 0; i < 10; ++i, wall += 3600) {
    callers.note(by_hand);
    EXPECT_EQ(said(), "False ExpiringSoon");
  }
  EXPECT_THAT(events.events, SizeIs(1)) << "once";
  EXPECT_EQ(reported, before) << "nothing to write";
}

TEST_F(caller_certificates_test, forgets_a_certificate_a_day_after_its_last_call) {
  const auto old = leaf("kube-scheduler", start + 30 * day), fresh = leaf("kube-scheduler", start + year);
  callers.note(old);
  EXPECT_EQ(said(), "False ExpiringSoon");
  EXPECT_EQ(ends(), static_cast<double>(old.until));
  wall += 3600;
  callers.note(fresh);
  EXPECT_EQ(said(), "False ExpiringSoon") << "another caller may still show the old one";
  wall += day - 3600 + 1;
  EXPECT_EQ(said(), "True Valid");
  EXPECT_EQ(ends(), static_cast<double>(fresh.until));
}

TEST_F(caller_certificates_test, says_nothing_on_a_first_day_without_callers_and_unknown_after_it) {
  EXPECT_EQ(ends(), -1);
  EXPECT_EQ(said(), "") << "an earlier leader may have known more";
  wall += day;
  EXPECT_EQ(said(), "");
  ++wall;
  EXPECT_EQ(said(), "Unknown NoneSeen");
  EXPECT_EQ(reported, 1);
  EXPECT_THAT(events.events, IsEmpty());
}

TEST_F(caller_certificates_test, a_certificate_of_a_month_is_not_too_short_by_itself) {
  const auto monthly = leaf("kube-scheduler", start + 30 * day, start);
  callers.note(monthly);
  EXPECT_EQ(said(), "True Valid");
  wall += 20 * day + 1;
  callers.note(monthly);
  EXPECT_EQ(said(), "False ExpiringSoon") << "in the last third of its life";
}

TEST_F(caller_certificates_test, keeps_a_bounded_number_of_certificates_and_names_few_of_them) {
  std::vector<x509::info> all;
  for (std::size_t i = 0; i < caller_certificates::most + 10; ++i) {
    all.push_back(leaf("c" + std::to_string(i), start + static_cast<std::int64_t>(i + 1) * 3600));
    callers.note(all.back());
    ++wall;
  }
  EXPECT_EQ(ends(), static_cast<double>(all[10].until)) << "those not seen for longest have gone";
  EXPECT_EQ(said(), "False ExpiringSoon");
  EXPECT_THAT(line_of(callers.state()->message), HasSubstr("more=status.callers.more{number=60}"));
  EXPECT_LT(words_of(callers.state()->message, text::language::en).size(), 1000U) << "an event has no more room";
}

TEST_F(caller_certificates_test, a_name_of_a_stranger_is_made_harmless) {
  callers.note(leaf("a\nb\x1b[31m", start + day));
  EXPECT_EQ(said(), "False ExpiringSoon");
  EXPECT_THAT(line_of(callers.state()->message), Not(HasSubstr("\n")));
  EXPECT_THAT(line_of(callers.state()->message), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace reconcilers
