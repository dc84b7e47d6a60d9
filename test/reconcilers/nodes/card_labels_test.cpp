// Labels that people select cards by. What GPU Feature Discovery v0.20.0 says of the same machines was recorded
// (test/plugins/recorded/gfd): both read the stand-in for the card.
#include "reconcilers/nodes/card_labels.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace reconcilers {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

const std::vector<std::string> discovery{"GPUFeatureDiscovery"}, ack{"ACK"}, gpu_manager{"GPUManager"};

api::accelerator_node report_of(const std::string& fixture) {
  const auto status = json::parse(std::ifstream(std::string(TEST_DATA) + "/golden/cards/" + fixture + ".json"));
  const json object = {{"metadata", {{"name", "gpu-1"}}}, {"status", status}};
  auto out = api::accelerator_node::decode(object.dump());
  EXPECT_TRUE(out);
  return *out;
}

label_values recorded(const std::string& fixture) {
  std::ifstream file(std::string(TEST_DATA) + "/plugins/recorded/gfd/" + fixture + ".txt");
  EXPECT_TRUE(file) << fixture;
  label_values out;
  for (std::string line; std::getline(file, line);) {
    const auto mark = line.find('=');
    out.emplace(line.substr(0, mark), line.substr(mark + 1));
  }
  return out;
}

class fixtures : public testing::TestWithParam<const char*> {};

TEST_P(fixtures, S60_values_are_those_of_gpu_feature_discovery) {
  const auto labels = card_labels(report_of(GetParam()), discovery);
  const auto found = recorded(GetParam());
  EXPECT_THAT(labels, testing::SizeIs(18));
  for (const auto& [key, value] : labels) EXPECT_THAT(found, testing::Contains(Pair(key, value)));
  std::set<std::string> rest;
  for (const auto& [key, value] : found)
    if (!labels.contains(key)) rest.insert(key);
  EXPECT_THAT(rest, testing::IsSubsetOf({"nvidia.com/gfd.timestamp", "nvidia.com/gpu.machine", "nvidia.com/gpu.mode",
                                         "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy",
                                         "nvidia.com/mig.capable", "nvidia.com/mps.capable", "nvidia.com/vgpu.present",
                                         "nvidia.com/gpu.clique", "nvidia.com/gpu.cliqueid"}))
      << "what no report says";
}

INSTANTIATE_TEST_SUITE_P(nvml, fixtures,
                         testing::Values("a100x8", "h100x8", "l40s", "rtx4090", "t4", "t4_pair", "v100"),
                         [](const auto& info) { return std::string(info.param); });

TEST(card_labels, of_cards_that_mig_has_cut_say_no_model) {
  const auto labels = card_labels(report_of("a100_mig"), discovery);
  EXPECT_FALSE(labels.contains("nvidia.com/gpu.product"));
  EXPECT_FALSE(labels.contains("nvidia.com/gpu.count"));
  EXPECT_FALSE(labels.contains("nvidia.com/gpu.memory"));
  const auto found = recorded("a100_mig");
  for (const auto& [key, value] : labels) EXPECT_THAT(found, testing::Contains(Pair(key, value)));
  EXPECT_EQ(labels.at("nvidia.com/gpu.family"), "ampere");
}

TEST(card_labels, say_only_what_all_cards_have) {
  auto report = report_of("t4_pair");
  report.cards[1].model = "NVIDIA A10";
  report.cards[1].compute_capability = "8.6";
  const auto labels = card_labels(report, discovery);
  for (const auto* key : {"gpu.product", "gpu.count", "gpu.memory", "gpu.family", "gpu.compute.major"})
    EXPECT_FALSE(labels.contains(std::string("nvidia.com/") + key)) << key;
  EXPECT_EQ(labels.at("nvidia.com/cuda.runtime-version.major"), "12");
}

