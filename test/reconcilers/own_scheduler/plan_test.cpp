#include "reconcilers/own_scheduler/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/facts_in.hpp"
#include "test/words.hpp"

namespace reconcilers::own_scheduler {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using words::line_of;
using objects = plan::objects;

situation asked_for() {
  situation out;
  out.wanted = out.extender = out.certificates = out.version = true;
  out.free = 2;
  return out;
}
running up(int available, int desired = 2) {
  return {desired, available, available, available == desired, "v1.36.3", {}};
}

TEST(dedicated_plan, pods_are_sent_when_a_replica_is_available_and_nodes_isolated_when_pods_are_sent) {
  auto is = asked_for();
  auto next = plan_of(is);
  EXPECT_EQ(next.keep, objects::as_wanted);
  EXPECT_FALSE(next.send || next.isolate || next.good);
  EXPECT_EQ(next.reason, "Starting");

  is.objects = true;
  is.deployment = up(0);
  next = plan_of(is);
  EXPECT_FALSE(next.send || next.isolate);

  is.deployment = up(1);
  next = plan_of(is);
  EXPECT_TRUE(next.send);
  EXPECT_FALSE(next.isolate) << "the API server does not know yet";

  is.sent = true;
  next = plan_of(is);
  EXPECT_TRUE(next.send && next.isolate && next.good);
  EXPECT_EQ(next.reason, "RollingOut");
  is.deployment = up(2);
  next = plan_of(is);
  EXPECT_EQ(next.reason, "Dedicated");
  EXPECT_EQ(line_of(next.message),
            "list.semicolons{first=status.scheduler.replicas{ready=2,desired=2},rest=status.scheduler.sent}");
}

TEST(dedicated_plan, F36_pods_stay_sent_while_no_replica_is_available) {
  auto is = asked_for();
  is.objects = is.sent = true;
  is.tainted = 3;
  is.deployment = up(0);
  auto next = plan_of(is);
  EXPECT_TRUE(next.send && next.isolate);
  EXPECT_FALSE(next.good);
  is.deployment.reset();  // someone deleted it: it is made again
  next = plan_of(is);
  EXPECT_TRUE(next.send && next.isolate);
  EXPECT_EQ(next.keep, objects::as_wanted);
  is.certificates = false;  // and what it runs with is missing
  next = plan_of(is);
  EXPECT_TRUE(next.send && next.isolate);
  EXPECT_EQ(next.keep, objects::as_they_are);
  EXPECT_EQ(next.reason, "CertificatesMissing");
}

TEST(dedicated_plan, nodes_stay_isolated_while_a_deleted_label_is_put_back) {
  auto is = asked_for();
  is.objects = true;
  is.deployment = up(2);
  is.tainted = 3;
  const auto next = plan_of(is);
  EXPECT_TRUE(next.send && next.isolate);
  EXPECT_FALSE(next.good);
}

TEST(dedicated_plan, nothing_is_made_without_extender_certificates_or_version) {
  auto is = asked_for();
  is.extender = false;
  EXPECT_EQ(plan_of(is).reason, "ExtenderOff");
  EXPECT_EQ(plan_of(is).keep, objects::as_they_are);
  EXPECT_TRUE(plan_of(is).visible);
  is = asked_for();
  is.certificates = false;
  EXPECT_EQ(plan_of(is).keep, objects::as_they_are);
  EXPECT_EQ(line_of(plan_of(is).message),
            "status.scheduler.certificates_missing{secret=quartermaster-extender-client}");
  is = asked_for();
  is.version = false;
  EXPECT_EQ(plan_of(is).keep, objects::as_they_are);
}

TEST(dedicated_plan, switching_off_goes_backwards_and_waits_for_the_pods_that_wait) {
  auto is = asked_for();
  is.wanted = false;
  is.objects = is.sent = true;
  is.deployment = up(2);
  is.tainted = 3;
  is.waiting = {{"lab", "a"}, {"lab", "b"}, {"lab", "c"}, {"lab", "d"}, {"lab", "e"}};
  auto next = plan_of(is);
  EXPECT_FALSE(next.send || next.isolate);
  EXPECT_EQ(next.keep, objects::as_they_are);

  is.sent = false;
  next = plan_of(is);
  EXPECT_EQ(next.keep, objects::as_they_are);
  EXPECT_EQ(next.reason, "PodsWait");
  EXPECT_EQ(line_of(next.message),
            "status.scheduler.pods_wait.many{number=5,list=" +
                words::english("engine.more", {{"list", words::listed({"lab/a", "lab/b", "lab/c"})}, {"number", "2"}}) +
                "}");

  is.waiting.clear();
  is.quiet_for = 3s;
  next = plan_of(is);
  EXPECT_EQ(next.keep, objects::as_they_are) << "an API server may not know yet that no pod is to be sent";
  EXPECT_EQ(next.again_in, 7s);
  is.quiet_for = 10s;
  EXPECT_EQ(plan_of(is).keep, objects::none);

  is.objects = false;
  is.deployment.reset();
  next = plan_of(is);
  EXPECT_FALSE(next.visible);
  EXPECT_EQ(next.keep, objects::as_they_are) << "nothing to remove";
}

TEST(dedicated_plan, an_extender_that_is_switched_off_takes_its_scheduler_with_it_and_says_so) {
  auto is = asked_for();
  is.extender = false;
  is.objects = is.sent = true;
  is.deployment = up(2);
  auto next = plan_of(is);
  EXPECT_FALSE(next.send);
  EXPECT_EQ(next.reason, "ExtenderOff");
  is.sent = false;
  is.quiet_for = 1min;
  EXPECT_EQ(plan_of(is).keep, objects::none);
}

TEST(dedicated_plan, says_when_two_schedulers_count_the_same_cpu) {
  auto is = asked_for();
  is.objects = is.sent = true;
  is.deployment = up(2);
  is.isolated = false;
  EXPECT_FALSE(plan_of(is).isolate);
  EXPECT_THAT(line_of(plan_of(is).message), HasSubstr("status.scheduler.not_isolated"));
  is.isolated = true;
  is.free = 0;
  EXPECT_THAT(line_of(plan_of(is).message), HasSubstr("status.scheduler.none_isolated"));
  is.free = 1;
  EXPECT_THAT(line_of(plan_of(is).message), testing::Not(HasSubstr("isolated")));
}

TEST(dedicated_plan, an_object_that_cannot_be_kept_is_the_reason) {
  auto is = asked_for();
  is.problem = "ForeignObject";
  is.message = text::phrase("Deployment quartermaster/quartermaster-scheduler exists and belongs to Helm release a/b");
  EXPECT_EQ(plan_of(is).reason, "ForeignObject");
  EXPECT_FALSE(plan_of(is).send);
}

TEST(dedicated_plan, S54_a_lower_version_counts_at_once_and_a_higher_one_when_it_is_alone) {
  EXPECT_EQ(version_to_run("", "v1.36.3", 0s), "v1.36.3");
  EXPECT_EQ(version_to_run("v1.36.3", "", 1h), "v1.36.3");
  EXPECT_EQ(version_to_run("v1.36.3", "v1.35.9", 0s), "v1.35.9");
  EXPECT_EQ(version_to_run("v1.35.9", "v1.36.3", 4min), "v1.35.9");
  EXPECT_EQ(version_to_run("v1.35.9", "v1.36.3", 5min), "v1.36.3");
}

}  // namespace
}  // namespace reconcilers::own_scheduler
