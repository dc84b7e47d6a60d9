// The facts of every fixture of test/nvml, field by field, as they are reported. QM_GOLDEN=write writes what differs.
#include "agent/cards/inventory.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "agent/cards/history.hpp"
#include "agent/cards/status.hpp"
#include "test/agent/cards/machine.hpp"

namespace agent::cards {
namespace {

inventory inventory_of(const machine& machine) {
  const auto nvml = nvml_library::load(machine.root);
  EXPECT_TRUE(nvml) << nvml.error();
  EXPECT_EQ((*nvml)(call::init), nvml::success);
  auto out = read_inventory(*nvml);
  (*nvml)(call::shutdown);
  return out;
}

class fixtures : public testing::TestWithParam<const char*> {};

TEST_P(fixtures, golden_reports_field_by_field) {
  const machine machine(GetParam());
  const auto status = status_of(history().complete(inventory_of(machine), std::chrono::milliseconds(0)), "boot", {},
                                "2026-07-01T00:00:00Z");
  const auto text = status.dump(1) + "\n";
  const auto path = std::string(TEST_DATA) + "/golden/cards/" + GetParam() + ".json";
  if (const char* write = std::getenv("QM_GOLDEN"); write && std::string_view(write) == "write")
    std::ofstream(path) << text;
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), text) << path << ": QM_GOLDEN=write takes over what is made now";
}

/// The fixture itself is read a second time, by other code.
TEST_P(fixtures, agree_with_a_second_reader) {
  const machine machine(GetParam());
  const auto content = machine.content();
  const auto models = nlohmann::json::parse(std::ifstream(machine.root / "models.json"));
  const auto report = inventory_of(machine);
  EXPECT_EQ(report.driver, text_at(content, "/driver/version"));
  EXPECT_EQ(report.cuda, text_at(content, "/driver/cuda"));
  std::size_t answering = 0;
  for (const auto& described : content["cards"]) {
    if (described.value("lost", false)) continue;
    ASSERT_LT(answering, report.cards.size());
    const auto& card = report.cards[answering++];
    const auto& model = models[described["model"].get<std::string>()];
    EXPECT_EQ(card.uuid, text_at(described, "/uuid"));
    EXPECT_EQ(card.model, text_at(model, "/name"));
    EXPECT_EQ(card.memory_mib, model["memory_total_mib"].get<std::int64_t>());
    EXPECT_EQ(card.compute_capability, text_at(model, "/compute_capability"));
    EXPECT_EQ(card.minor, described["minor"].get<int>());
    EXPECT_EQ(card.numa, described["numa_node"].get<int>());
    EXPECT_EQ(card.mig, described.contains("mig") && described["mig"]["enabled"].get<bool>());
  }
  EXPECT_EQ(answering, report.cards.size());
  EXPECT_EQ(report.silent, 0) << "NVML counts cards when it starts, and not those that are lost then";
}

INSTANTIATE_TEST_SUITE_P(nvml, fixtures,
                         testing::Values("a100_mig", "a100x8", "h100x8", "l40s", "rtx4090", "t4", "t4_lost", "t4_pair",
                                         "v100"),
                         [](const auto& info) { return std::string(info.param); });

