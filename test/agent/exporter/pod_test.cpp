#include "agent/exporter/pod.hpp"

#include <gtest/gtest.h>

#include "api/placement.hpp"
#include "test/agent/exporter/wire.hpp"

namespace agent::exporter {
namespace {

constexpr const char* placement =
    R"({"v":1,"node":"gpu-1","source":"planned","containers":{"main":[{"card":"GPU-1","cores":20,"memoryMiB":2048}],)"
    R"("setup":[{"card":"GPU-1","cores":100,"memoryMiB":15360,"whole":true}],)"
    R"("proxy":[{"card":"GPU-2","cores":5,"memoryMiB":1}]}})";

TEST(exporter_pod, has_its_containers_and_their_cards) {
  const auto pod = pod::decode(wire_of({"team-a",
                                        "train-0",
                                        "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
                                        "Running",
                                        placement,
                                        {{"main", "abc", "", false},
                                         {"later", "", "", false},
                                         {"setup", "def", "", true},
                                         {"proxy", "ghi", "Always", true}}}));
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->key.ns + "/" + pod->key.name, "team-a/train-0");
  EXPECT_EQ(pod->id.to_string(), "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0");
  EXPECT_FALSE(pod->finished());
  EXPECT_EQ(pod->ids,
            (std::vector<kube::container_id>{{"main", "abc"}, {"later", ""}, {"setup", "def"}, {"proxy", "ghi"}}));
  EXPECT_EQ(pod->planned, (std::vector<planned_card>{{"proxy", "GPU-2", 5, std::uint64_t{1} << 20},
                                                     {"main", "GPU-1", 20, std::uint64_t{2} << 30}}));
}

TEST(exporter_pod, has_finished_when_its_phase_says_so) {
  for (const auto& [phase, expected] :
       {std::pair("Pending", false), {"Running", false}, {"Failed", true}, {"Succeeded", true}, {"", false}})
    EXPECT_EQ(pod::decode(wire_of({"a", "b", "c", phase, "", {}}))->finished(), expected) << phase;
}

TEST(exporter_pod, has_no_cards_of_containers_that_are_made_up) {
  const auto pod = pod::decode(wire_of({"a", "b", "c", "Running", placement, {{"main", "abc", "", false}}}));
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->planned, (std::vector<planned_card>{{"main", "GPU-1", 20, std::uint64_t{2} << 30}}));
}

// The one reader of the annotation, also for the extender and `inspect pods`.
TEST(exporter_pod, takes_no_broken_placement) {
  constexpr std::string_view whole =
      R"({"v":1,"node":"gpu-1","containers":{"main":[{"card":"GPU-1","cores":100,"memoryMiB":15360,"whole":true}]}})";
  EXPECT_EQ(api::placement_in(whole), (api::placement{"gpu-1", {{"main", {{"GPU-1", 100, 0, 15360, true}}}}, {}}));
  for (const auto* containers :
       {"[]", R"({"a":{}})", R"({"a":[1]})", R"({"a":[{"card":1,"cores":1,"memoryMiB":1}]})", R"({"a":[{"cores":1}]})",
        R"({"a":[{"card":"x","cores":101,"memoryMiB":1}]})", R"({"a":[{"card":"x","cores":-1,"memoryMiB":1}]})",
        R"({"a":[{"card":"x","cores":1,"memoryMiB":18446744073709551615}]})"})
    EXPECT_EQ(api::placement_in(R"({"v":1,"node":"gpu-1","containers":)" + std::string(containers) + "}"), std::nullopt)
        << containers;
  for (const auto* text : {"", "{", "[]", "{}", R"({"v":2,"node":"gpu-1","containers":{}})", R"({"v":1,"node":7})",
                           R"({"v":1,"node":"gpu-1","counts":{"a":-1}})"})
    EXPECT_EQ(api::placement_in(text), std::nullopt) << text;
}

}  // namespace
}  // namespace agent::exporter
