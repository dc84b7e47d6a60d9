#include "agent/static_pod/health.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/words.hpp"

namespace agent::static_pod {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

json pod(const char* name, const char* ready, const char* checksum = nullptr) {
  json out = {{"metadata", {{"name", name}}}, {"status", {{"conditions", {{{"type", "Ready"}, {"status", ready}}}}}}};
  if (checksum) out["metadata"]["annotations"]["a/b"] = checksum;
  return out;
}

TEST(static_pod_health, a_mirror_of_the_manifest_in_place_that_is_ready_is_well) {
  EXPECT_TRUE(trouble_of_pod(pod("s-m1", "True", "1f"), "a/b", "1f").empty());
  EXPECT_TRUE(trouble_of_pod(pod("s-m1", "True"), "a/b", "").empty());
}

TEST(static_pod_health, says_what_is_missing) {
  EXPECT_EQ(trouble_of_pod(json(), "a/b", "1f").key, "static_pod.no_mirror");
  const text::phrase other{"static_pod.other_manifest", {{"pod", "s-m1"}}};
  EXPECT_EQ(trouble_of_pod(pod("s-m1", "True", "2e"), "a/b", "1f"), other);
  EXPECT_EQ(trouble_of_pod(pod("s-m1", "True"), "a/b", "1f"), other);
  EXPECT_EQ(trouble_of_pod(pod("s-m1", "True", "1f"), "a/b", ""), other);
  auto crashes = pod("s-m1", "False", "1f");
  crashes["status"]["containerStatuses"] = {{{"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}}}};
  EXPECT_EQ(words::line_of(trouble_of_pod(crashes, "a/b", "1f")),
            "static_pod.not_ready{pod=s-m1,state=static_pod.state.reason{reason=CrashLoopBackOff}}");
  crashes["status"]["containerStatuses"] = {{{"state", {{"running", json::object()}}}, {"restartCount", 3}}};
  EXPECT_EQ(words::line_of(trouble_of_pod(crashes, "a/b", "1f")),
            "static_pod.not_ready{pod=s-m1,state=static_pod.state.ended.many{number=3}}");
  EXPECT_EQ(words::line_of(trouble_of_pod(json::object(), "a/b", "")), "static_pod.not_ready");
}

TEST(static_pod_health, the_others_have_to_be_ready) {
  EXPECT_TRUE(trouble_of_others({pod("s-m1", "False"), pod("s-m2", "True")}, "s-m1").empty());
  EXPECT_EQ(words::line_of(trouble_of_others({pod("s-m1", "True"), pod("s-m2", "False")}, "s-m1")),
            "static_pod.other_not_ready{pod=s-m2}");
}

TEST(static_pod_health, a_row_is_read_as_it_was_written) {
  const status_row original{"Changing",        3, "1f", "v1.36.3", "2026-01-31T12:00:00Z", text::phrase("why \"so\""),
                            "00c0ffee00c0ffee"};
  EXPECT_EQ(read_row(write(original)), original);
  auto coded = original;
  coded.reason = {"static_pod.busy", {{"node", "m2"}}};
  EXPECT_EQ(read_row(write(coded)), coded);
  EXPECT_EQ(json::parse(write(coded))["reason"], words::english("static_pod.busy", {{"node", "m2"}}));
  EXPECT_TRUE(between(original));
  EXPECT_FALSE(between(read_row("{\"state\":\"Applied\"}")));
  EXPECT_EQ(read_row("nonsense"), status_row());
  EXPECT_EQ(read_row("{\"state\":1}"), status_row());
}

TEST(static_pod_health, what_one_control_plane_node_was_rolled_back_from_no_other_tries) {
  const status_row back{.is = "RolledBack", .tried = "1f"};
  EXPECT_EQ(read_row(write(back)), back);
  EXPECT_EQ(words::line_of(trouble_of_tried({{"m1", back}}, "m2", "1f")), "static_pod.tried{node=m1}");
  EXPECT_TRUE(trouble_of_tried({{"m1", back}}, "m2", "2e").empty()) << "another configuration is another try";
  EXPECT_TRUE(trouble_of_tried({{"m1", back}}, "m1", "1f").empty()) << "that is its own to know";
  EXPECT_TRUE(trouble_of_tried({{"m1", {.is = "RolledBack"}}}, "m2", "").empty());
  EXPECT_TRUE(trouble_of_tried({{"m1", {.is = "Applied", .tried = "1f"}}}, "m2", "1f").empty());
}

TEST(static_pod_health, a_lease_beats_when_it_was_seen_to_change) {
  pulse pulse;
  pulse.see("a", 0ms);
  EXPECT_FALSE(pulse.beats(0ms)) << "one look shows nothing";
  pulse.see("b", 2s);
  EXPECT_TRUE(pulse.beats(22s));
  EXPECT_FALSE(pulse.beats(22001ms));
  pulse.see(std::nullopt, 30s);
  pulse.see("c", 31s);
  EXPECT_FALSE(pulse.beats(31s));
}

TEST(static_pod_health, a_process_that_follows_another_between_two_looks_has_not_worked_for_long) {
  uptime uptime;
  EXPECT_EQ(uptime.see(true, "m1 a", 1s), 0s);
  EXPECT_EQ(uptime.see(true, "m1 a", 12s), 11s);
  EXPECT_EQ(uptime.see(true, "m2 b", 13s), 0s) << "of another manifest";
  EXPECT_EQ(uptime.see(true, "m2 b", 15s), 2s);
  EXPECT_EQ(uptime.see(true, "m2 c", 16s), 0s) << "it ended and came again";
  EXPECT_EQ(uptime.see(false, "m2 c", 17s), 0s);
  EXPECT_EQ(uptime.see(true, "m2 c", 18s), 0s) << "a break";
  EXPECT_EQ(uptime.see(true, "m2 c", 20s), 2s);
}

TEST(static_pod_health, another_manifest_or_another_container_is_another_run) {
  const auto shows = [](const char* id) {
    return json{{"status", {{"containerStatuses", json::array({{{"containerID", id}}})}}}};
  };
  EXPECT_EQ(run_of(shows("a"), "m"), run_of(shows("a"), "m"));
  EXPECT_NE(run_of(shows("a"), "m"), run_of(shows("b"), "m"));
  EXPECT_NE(run_of(shows("a"), "m"), run_of(shows("a"), "n"));
  EXPECT_EQ(run_of(json(), "m"), run_of(json(), "m"));
}

}  // namespace
}  // namespace agent::static_pod
