#include "agent/static_pod/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/static_pod/record.hpp"

namespace agent::static_pod {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const texts bare{std::nullopt, "m"}, ours{"c+ours", "m+ours"};

record kept_at(phase at) { return {.at = at, .generation = 1, .before = bare, .after = ours, .created = true}; }

/// At rest, nothing of ours, asked to be there, all well.
facts fresh() {
  facts out;
  out.now = bare;
  out.asked_for = true;
  out.wanted = ours;
  out.generation = 1;
  out.up_for = out.watched_for = out.since_manifest = 1h;
  return out;
}
facts at(phase is, texts now) {
  auto out = fresh();
  out.kept = kept_at(is);
  out.now = std::move(now);
  return out;
}

TEST(static_pod_machine, keeps_what_is_there_before_it_touches_anything) {
  const auto did = next(fresh());
  EXPECT_EQ(did.what, action::keep);
  EXPECT_EQ(did.kept, kept_at(phase::applying));
  EXPECT_EQ(did.is, state::changing);
}

TEST(static_pod_machine, writes_the_configuration_and_then_the_manifest) {
  auto of = at(phase::applying, bare);
  EXPECT_EQ(next(of).what, action::write_config);
  EXPECT_EQ(next(of).text, "c+ours");
  of.now.config = "c+ours";
  EXPECT_EQ(next(of).what, action::write_manifest);
  EXPECT_EQ(next(of).text, "m+ours");
  of.now = ours;
  of.since_manifest = 12s;
  of.up_for = 9s;
  EXPECT_EQ(next(of).what, action::wait) << "it has to keep working";
  of.up_for = 10s;
  EXPECT_EQ(next(of).what, action::keep);
  EXPECT_EQ(next(of).kept.at, phase::applied);
  of.kept = next(of).kept;
  EXPECT_EQ(next(of).what, action::rest);
  EXPECT_EQ(next(of).is, state::applied);
}

TEST(static_pod_machine, begins_only_when_it_may) {
  auto of = fresh();
  of.not_ours = "another's turn";
  EXPECT_EQ(next(of).is, state::waiting);
  EXPECT_EQ(next(of).why, "another's turn");
  of.not_begun = "m2 is not ready";
  EXPECT_EQ(next(of).why, "m2 is not ready") << "first, so that nobody holds the turn and waits";
  of.not_begun = of.not_ours = "";
  of.down = "this one is not ready either";
  EXPECT_EQ(next(of).why, "this one is not ready either");
  // Where the one that does not work is ours, a new configuration may be what mends it.
  of.kept = kept_at(phase::applied);
  of.now = ours;
  of.wanted = texts{"c+new", "m+new"};
  EXPECT_EQ(next(of).what, action::keep);
}

TEST(static_pod_machine, writes_nothing_in_another_ones_turn) {
  for (const auto is : {phase::applying, phase::reverting, phase::removing}) {
    auto of = at(is, {"c+ours", "m"});
    of.not_ours = "another's turn";
    EXPECT_EQ(next(of).what, action::wait);
    of.not_ours = "";
    of.not_begun = "m2 is not ready";
    EXPECT_NE(next(of).what, action::wait) << "what is under way is brought to its end";
  }
}

TEST(static_pod_machine, takes_back_what_does_not_work_in_time_and_says_why) {
  auto of = at(phase::applying, ours);
  of.down = "kube-scheduler-m1 is not ready (CrashLoopBackOff)";
  of.up_for = 0s;
  of.since_manifest = 179s;
  EXPECT_EQ(next(of).what, action::wait);
  of.since_manifest = 180s;
  of.watched_for = 19s;
  EXPECT_EQ(next(of).what, action::wait) << "who has just come does not judge";
  of.watched_for = 20s;
  EXPECT_EQ(next(of).what, action::keep);
  EXPECT_EQ(next(of).is, state::rolling_back);
  EXPECT_EQ(next(of).kept.reason, "after 180 s kube-scheduler-m1 is not ready (CrashLoopBackOff)");
  of.kept = next(of).kept;
  EXPECT_EQ(next(of).what, action::write_manifest) << "there was no configuration: it goes last";
  of.now.manifest = "m";
  EXPECT_EQ(next(of).what, action::remove_config);
  of.now = bare;
  EXPECT_EQ(next(of).what, action::wait);
  of.down = "";
  of.up_for = 10s;
  EXPECT_EQ(next(of).kept.at, phase::reverted);
  of.kept = next(of).kept;
  EXPECT_EQ(next(of).is, state::rolled_back);
  EXPECT_THAT(next(of).why, HasSubstr("CrashLoopBackOff"));
}

TEST(static_pod_machine, one_that_works_now_and_then_is_taken_back) {
  auto of = at(phase::applying, ours);
  of.up_for = 3s;
  EXPECT_EQ(next(of).is, state::rolling_back);
  EXPECT_THAT(next(of).kept.reason, HasSubstr("does not keep working"));
}

TEST(static_pod_machine, goes_back_to_a_configuration_before_the_manifest_that_reads_it) {
  auto of = at(phase::reverting, ours);
  of.kept->before = {"c", "m"};
  EXPECT_EQ(next(of).what, action::write_config);
  of.now.config = "c";
  EXPECT_EQ(next(of).what, action::write_manifest);
}

TEST(static_pod_machine, tries_again_only_with_something_else) {
  auto of = at(phase::reverted, bare);
  EXPECT_EQ(next(of).what, action::rest);
  of.wanted = texts{"c+other", "m+other"};
  EXPECT_EQ(next(of).what, action::keep);
  of.wanted = texts{"c+ours", "m 1.37+ours"};
  of.now.manifest = "m 1.37";
  EXPECT_EQ(next(of).what, action::keep) << "a manifest that kubeadm wrote anew is something else";
}

TEST(static_pod_machine, does_it_again_where_kubeadm_has_written_the_manifest) {
  auto of = at(phase::applied, {"c+ours", "m 1.37"});
  of.wanted = texts{"c+ours", "m 1.37+ours"};
  of.generation = 2;
  EXPECT_EQ(next(of).what, action::keep);
  EXPECT_EQ(next(of).kept.before, of.now);
  EXPECT_EQ(next(of).kept.generation, 2);
  EXPECT_TRUE(next(of).kept.created);
}

TEST(static_pod_machine, leaves_a_configuration_alone_that_somebody_changed) {
  for (const auto is : {phase::applied, phase::applying, phase::reverting, phase::reverted}) {
    const auto did = next(at(is, {"c+mine", "m+ours"}));
    EXPECT_EQ(did.what, action::stop);
    EXPECT_THAT(did.why, HasSubstr("scheduler-config.yaml was changed by somebody else"));
  }
}

TEST(static_pod_machine, stops_where_a_manifest_is_changed_while_it_is_under_way) {
  EXPECT_THAT(next(at(phase::applying, {"c+ours", "m+mine"})).why, HasSubstr("kube-scheduler.yaml was changed"));
}

TEST(static_pod_machine, goes_on_from_a_manifest_that_an_upgrade_wrote_while_it_was_under_way) {
  auto of = at(phase::applying, {"c+ours", "m2"});
  of.foreign = true;
  of.wanted = texts{"c+ours", "m2+ours"};
  of.generation = 2;
  auto did = next(of);
  EXPECT_EQ(did.what, action::keep);
  EXPECT_EQ(did.kept, (record{phase::applying, 2, {std::nullopt, "m2"}, {"c+ours", "m2+ours"}, true, ""}));
  of.kept = did.kept;
  EXPECT_EQ(next(of).text, "m2+ours");
  of.wanted = std::unexpected("kube-scheduler.yaml:3:1: cannot be merged");
  of.kept = kept_at(phase::applying);
  EXPECT_EQ(next(of).what, action::stop);

  of = at(phase::reverting, {"c+ours", "m2"});
  of.foreign = true;
  did = next(of);
  EXPECT_EQ(did.kept.before, (texts{std::nullopt, "m2"})) << "the way back leads to what the upgrade wrote";
  of.kept = did.kept;
  EXPECT_EQ(next(of).what, action::remove_config);

  of = at(phase::removing, {"c+ours", "m2"});
  of.kept->before = ours;
  of.kept->after = bare;
  of.foreign = true;
  did = next(of);
  EXPECT_EQ(did.kept.after, (texts{std::nullopt, "m2"}));
  of.kept = did.kept;
  EXPECT_EQ(next(of).what, action::remove_config);

  of = at(phase::applying, {"c+mine", "m2"});
  of.foreign = true;
  EXPECT_EQ(next(of).what, action::stop) << "the configuration is a person's";
}

TEST(static_pod_machine, takes_over_a_manifest_whose_other_parts_a_person_changed) {
  auto of = at(phase::applied, {"c+ours", "m+ours --v=4"});
  of.wanted = of.now;
  EXPECT_EQ(next(of).what, action::keep);
  EXPECT_EQ(next(of).kept.after, of.now);
  EXPECT_EQ(next(of).is, state::applied);
  of.kept = next(of).kept;
  EXPECT_EQ(next(of).what, action::rest);
}

TEST(static_pod_machine, takes_over_what_is_ours_when_a_person_deleted_the_record) {
  auto of = fresh();
  of.now = ours;
  EXPECT_EQ(next(of).kept.at, phase::applied);
}

TEST(static_pod_machine, removes_the_manifests_part_first_where_the_configuration_goes) {
  auto of = at(phase::applied, ours);
  of.asked_for = false;
  of.wanted = bare;
  EXPECT_EQ(next(of).kept.at, phase::removing);
  of.kept = next(of).kept;
  EXPECT_EQ(next(of).what, action::write_manifest);
  of.now.manifest = "m";
  EXPECT_EQ(next(of).what, action::remove_config);
  of.now = bare;
  of.down = "not ready yet";
  EXPECT_EQ(next(of).what, action::wait);
  of.since_manifest = 1h;
  EXPECT_EQ(next(of).what, action::wait) << "nothing of ours is put back";
  of.down = "";
  EXPECT_EQ(next(of).what, action::forget);
  of.kept.reset();
  EXPECT_EQ(next(of).is, state::off);
}

TEST(static_pod_machine, removes_a_configuration_that_a_person_changed_as_far_as_it_is_ours) {
  auto of = at(phase::applied, {"c+mine+ours", "m+ours"});
  of.asked_for = false;
  of.wanted = texts{"c+mine", "m"};
  EXPECT_EQ(next(of).what, action::keep);
  EXPECT_EQ(next(of).kept.before, of.now);
}

TEST(static_pod_machine, has_nothing_to_say_of_a_master_that_is_not_asked_for) {
  facts of;
  EXPECT_EQ(next(of).is, state::off);
  of.now = bare;
  of.wanted = bare;
  EXPECT_EQ(next(of).is, state::off);
  of.wanted = std::unexpected("cannot be read");
  EXPECT_EQ(next(of).is, state::off);
}

TEST(static_pod_machine, says_why_nothing_can_be_written) {
  auto of = fresh();
  of.wanted = std::unexpected("kube-scheduler.yaml:3:1: another file is read");
  EXPECT_EQ(next(of).is, state::stopped);
  EXPECT_EQ(next(of).why, "kube-scheduler.yaml:3:1: another file is read");
  of.now.manifest.reset();
  EXPECT_THAT(next(of).why, HasSubstr("is not there"));
}

TEST(static_pod_machine, ends_a_change_although_something_else_is_wanted_meanwhile) {
  auto of = at(phase::applying, {"c+ours", "m"});
  of.wanted = texts{"c+other", "m+other"};
  EXPECT_EQ(next(of).text, "m+ours");
  of.now = ours;
  EXPECT_EQ(next(of).kept.at, phase::applied);
}

TEST(static_pod_record, is_read_as_it_was_written) {
  auto of = kept_at(phase::reverting);
  of.before.config = "a: \"ü\"\n\tb\r\n";
  of.reason = "why";
  EXPECT_EQ(read_record(write(of)), of);
}

TEST(static_pod_record, says_what_is_wrong_with_it) {
  EXPECT_EQ(read_record("").error(), "is no JSON object");
  EXPECT_EQ(read_record("[]").error(), "is no JSON object");
  EXPECT_EQ(read_record("{\"v\":2}").error(), "is of another version (v 2; known is 1)");
  EXPECT_EQ(read_record("{}").error(), "lacks a field, or has one of another type");
  auto text = write(kept_at(phase::applied));
  text.replace(text.find("\"applied\""), 9, "\"other\"");
  EXPECT_THAT(read_record(text).error(), HasSubstr("phase that is not known: other"));
}

}  // namespace
}  // namespace agent::static_pod
