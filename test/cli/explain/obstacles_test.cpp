#include "cli/explain/obstacles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/projections/from_json.hpp"
#include "test/words.hpp"

namespace cli::obstacles_test {
namespace {

using words::english;

using nlohmann::json;
using testing::ElementsAre, testing::IsEmpty;

std::vector<obstacle> of(const json& metadata, const json& status) {
  json object{{"metadata", metadata}, {"spec", {{"nodeName", "a"}}}, {"status", status}};
  object["metadata"]["name"] = "p";
  const auto pod = kube::from_json<kube::described_pod>(object.dump());
  EXPECT_TRUE(pod);
  return obstacles_of(pod.value_or(kube::described_pod()), "default-scheduler", text::language::en);
}
std::vector<std::string> codes(const std::vector<obstacle>& all) {
  std::vector<std::string> out;
  for (const auto& entry : all) out.push_back(entry.code);
  return out;
}
json container(const json& state, const json& last = json::object()) {
  return {{"phase", "Running"},
          {"containerStatuses", {{{"name", "main"}, {"restartCount", 4}, {"state", state}, {"lastState", last}}}}};
}
const json killed = {
    {"terminated", {{"reason", "OOMKilled"}, {"exitCode", 137}, {"finishedAt", "2026-01-01T00:00:00Z"}}}};
const json runs = {{"running", json::object()}};

TEST(obstacles, how_a_container_ended_before_is_named) {
  const auto all = of({}, container(runs, killed));
  ASSERT_THAT(codes(all), ElementsAre("container_ended"));
  const std::initializer_list<text::parameter> facts{
      {"name", "main"}, {"reason", "OOMKilled"}, {"code", "137"}, {"time", "2026-01-01T00:00:00Z"}, {"restarts", "4"}};
  EXPECT_EQ(all[0].text,
            english("explain.obstacle.container_ended_before", facts) + english("explain.obstacle.out_of_memory"));
  const auto now = of({}, container(killed));
  ASSERT_THAT(codes(now), ElementsAre("container_ended"));
  EXPECT_EQ(now[0].text,
            english("explain.obstacle.container_ended", facts) + english("explain.obstacle.out_of_memory"));
  const json well = {{"terminated", {{"reason", "Completed"}, {"exitCode", 0}}}};
  EXPECT_THAT(codes(of({}, container(runs, well))), IsEmpty());
  EXPECT_THAT(codes(of({}, container(runs))), IsEmpty());
}

TEST(obstacles, a_loop_of_crashes_has_the_end_of_the_last_run) {
  const json waits = {{"waiting", {{"reason", "CrashLoopBackOff"}, {"message", "back-off 5m0s restarting"}}}};
  const json failed = {{"terminated", {{"reason", "Error"}, {"exitCode", 1}}}};
  EXPECT_THAT(codes(of({}, container(waits, failed))), ElementsAre("not_well", "container_ended"));
}

TEST(obstacles, a_start_that_fails_by_a_known_error_names_it) {
  const json waits = {{"waiting",
                       {{"reason", "RunContainerError"},
                        {"message", "nvidia-container-cli: initialization error: nvml error: driver not loaded"}}}};
  const auto all = of({}, container(waits));
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].code, "not_well");
  EXPECT_THAT(codes(all), testing::Contains("known_error"));
}

TEST(obstacles, of_a_deletion_the_time_and_the_grace_are_named) {
  const auto deleted = [](const json& metadata) { return of(metadata, {{"phase", "Running"}}).at(0); };
  const auto grace = english("explain.obstacle.grace", {{"seconds", "30"}});
  const auto plain = deleted({{"deletionTimestamp", "2026-01-01T00:00:30Z"}, {"deletionGracePeriodSeconds", 30}});
  EXPECT_EQ(plain.code, "deleted");
  EXPECT_EQ(plain.text, english("explain.obstacle.deleted", {{"time", "2026-01-01T00:00:00Z"}, {"grace", grace}}))
      << "the API server writes when the grace is over";
  EXPECT_EQ(deleted({{"deletionTimestamp", "2026-01-01T00:00:00Z"}, {"finalizers", {"a.example/b"}}}).text,
            english("explain.obstacle.deleted_with_finalizers",
                    {{"time", "2026-01-01T00:00:00Z"}, {"grace", ""}, {"list", "a.example/b"}}));
}

TEST(obstacles, an_evicted_pod_says_why) {
  const auto all = of({}, {{"phase", "Failed"}, {"reason", "Evicted"}, {"message", "low on memory"}});
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].text, english("explain.obstacle.failed_with", {{"cause", "Evicted: low on memory"}}));
}

}  // namespace
}  // namespace cli::obstacles_test
