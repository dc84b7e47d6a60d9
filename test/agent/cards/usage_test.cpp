// One reading of the stand-in's cards.
#include "agent/cards/usage.hpp"

#include <gtest/gtest.h>

#include "test/agent/cards/machine.hpp"

namespace agent::cards {
namespace {

using nlohmann::json;
constexpr std::uint64_t mib = 1024 * 1024;

class reading {
 public:
  explicit reading(const std::string& fixture) : machine(fixture), nvml_(*nvml_library::load(machine.root)) {
    EXPECT_EQ(nvml_(call::init), nvml::success);
  }
  ~reading() { nvml_(call::shutdown); }
  reading(const reading&) = delete;
  reading& operator=(const reading&) = delete;
  std::vector<card_usage> take() { return reader_.read(nvml_); }
  std::vector<card_usage> take(const json& content) {
    machine.replace(content);
    return take();
  }
  cards::machine machine;

 private:
  nvml_library nvml_;
  usage_reader reader_{machine.root};
};

TEST(usage, has_every_fact_in_its_unit) {
  reading node("a100x8");
  auto content = node.machine.content();
  content["cards"][1].update(json{{"memory_used_mib", 1000},
                                  {"memory_reserved_mib", 600},
                                  {"utilisation_gpu", 37},
                                  {"temperature_c", 61},
                                  {"power_usage_mw", 250'500},
                                  {"energy_mj", 123'456},
                                  {"throttle_reasons", {"sw_thermal", "sw_power_cap"}},
                                  {"nvlink_tx_kib", 3},
                                  {"nvlink_rx_kib", 5}});
  const auto seen = node.take(content);
  ASSERT_EQ(seen.size(), 8U);
  const auto& card = seen[1];
  EXPECT_EQ(card.uuid, text_at(content, "/cards/1/uuid"));
  EXPECT_EQ(card.memory_total, 81920 * mib);
  EXPECT_EQ(card.memory_used, 1000 * mib);
  EXPECT_EQ(card.memory_reserved, 600 * mib);
  EXPECT_EQ(card.utilization_ppm, 370'000U);
  EXPECT_EQ(card.temperature_celsius, 61U);
  EXPECT_EQ(card.power_mw, 250'500U);
  EXPECT_EQ(card.energy_mj, 123'456U);
  EXPECT_EQ(card.throttle_reasons, 0x24U);
  EXPECT_EQ(card.nvlink_transmitted, 3 * 1024U);
  EXPECT_EQ(card.nvlink_received, 5 * 1024U);
  EXPECT_TRUE(card.lists_processes && card.samples_processes && card.processes.empty());
  EXPECT_TRUE(card.mig_uuids.empty());
}

TEST(usage, leaves_out_what_the_card_does_not_say) {
  reading node("t4_pair");
  auto content = node.machine.content();
  auto& card = content["cards"][0];
  for (const auto* key : {"temperature_c", "power_usage_mw", "energy_mj", "utilisation_gpu", "throttle_reasons"})
    card[key] = nullptr;
  card["errors"] = {{"nvmlDeviceGetMemoryInfo_v2", "not_supported"},
                    {"nvmlDeviceGetComputeRunningProcesses_v3", "not_supported"},
                    {"nvmlDeviceGetGraphicsRunningProcesses_v3", "not_supported"},
                    {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "not_supported"},
                    {"nvmlDeviceGetProcessUtilization", "not_supported"}};
  card["memory_used_mib"] = 10;
  card["memory_reserved_mib"] = 449;
  content["cards"][1]["lost"] = true;
  const auto seen = node.take(content);
  ASSERT_EQ(seen.size(), 1U) << "a card that does not answer has no reading";
  EXPECT_FALSE(seen[0].temperature_celsius || seen[0].power_mw || seen[0].energy_mj || seen[0].utilization_ppm ||
               seen[0].throttle_reasons || seen[0].nvlink_received || seen[0].nvlink_transmitted);
  EXPECT_EQ(seen[0].memory_used, 459 * mib) << "an older driver counts its own memory as used";
  EXPECT_FALSE(seen[0].memory_reserved);
  EXPECT_FALSE(seen[0].lists_processes || seen[0].samples_processes);
}

TEST(usage, has_each_process_once) {
  reading node("t4");
  auto content = node.machine.content();
  content["cards"][0]["processes"] = {{{"pid", 5}, {"memory_mib", 100}, {"sm", 40}, {"time_us", 10}},
                                      {{"pid", 6}, {"kind", "mps"}, {"memory_mib", 50}, {"sm", 20}, {"time_us", 10}},
                                      {{"pid", 6}, {"kind", "graphics"}, {"memory_mib", 70}},
                                      {{"pid", 7}}};
  std::filesystem::create_directory(node.machine.root / "5");
  std::ofstream(node.machine.root / "5/cgroup") << "0::/system.slice/x.service\n";
  auto seen = node.take(content);
  ASSERT_EQ(seen.at(0).processes.size(), 3U);
  const auto& [five, six, seven] = std::tie(seen[0].processes[0], seen[0].processes[1], seen[0].processes[2]);
  EXPECT_EQ(five.memory, 100 * mib);
  EXPECT_EQ(five.utilization_ppm, 400'000U);
  EXPECT_EQ(five.owner.kind, owner_kind::host);
  EXPECT_FALSE(five.is_mps_client);
  EXPECT_EQ(six.memory, 70 * mib);
  EXPECT_TRUE(six.is_mps_client);
  EXPECT_EQ(six.owner.kind, owner_kind::unseen);
  EXPECT_EQ(seven.memory, 0U);
  EXPECT_EQ(node.take().at(0).processes.at(0).utilization_ppm, 0U) << "that sample has been read";
  content["cards"][0]["processes"][0]["time_us"] = 11;
  EXPECT_EQ(node.take(content).at(0).processes.at(0).utilization_ppm, 400'000U);
}

TEST(usage, has_more_processes_than_fit_at_first) {
  reading node("t4");
  auto content = node.machine.content();
  for (int pid = 1; pid <= 300; ++pid) content["cards"][0]["processes"].push_back({{"pid", pid}, {"memory_mib", 1}});
  EXPECT_EQ(node.take(content).at(0).processes.size(), 300U);
}

TEST(usage, of_a_card_that_is_cut_names_its_parts) {
  reading node("a100_mig");
  const auto content = node.machine.content();
  std::size_t parts = 0, cut = 0;
  for (const auto& card : content["cards"]) {
    const auto mig = card.value("mig", json::object());
    if (!mig.value("enabled", false)) continue;
    ++cut;
    for (const auto& instance : mig.value("instances", json::array())) parts += instance["compute"].size();
  }
  ASSERT_GT(parts, 0U);
  std::size_t seen_parts = 0, seen_cut = 0;
  for (const auto& card : node.take()) {
    seen_parts += card.mig_uuids.size();
    if (card.mig_uuids.empty()) continue;
    ++seen_cut;
    EXPECT_FALSE(card.utilization_ppm) << "NVML does not say how busy a card is that is cut";
  }
  EXPECT_EQ(seen_parts, parts);
  EXPECT_LE(seen_cut, cut);
}

}  // namespace
}  // namespace agent::cards