TEST(card_labels, S60_of_ack_are_those_that_its_nodes_have) {
  EXPECT_THAT(card_labels(report_of("t4_pair"), ack), ElementsAre(Pair("aliyun.accelerator/nvidia_count", "2"),
                                                                  Pair("aliyun.accelerator/nvidia_mem", "15360MiB"),
                                                                  Pair("aliyun.accelerator/nvidia_name", "Tesla-T4")));
}

TEST(card_labels, of_gpu_manager_are_the_second_word_of_three) {
  EXPECT_THAT(card_labels(report_of("t4"), gpu_manager), IsEmpty()) << "two words";
  EXPECT_THAT(card_labels(report_of("rtx4090"), gpu_manager),
              ElementsAre(Pair("gaia.tencent.com/gpu-model", "GeForce")));
}

TEST(card_labels, without_a_report_or_a_family_are_none) {
  auto report = report_of("t4");
  EXPECT_THAT(card_labels(report, {}), IsEmpty());
  EXPECT_THAT(card_labels(report, {"Nobody"}), IsEmpty());
  report.cards.clear();
  EXPECT_THAT(card_labels(report, {"GPUFeatureDiscovery", "ACK", "GPUManager"}), IsEmpty());
}

/// An agent is one pod on one node; whatever it reports must not be refused by the API server as a whole.
TEST(card_labels, leave_out_what_is_no_label_value) {
  auto report = report_of("t4");
  report.driver = "550.../etc";
  report.cuda = "12.4; drop";
  report.cards[0].model = std::string(100, 'x');
  report.cards[0].compute_capability = "8";
  report.cards[0].memory_mib = -1;
  EXPECT_THAT(card_labels(report, {"GPUFeatureDiscovery", "ACK", "GPUManager"}),
              UnorderedElementsAre(Pair("nvidia.com/gpu.count", "1"), Pair("aliyun.accelerator/nvidia_count", "1"),
                                   Pair("nvidia.com/cuda.runtime-version.major", "12"),
                                   Pair("nvidia.com/cuda.runtime.major", "12")));
  report.cards[0].model = "Große Karte\n  (R)\t4090";
  EXPECT_EQ(card_labels(report, discovery).at("nvidia.com/gpu.product"), "Groe-Karte-R4090");
}

TEST(card_labels, of_versions_with_two_parts_have_an_empty_revision) {
  auto report = report_of("t4");
  report.driver = "390.77";
  const auto labels = card_labels(report, discovery);
  EXPECT_EQ(labels.at("nvidia.com/cuda.driver-version.revision"), "");
  EXPECT_EQ(labels.at("nvidia.com/cuda.driver-version.minor"), "77");
}

TEST(card_labels, name_each_family_of_cards) {
  auto report = report_of("t4");
  const std::pair<const char*, const char*> rows[] = {
      {"1.3", "tesla"},        {"2.0", "fermi"},     {"3.7", "kepler"},     {"5.2", "maxwell"},    {"6.1", "pascal"},
      {"7.0", "volta"},        {"7.2", "volta"},     {"7.5", "turing"},     {"8.0", "ampere"},     {"8.6", "ampere"},
      {"8.9", "ada-lovelace"}, {"9.0", "hopper"},    {"10.0", "blackwell"}, {"12.0", "blackwell"}, {"13.0", "rubin"},
      {"4.0", "undefined"},    {"11.0", "undefined"}};
  for (const auto& [capability, family] : rows) {
    report.cards[0].compute_capability = capability;
    EXPECT_EQ(card_labels(report, discovery).at("nvidia.com/gpu.family"), family) << capability;
  }
}

// One step. The node has labels, and the annotation that repeats what we wrote.
struct stepping : testing::Test {
  static constexpr std::string_view product = "nvidia.com/gpu.product", count = "nvidia.com/gpu.count";
  const label_values t4{{std::string(product), "Tesla-T4"}, {std::string(count), "1"}};
  const std::string both = "nvidia.com/gpu.count=1,nvidia.com/gpu.product=Tesla-T4";

