// The checks of a machine with the cards of each fixture of test/nvml, field by field, as they are reported. The tree
// is made of the fixture, as test/nvml/node.sh makes a node. QM_GOLDEN=write writes what differs.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "agent/facts/status.hpp"
#include "test/agent/cards/machine.hpp"
#include "test/agent/facts/tree.hpp"

namespace agent::facts {
namespace {

using nlohmann::json;

/// A whole fact of a card: its own, that of all cards, or that of its model.
json fact_of(const json& node, const json& models, const json& card, const char* key) {
  if (card.contains(key)) return card[key];
  if (node.contains("defaults") && node["defaults"].contains(key)) return node["defaults"][key];
  return models[card["model"].get<std::string>()].value(key, json());
}

class fixture_node : public tree {
 public:
  explicit fixture_node(const std::string& fixture) : machine_(fixture) {
    const auto node = machine_.content();
    const auto models = json::parse(std::ifstream(machine_.root / "models.json"));
    system();
    driver(cards::text_at(node, "/driver/version"), 0, false);
    std::map<std::string, int> switches;
    for (const auto& card : node["cards"]) {
      if (card.value("lost", false)) continue;
      const auto number = std::to_string(card["minor"].get<int>());
      put("dev/nvidia" + number, "", 0666);
      link("dev/char/195:" + number, "../nvidia" + number);
      const auto id = fact_of(node, models, card, "pci_device_id").get<std::string>();  // "0x2330" and "10de"
      pci("pci" + card.value("pcie_path", "0000:00"), card["pci_bus_id"], "0x" + id.substr(6), "0x" + id.substr(2, 4),
          fact_of(node, models, card, "pci_class").get<std::string>(), "nvidia", card["numa_node"].get<int>());
      const auto links = fact_of(node, models, card, "nvlinks");
      if (!links.is_array()) continue;
      for (const auto& peer : links) switches[peer["peer"]] += 1;
    }
    // What more than one card is joined to, and is no card itself, is an NVSwitch.
    for (const auto& card : node["cards"]) switches.erase(card["pci_bus_id"].get<std::string>());
    for (const auto& [address, count] : switches)
      if (count > 1) pci("pci0000:00", address, "0x10de", "0x1af1", "0x068000", "nvidia-nvswitch");
    if (!switches.empty()) link("run/systemd/units/invocation:nvidia-fabricmanager.service", "0123");
    const auto nvml = cards::nvml_library::load(machine_.root);
    EXPECT_TRUE(nvml) << nvml.error();
    EXPECT_EQ((*nvml)(cards::call::init), nvml::success);
    inventory = cards::read_inventory(*nvml);
    (*nvml)(cards::call::shutdown);
  }
  cards::inventory inventory;

 private:
  cards::machine machine_;
};

class preflight_of_fixtures : public testing::TestWithParam<const char*> {};

TEST_P(preflight_of_fixtures, S1_S91_golden_checks_are_reported_field_by_field) {
  const fixture_node node(GetParam());
  const auto status = status_of(judge(node.seen(), &node.inventory), {}, {}, "2026-07-01T00:00:00Z");
  const auto text = status.dump(1) + "\n";
  const auto path = std::string(TEST_DATA) + "/golden/facts/" + GetParam() + ".json";
  if (const char* write = std::getenv("QM_GOLDEN"); write && std::string_view(write) == "write")
    std::ofstream(path) << text;
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), text) << path << ": QM_GOLDEN=write takes over what is made now";
}

/// The fixture itself is read a second time, by other code.
TEST_P(preflight_of_fixtures, agrees_with_a_second_reader) {
  const fixture_node node(GetParam());
  const cards::machine machine(GetParam());
  const auto content = machine.content();
  std::map<std::string, row> rows;
  for (auto& row : judge(node.seen(), &node.inventory)) rows[row.name] = row;
  int answering = 0, idle = 0;
  for (const auto& card : content["cards"]) {
    if (card.value("lost", false)) continue;
    ++answering;
    const bool is_persistent = card.value("persistence", content["defaults"].value("persistence", true));
    if (!is_persistent) ++idle;
  }
  EXPECT_EQ(rows["cards"].found, std::to_string(answering));
  EXPECT_EQ(rows["device_nodes"].found, std::to_string(answering + 1));
  EXPECT_EQ(rows["driver"].found, cards::text_at(content, "/driver/version"));
  EXPECT_EQ(rows["cuda"].found, cards::text_at(content, "/driver/cuda"));
  EXPECT_EQ(rows["persistence"].state, idle == 0 ? check_state::ok : check_state::warning);
  EXPECT_EQ(rows.contains("fabric"), content["defaults"].contains("fabric"));
  const std::string fixture = GetParam();
  EXPECT_EQ(rows.contains("fabric_manager"), fixture == "a100x8" || fixture == "h100x8") << "machines with NVSwitches";
}

INSTANTIATE_TEST_SUITE_P(nvml, preflight_of_fixtures,
                         testing::Values("a100_mig", "a100x8", "h100x8", "l40s", "rtx4090", "t4", "t4_lost", "t4_pair",
                                         "v100"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace agent::facts