TEST(warnings, are_what_a_person_should_look_at) {
  const machine machine("a100x8");
  auto content = machine.content();
  auto& cards = content["cards"];
  cards[0]["throttle_reasons"] = {"sw_power_cap"};
  cards[1]["throttle_reasons"] = {"hw_thermal", "sw_thermal"};
  cards[2]["ecc_uncorrected"] = 1;
  cards[3]["ecc_uncorrected_total"] = 5;
  cards[4]["remap_pending"] = true;
  cards[5]["retired_pending"] = true;
  cards[6]["remap_failed"] = true;
  machine.replace(content);
  const auto report = inventory_of(machine);
  ASSERT_EQ(report.cards.size(), 8U);
  using words = std::vector<std::string>;
  EXPECT_EQ(report.cards[0].warnings, words()) << "a power limit that someone has set";
  EXPECT_EQ(report.cards[1].warnings, words{"HwSlowdown"});
  EXPECT_EQ(report.cards[2].warnings, words{"UncorrectedECC"});
  EXPECT_EQ(report.cards[3].warnings, words()) << "long ago: the driver was loaded since";
  EXPECT_EQ(report.cards[4].warnings, words{"RowRemapPending"});
  EXPECT_EQ(report.cards[5].warnings, words{"PageRetirementPending"});
  EXPECT_EQ(report.cards[6].defect, "RowRemapFailed");
  for (int i : {0, 1, 2, 3, 4, 5, 7}) EXPECT_EQ(report.cards[static_cast<std::size_t>(i)].defect, "") << i;
  const auto status = status_of(report, "boot", {}, "2026-07-01T00:00:00Z");
  EXPECT_EQ(status["cards"][2]["health"], "Healthy") << "it is reported, and not withdrawn";
  EXPECT_EQ(status["cards"][2]["warnings"], nlohmann::json({"UncorrectedECC"}));
}

/// The object as the API server has it after `report` was applied.
api::accelerator_node object_with(const inventory& report) {
  auto status = status_of(report, "boot", {}, "2026-07-01T00:00:00Z");
  const nlohmann::json object = {{"metadata", {{"name", "gpu-1"}}}, {"status", std::move(status)}};
  return *api::accelerator_node::decode(object.dump());
}

TEST(report, is_written_again_when_only_its_message_changes) {
  inventory report;
  report.problem = "the NVIDIA driver does not start: Driver Not Loaded";
  const auto object = object_with(report);
  EXPECT_TRUE(says(object, report, "boot"));
  EXPECT_FALSE(says(object, report, "another boot"));
  auto other = report;
  other.problem = "the NVIDIA driver does not start: Driver/library version mismatch";
  EXPECT_FALSE(says(object, other, "boot"));
  other = report;
  other.hangs = true;
  EXPECT_FALSE(says(object, other, "boot")) << "another reason";
}

TEST(report, says_on_which_cards_the_driver_limits_memory) {
  const machine machine("t4_pair");
  auto report = inventory_of(machine);
  const auto before = object_with(report);
  report.cards[1].is_limited = true;
  EXPECT_FALSE(says(before, report, "boot"));
  const auto object = object_with(report);
  EXPECT_TRUE(says(object, report, "boot"));
  ASSERT_EQ(object.cards.size(), 2U);
  EXPECT_FALSE(object.cards[0].is_limited);
  EXPECT_TRUE(object.cards[1].is_limited);
}

TEST(report, is_written_again_when_a_warning_changes) {
  const machine machine("t4_pair");
  auto report = inventory_of(machine);
  const auto object = object_with(report);
  EXPECT_TRUE(says(object, report, "boot"));
  report.cards[0].warnings = {"HwSlowdown"};
  EXPECT_FALSE(says(object, report, "boot"));
  EXPECT_TRUE(says(object_with(report), report, "boot"));
}

TEST(nvml_library, that_is_nowhere_is_named) {
  const auto nvml = nvml_library::load("/nowhere");
  ASSERT_FALSE(nvml);
  EXPECT_NE(nvml.error().find("/nowhere"), std::string::npos) << nvml.error();
}

TEST(links, are_written_and_read_alike) {
  using quota::path;
  for (const auto pci : {path::unknown, path::system, path::numa_node, path::host_bridge, path::bridges, path::bridge})
    for (const std::uint8_t nvlinks : {0, 1, 12, 18}) {
      const quota::link link{pci, nvlinks};
      EXPECT_EQ(api::link_in(api::text_of(link)), link) << api::text_of(link);
    }
  for (const auto* strange : {"", "X", "NV", "NVx", "NV999999", "PIXEL", "NV12 "})
    EXPECT_EQ(api::link_in(strange).pci, path::unknown) << strange;
}

}  // namespace
}  // namespace agent::cards