  static kube::node node(std::initializer_list<kube::packed_map::entry> labels, std::string_view record) {
    kube::node out;
    out.key.name = "gpu-1";
    out.labels = kube::packed_map::of(labels);
    if (!record.empty()) out.annotations = kube::packed_map::of({{card_labels_annotation, record}});
    return out;
  }
};

TEST_F(stepping, writes_what_no_one_has_written) {
  const auto step = next_card_labels(node({}, ""), t4);
  EXPECT_FALSE(step.is_idle);
  EXPECT_EQ(step.labels, t4);
  EXPECT_EQ(step.record, both);
}

TEST_F(stepping, is_idle_when_it_is_done) {
  EXPECT_TRUE(next_card_labels(node({{product, "Tesla-T4"}, {count, "1"}}, both), t4).is_idle);
  EXPECT_TRUE(next_card_labels(node({}, ""), {}).is_idle);
}

TEST_F(stepping, leaves_a_label_of_someone_else) {
  const auto step = next_card_labels(node({{product, "mine"}}, ""), t4);
  EXPECT_EQ(step.record, "nvidia.com/gpu.count=1");
  const auto same = next_card_labels(node({{product, "Tesla-T4"}, {count, "1"}}, ""), t4);
  EXPECT_TRUE(same.is_idle) << "the value that we would write is theirs, too";
}

TEST_F(stepping, follows_the_cards) {
  const auto step = next_card_labels(node({{product, "Tesla-T4"}, {count, "1"}}, both), {{std::string(count), "2"}});
  EXPECT_THAT(step.labels, ElementsAre(Pair(count, "2")));
  EXPECT_EQ(step.record, "nvidia.com/gpu.count=2") << "the other one goes";
}

TEST_F(stepping, a_label_that_someone_changed_is_theirs) {
  const auto step = next_card_labels(node({{product, "theirs"}, {count, "1"}}, both), t4);
  EXPECT_EQ(step.record, "nvidia.com/gpu.count=1");
  EXPECT_TRUE(next_card_labels(node({{product, "theirs"}, {count, "1"}}, step.record), t4).is_idle);
}

TEST_F(stepping, a_label_that_someone_removed_stays_away) {
  const auto step = next_card_labels(node({{count, "1"}}, both), t4);
  EXPECT_THAT(step.withheld, ElementsAre(product));
  EXPECT_EQ(step.record, "nvidia.com/gpu.count=1,nvidia.com/gpu.product=-");
  EXPECT_TRUE(next_card_labels(node({{count, "1"}}, step.record), t4).is_idle);
  EXPECT_EQ(next_card_labels(node({{count, "1"}}, step.record), {}).record, "") << "switched off: forgotten";
  EXPECT_EQ(next_card_labels(node({{count, "1"}, {product, "x"}}, step.record), t4).record, "nvidia.com/gpu.count=1");
}

TEST_F(stepping, hands_over_to_node_feature_discovery_and_removes_nothing) {
  auto discovered = node({{product, "Tesla-T4"}, {count, "2"}}, both + ",aliyun.accelerator/nvidia_count=1");
  discovered.has_gpu_discovery = true;
  const auto step = next_card_labels(discovered, t4);
  EXPECT_THAT(step.handed_over, ElementsAre(Pair(product, "Tesla-T4")));
  EXPECT_EQ(step.record, "");
  EXPECT_FALSE(step.is_idle);
  auto fresh = node({}, "");
  fresh.has_gpu_discovery = true;
  EXPECT_TRUE(next_card_labels(fresh, t4).is_idle) << "it will write them itself";
}

TEST_F(stepping, reads_no_sense_into_a_broken_record) {
  for (const auto* record : {"x", "=", ",,", "nvidia.com/gpu.product", "a=b=c"}) {
    const auto step = next_card_labels(node({{product, "Tesla-T4"}}, record), {});
    EXPECT_THAT(step.labels, IsEmpty());
    EXPECT_EQ(step.record, "") << record;
    EXPECT_FALSE(step.is_idle) << "the annotation goes";
  }
}

}  // namespace
}  // namespace reconcilers
