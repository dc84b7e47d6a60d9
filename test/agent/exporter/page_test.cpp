// The page itself: its labels and units. test/cli/metrics_page_test.cpp compares its families with docs/metrics.md.
#include "agent/exporter/page.hpp"

#include <gtest/gtest.h>

#include <string>

namespace agent::exporter {
namespace {

page page_of_cards() {
  page out;
  out.node = "gpu-1";
  out.mode = "pgpu";
  out.report.driver = "550.90.07";
  cards::card known;
  known.uuid = "GPU-1";
  known.model = "Tesla T4";
  known.bus_id = "00000000:07:00.0";
  known.minor = 3;
  out.report.cards = {known};
  known.uuid = "GPU-2";
  known.defect = "Lost";
  out.report.cards.push_back(known);
  cards::card_usage card;
  card.uuid = "GPU-1";
  card.memory_total = 2000;
  card.memory_used = 1000;
  card.memory_reserved = 7;
  card.utilization_ppm = 370'000;
  card.temperature_celsius = 61;
  card.power_mw = 70'500;
  card.energy_mj = 1'500;
  card.throttle_reasons = nvml::throttle_hw_thermal | nvml::throttle_idle;
  card.nvlink_transmitted = 1024;
  card.nvlink_received = 2048;
  card.lists_processes = true;
  out.usage = {card};
  attributed_card parts;
  parts.shares = {{{"team-a", "train-0", "main"}, 20, 500, 400, 250'000, 2, 1}};
  parts.memory = unattributed{1, 2, 3, 594};
  parts.utilization = unattributed{0, 0, 0, 120'000};
  out.parts = {parts};
  out.xids = {{{"GPU-1", 48}, 2}};
  return out;
}

std::string text_of(const page& page) {
  controller::metric_text text;
  write(page, text);
  return text.take();
}

TEST(exporter_page, S75_has_labels_and_base_units) {
  const auto text = text_of(page_of_cards());
  const std::string card = R"({node="gpu-1",uuid="GPU-1",model="Tesla T4",mode="pgpu")";
  const auto share = card + R"(,namespace="team-a",pod="train-0",container="main"})";
  for (const auto& line :
       {"quartermaster_card_info" + card + R"(,index="3",bus_id="00000000:07:00.0",driver="550.90.07"} 1)",
        "quartermaster_card_healthy" + card + "} 1",
        std::string(R"(quartermaster_card_healthy{node="gpu-1",uuid="GPU-2",model="Tesla T4",mode="pgpu"} 0)"),
        "quartermaster_card_xids_total" + card + R"(,xid="48"} 2)",
        "quartermaster_card_utilization_ratio" + card + "} 0.37", "quartermaster_card_memory_bytes" + card + "} 2000",
        "quartermaster_card_power_watts" + card + "} 70.5", "quartermaster_card_energy_joules_total" + card + "} 1.5",
        "quartermaster_card_throttled" + card + R"(,reason="hw_thermal"} 1)",
        "quartermaster_card_throttled" + card + R"(,reason="sw_thermal"} 0)",
        "quartermaster_card_nvlink_receive_bytes_total" + card + "} 2048",
        "quartermaster_card_unattributed_memory_bytes" + card + R"(,reason="unseen"} 594)",
        "quartermaster_card_unattributed_utilization_ratio" + card + R"(,reason="unseen"} 0.12)",
        "quartermaster_share_allocated_cores_ratio" + share + " 0.2",
        "quartermaster_share_allocated_memory_bytes" + share + " 500",
        "quartermaster_share_memory_used_bytes" + share + " 400",
        "quartermaster_share_utilization_ratio" + share + " 0.25", "quartermaster_share_processes" + share + " 2",
        "quartermaster_share_mps_clients" + share + " 1"})
    EXPECT_NE(text.find(line + "\n"), std::string::npos) << line << "\nis not in\n" << text;
  EXPECT_EQ(text.find("reason=\"idle\""), std::string::npos) << "an idle card is not throttled";
}

TEST(exporter_page, S36_a_card_that_is_cut_by_mig_has_a_mode_of_its_own) {
  auto page = page_of_cards();
  page.report.cards.front().mig = true;
  const auto text = text_of(page);
  EXPECT_NE(text.find(R"(quartermaster_card_memory_bytes{node="gpu-1",uuid="GPU-1",model="Tesla T4",mode="mig"} 2000)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(quartermaster_card_healthy{node="gpu-1",uuid="GPU-2",model="Tesla T4",mode="pgpu"} 0)"),
            std::string::npos)
      << text;
}

TEST(exporter_page, has_no_more_series_of_shares_than_are_allowed_and_counts_the_rest) {
  auto page = page_of_cards();
  auto& shares = page.parts.front().shares;
  shares.resize(1);
  shares.push_back(shares.front());
  shares.back().name.pod = "train-1";
  page.max_share_series = 11;
  auto text = text_of(page);
  EXPECT_NE(text.find(R"(pod="train-0")"), std::string::npos);
  EXPECT_EQ(text.find(R"(pod="train-1")"), std::string::npos);
  EXPECT_NE(text.find("\nquartermaster_exporter_shares_left_out 1\n"), std::string::npos) << text;
  page.max_share_series = 12;
  text = text_of(page);
  EXPECT_NE(text.find(R"(pod="train-1")"), std::string::npos);
  EXPECT_NE(text.find("\nquartermaster_exporter_shares_left_out 0\n"), std::string::npos) << text;
  std::size_t series = 0;
  const std::string second = R"(pod="train-1")";
  for (auto place = text.find(second); place != std::string::npos; place = text.find(second, place + 1)) ++series;
  EXPECT_EQ(series, series_per_share);
}

TEST(exporter_page, of_a_card_without_readings_says_who_it_is) {
  auto page = page_of_cards();
  page.usage.clear();
  page.parts.clear();
  const auto text = text_of(page);
  EXPECT_NE(text.find("\nquartermaster_card_info{"), std::string::npos);
  EXPECT_EQ(text.find("\nquartermaster_card_memory_bytes{"), std::string::npos);
  EXPECT_EQ(text.find("\nquartermaster_share_processes{"), std::string::npos);
}

TEST(exporter_page, S75_of_a_check_that_could_not_be_seen_says_nothing) {
  auto page = page_of_cards();
  page.preflight = {{"driver", facts::check_state::ok, "550.90.07", ""},
                    {"persistence", facts::check_state::warning, "off", "switch it on"},
                    {"cdi", facts::check_state::failed, "missing", "make one"},
                    {"cgroup", facts::check_state::unknown, "", ""}};
  const auto text = text_of(page);
  const std::string name = "\nquartermaster_preflight_check_failed{node=\"gpu-1\",check=\"";
  EXPECT_NE(text.find(name + "driver\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find(name + "persistence\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find(name + "cdi\"} 1\n"), std::string::npos) << text;
  EXPECT_EQ(text.find(name + "cgroup"), std::string::npos) << text;
}

}  // namespace
}  // namespace agent::exporter
