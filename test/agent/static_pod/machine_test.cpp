#include "agent/static_pod/machine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/static_pod/record.hpp"
#include "test/words.hpp"

namespace agent::static_pod {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

const texts bare{std::nullopt, "m"}, extended{"c+ours", "m+ours"};

record kept_at(phase phase) {
  return {.stage = phase, .generation = 1, .before = bare, .after = extended, .created = true};
}

/// At rest, nothing of our own, asked to be there, all well.
control_plane_facts fresh() {
  control_plane_facts out;
  out.now = bare;
  out.asked_for = true;
  out.wanted = extended;
  out.generation = 1;
  out.up_for = out.watched_for = out.since_manifest = 1h;
  return out;
}
control_plane_facts at(phase is, texts now) {
  auto out = fresh();
  out.kept = kept_at(is);
  out.now = std::move(now);
  return out;
}

TEST(static_pod_machine, keeps_what_is_there_before_it_touches_anything) {
  const auto did = next(fresh());
  EXPECT_EQ(did.kind, action::keep);
  EXPECT_EQ(did.kept, kept_at(phase::applying));
  EXPECT_EQ(did.is, state::changing);
}

TEST(static_pod_machine, writes_the_configuration_and_then_the_manifest) {
  auto facts = at(phase::applying, bare);
  EXPECT_EQ(next(facts).kind, action::write_config);
  EXPECT_EQ(next(facts).text, "c+ours");
  facts.now.config = "c+ours";
  EXPECT_EQ(next(facts).kind, action::write_manifest);
  EXPECT_EQ(next(facts).text, "m+ours");
  facts.now = extended;
  facts.since_manifest = 12s;
  facts.up_for = 9s;
  EXPECT_EQ(next(facts).kind, action::wait) << "it has to keep working";
  facts.up_for = 10s;
  EXPECT_EQ(next(facts).kind, action::keep);
  EXPECT_EQ(next(facts).kept.stage, phase::applied);
  facts.kept = next(facts).kept;
  EXPECT_EQ(next(facts).kind, action::rest);
  EXPECT_EQ(next(facts).is, state::applied);
}

TEST(static_pod_machine, begins_only_when_it_may) {
  auto facts = fresh();
  facts.not_ours = text::phrase("another's turn");
  EXPECT_EQ(next(facts).is, state::waiting);
  EXPECT_EQ(next(facts).reason.key, "another's turn");
  facts.not_begun = text::phrase("m2 is not ready");
  EXPECT_EQ(next(facts).reason.key, "m2 is not ready") << "first, so that no one holds the turn and waits";
  facts.not_begun = facts.not_ours = {};
  facts.down = text::phrase("this one is not ready");
  EXPECT_EQ(next(facts).reason.key, "this one is not ready");
  // Where the one that does not work is ours, a new configuration may be what fixes it.
  facts.kept = kept_at(phase::applied);
  facts.now = extended;
  facts.wanted = texts{"c+new", "m+new"};
  EXPECT_EQ(next(facts).kind, action::keep);
}

TEST(static_pod_machine, writes_nothing_in_another_ones_turn) {
  for (const auto is : {phase::applying, phase::reverting, phase::removing}) {
    auto facts = at(is, {"c+ours", "m"});
    facts.not_ours = text::phrase("another's turn");
    EXPECT_EQ(next(facts).kind, action::wait);
    facts.not_ours = {};
    facts.not_begun = text::phrase("m2 is not ready");
    EXPECT_NE(next(facts).kind, action::wait) << "what is under way is brought to its end";
  }
}

TEST(static_pod_machine, F51_takes_back_what_does_not_work_in_time_and_says_why) {
  auto facts = at(phase::applying, extended);
  facts.down = text::phrase("kube-scheduler-m1 is not ready (CrashLoopBackOff)");
  facts.up_for = 0s;
  facts.since_manifest = 179s;
  EXPECT_EQ(next(facts).kind, action::wait);
  facts.since_manifest = 180s;
  facts.watched_for = 19s;
  EXPECT_EQ(next(facts).kind, action::wait) << "who has just come does not judge";
  facts.watched_for = 20s;
  EXPECT_EQ(next(facts).kind, action::keep);
  EXPECT_EQ(next(facts).is, state::rolling_back);
  EXPECT_EQ(words::line_of(next(facts).kept.reason),
            "static_pod.given_up{seconds=180,cause=kube-scheduler-m1 is not ready (CrashLoopBackOff)}");
  facts.kept = next(facts).kept;
  EXPECT_EQ(next(facts).kind, action::write_manifest) << "there was no configuration: it goes last";
  facts.now.manifest = "m";
  EXPECT_EQ(next(facts).kind, action::remove_config);
  facts.now = bare;
  EXPECT_EQ(next(facts).kind, action::wait);
  facts.down = {};
  facts.up_for = 10s;
  EXPECT_EQ(next(facts).kept.stage, phase::reverted);
  facts.kept = next(facts).kept;
  EXPECT_EQ(next(facts).is, state::rolled_back);
  EXPECT_THAT(words::line_of(next(facts).reason), HasSubstr("CrashLoopBackOff"));
}

TEST(static_pod_machine, one_that_works_now_and_then_is_taken_back) {
  auto facts = at(phase::applying, extended);
  facts.up_for = 3s;
  EXPECT_EQ(next(facts).is, state::rolling_back);
  EXPECT_THAT(words::line_of(next(facts).kept.reason), HasSubstr("cause=static_pod.unsteady"));
}

TEST(static_pod_machine, goes_back_to_a_configuration_before_the_manifest_that_reads_it) {
  auto facts = at(phase::reverting, extended);
  facts.kept->before = {"c", "m"};
  EXPECT_EQ(next(facts).kind, action::write_config);
  facts.now.config = "c";
  EXPECT_EQ(next(facts).kind, action::write_manifest);
}

TEST(static_pod_machine, tries_again_only_with_something_else) {
  auto facts = at(phase::reverted, bare);
  EXPECT_EQ(next(facts).kind, action::rest);
  facts.wanted = texts{"c+other", "m+other"};
  EXPECT_EQ(next(facts).kind, action::keep);
  facts.wanted = texts{"c+ours", "m 1.37+ours"};
  facts.now.manifest = "m 1.37";
  EXPECT_EQ(next(facts).kind, action::keep) << "a manifest that kubeadm wrote again is something else";
}

TEST(static_pod_machine, does_it_again_where_kubeadm_has_written_the_manifest) {
  auto facts = at(phase::applied, {"c+ours", "m 1.37"});
  facts.wanted = texts{"c+ours", "m 1.37+ours"};
  facts.generation = 2;
  EXPECT_EQ(next(facts).kind, action::keep);
  EXPECT_EQ(next(facts).kept.before, facts.now);
  EXPECT_EQ(next(facts).kept.generation, 2);
  EXPECT_TRUE(next(facts).kept.created);
}

TEST(static_pod_machine, F53_leaves_a_configuration_alone_that_somebody_changed) {
  for (const auto is : {phase::applied, phase::applying, phase::reverting, phase::reverted}) {
    const auto did = next(at(is, {"c+mine", "m+ours"}));
    EXPECT_EQ(did.kind, action::stop);
    EXPECT_EQ(words::line_of(did.reason), "static_pod.changed{file=scheduler-config.yaml}");
  }
}

TEST(static_pod_machine, F53_stops_where_a_manifest_is_changed_while_it_is_under_way) {
  EXPECT_EQ(words::line_of(next(at(phase::applying, {"c+ours", "m+mine"})).reason),
            "static_pod.changed{file=kube-scheduler.yaml}");
}

TEST(static_pod_machine, goes_on_from_a_manifest_that_an_upgrade_wrote_while_it_was_under_way) {
  auto facts = at(phase::applying, {"c+ours", "m2"});
  facts.foreign = true;
  facts.wanted = texts{"c+ours", "m2+ours"};
  facts.generation = 2;
  auto did = next(facts);
  EXPECT_EQ(did.kind, action::keep);
  EXPECT_EQ(did.kept, (record{phase::applying, 2, {std::nullopt, "m2"}, {"c+ours", "m2+ours"}, true, {}}));
  facts.kept = did.kept;
  EXPECT_EQ(next(facts).text, "m2+ours");
  facts.wanted = std::unexpected(text::phrase("kube-scheduler.yaml:3:1: cannot be merged"));
  facts.kept = kept_at(phase::applying);
  EXPECT_EQ(next(facts).kind, action::stop);

  facts = at(phase::reverting, {"c+ours", "m2"});
  facts.foreign = true;
  did = next(facts);
  EXPECT_EQ(did.kept.before, (texts{std::nullopt, "m2"})) << "the way back leads to what the upgrade wrote";
  facts.kept = did.kept;
  EXPECT_EQ(next(facts).kind, action::remove_config);

  facts = at(phase::removing, {"c+ours", "m2"});
  facts.kept->before = extended;
  facts.kept->after = bare;
  facts.foreign = true;
  did = next(facts);
  EXPECT_EQ(did.kept.after, (texts{std::nullopt, "m2"}));
  facts.kept = did.kept;
  EXPECT_EQ(next(facts).kind, action::remove_config);

  facts = at(phase::applying, {"c+mine", "m2"});
  facts.foreign = true;
  EXPECT_EQ(next(facts).kind, action::stop) << "the configuration is a person's";
}

TEST(static_pod_machine, takes_over_a_manifest_whose_other_parts_a_person_changed) {
  auto facts = at(phase::applied, {"c+ours", "m+ours --v=4"});
  facts.wanted = facts.now;
  EXPECT_EQ(next(facts).kind, action::keep);
  EXPECT_EQ(next(facts).kept.after, facts.now);
  EXPECT_EQ(next(facts).is, state::applied);
  facts.kept = next(facts).kept;
  EXPECT_EQ(next(facts).kind, action::rest);
}

TEST(static_pod_machine, takes_over_what_is_ours_when_a_person_deleted_the_record) {
  auto facts = fresh();
  facts.now = extended;
  EXPECT_EQ(next(facts).kept.stage, phase::applied);
}

TEST(static_pod_machine, removes_the_manifests_part_first_where_the_configuration_goes) {
  auto facts = at(phase::applied, extended);
  facts.asked_for = false;
  facts.wanted = bare;
  EXPECT_EQ(next(facts).kept.stage, phase::removing);
  facts.kept = next(facts).kept;
  EXPECT_EQ(next(facts).kind, action::write_manifest);
  facts.now.manifest = "m";
  EXPECT_EQ(next(facts).kind, action::remove_config);
  facts.now = bare;
  facts.down = text::phrase("not ready yet");
  EXPECT_EQ(next(facts).kind, action::wait);
  facts.since_manifest = 1h;
  EXPECT_EQ(next(facts).kind, action::wait) << "none of our entries is put back";
  facts.down = {};
  EXPECT_EQ(next(facts).kind, action::forget);
  facts.kept.reset();
  EXPECT_EQ(next(facts).is, state::disabled);
}

TEST(static_pod_machine, removes_a_configuration_that_a_person_changed_as_far_as_it_is_ours) {
  auto facts = at(phase::applied, {"c+mine+ours", "m+ours"});
  facts.asked_for = false;
  facts.wanted = texts{"c+mine", "m"};
  EXPECT_EQ(next(facts).kind, action::keep);
  EXPECT_EQ(next(facts).kept.before, facts.now);
}

TEST(static_pod_machine, has_nothing_to_say_of_a_control_plane_node_that_is_not_asked_for) {
  control_plane_facts facts;
  EXPECT_EQ(next(facts).is, state::disabled);
  facts.now = bare;
  facts.wanted = bare;
  EXPECT_EQ(next(facts).is, state::disabled);
  facts.wanted = std::unexpected(text::phrase("cannot be read"));
  EXPECT_EQ(next(facts).is, state::disabled);
}

TEST(static_pod_machine, says_why_nothing_can_be_written) {
  auto facts = fresh();
  facts.wanted = std::unexpected(text::phrase("kube-scheduler.yaml:3:1: another file is read"));
  EXPECT_EQ(next(facts).is, state::stopped);
  EXPECT_EQ(next(facts).reason.key, "kube-scheduler.yaml:3:1: another file is read");
  facts.now.manifest.reset();
  EXPECT_EQ(next(facts).reason.key, "static_pod.no_manifest");
}

TEST(static_pod_machine, ends_a_change_although_something_else_is_wanted_meanwhile) {
  auto facts = at(phase::applying, {"c+ours", "m"});
  facts.wanted = texts{"c+other", "m+other"};
  EXPECT_EQ(next(facts).text, "m+ours");
  facts.now = extended;
  EXPECT_EQ(next(facts).kept.stage, phase::applied);
}

TEST(static_pod_record, is_read_as_it_was_written) {
  auto record = kept_at(phase::reverting);
  record.before.config = "a: \"ü\"\n\tb\r\n";
  record.reason = text::phrase("why");
  EXPECT_EQ(read_record(write(record)), record);
  record.reason = {"static_pod.given_up", {{"seconds", "180"}, {"cause", text::phrase{"static_pod.unsteady"}}}};
  EXPECT_EQ(read_record(write(record)), record);
}

TEST(static_pod_record, F54_says_what_is_wrong_with_it) {
  EXPECT_EQ(read_record("").error().key, "static_pod.record_problem.no_object");
  EXPECT_EQ(read_record("[]").error().key, "static_pod.record_problem.no_object");
  EXPECT_EQ(words::line_of(read_record("{\"v\":2}").error()), "static_pod.record_problem.version{version=2}");
  EXPECT_EQ(read_record("{}").error().key, "static_pod.record_problem.fields");
  auto text = write(kept_at(phase::applied));
  text.replace(text.find("\"applied\""), 9, "\"other\"");
  EXPECT_EQ(words::line_of(read_record(text).error()), "static_pod.record_problem.phase{phase=other}");
}

}  // namespace
}  // namespace agent::static_pod
