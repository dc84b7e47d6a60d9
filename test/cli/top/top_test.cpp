// What people see of `top`: test/golden/top; QM_GOLDEN=write writes what differs. Its numbers are those that the
// console shows of the same cluster.
#include "cli/top/top.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "cli/console/views.hpp"
#include "test/cli/console/two_teams.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using console_test::pod_of;
using nlohmann::json;

/// Two teams, and a node of whole cards of which one is sick, with a pod on the other.
struct top : console_test::two_teams {
  top() {
    cluster.nodes.put(extender_test::node("gpu-4", {{"quartermaster.io/module", "pgpu"}}, {{"nvidia.com/gpu", 2}}));
    const auto card = [](const char* uuid, int index, bool is_healthy) {
      return json{{"uuid", uuid},
                  {"index", index},
                  {"model", "Tesla-T4"},
                  {"memoryMiB", 15360},
                  {"healthy", is_healthy},
                  {"health", is_healthy ? "Healthy" : "Unhealthy"},
                  {"reason", is_healthy ? "" : "XID 79"}};
    };
    cluster.cards.put(extender_test::reported("gpu-4", {card("GPU-b", 1, false), card("GPU-a", 0, true)}));
    auto whole = pod_of("team-a", "train", 0, 0, "gpu-4");
    whole.containers = {extender_test::container("main", {{"nvidia.com/gpu", 1}})};
    cluster.pods.put(whole);
  }
  using subject = std::function<void(const listing_style&, std::ostream&)>;
  std::vector<std::pair<std::string, subject>> subjects() {
    read();
    return {{"nodes", [this](const auto& style, auto& out) { top_nodes(cluster, style, out); }},
            {"pods", [this](const auto& style, auto& out) { top_pods(cluster, "", style, out); }},
            {"cards", [this](const auto& style, auto& out) { top_cards(cluster, style, out); }}};
  }
  json answer(const std::string& name) {
    for (const auto& [subject, print] : subjects()) {
      if (subject != name) continue;
      std::ostringstream out;
      print(listing_style("json"), out);
      return json::parse(out.str())[name];
    }
    return {};
  }
};

void compare(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(TEST_DATA) / "golden/top" / name;
  if (const char* write = std::getenv("QM_GOLDEN"); write && std::string_view(write) == "write")
    std::ofstream(path) << text;
  std::ifstream file(path);
  const std::string kept{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(kept, text) << path << ": QM_GOLDEN=write takes over what is made now";
}

TEST_F(top, golden_tables_in_both_languages_and_json) {
  for (const auto& [name, print] : subjects()) {
    for (const auto& [output, language, ending] : {std::tuple{"table", "en", ".table.en.txt"},
                                                   {"table", "zh", ".table.zh.txt"},
                                                   {"wide", "en", ".wide.en.txt"},
                                                   {"json", "en", ".json"}}) {
      std::ostringstream out;
      print({output, language}, out);
      compare(name + ending, out.str());
    }
  }
}

TEST_F(top, one_node_or_one_pod_is_shown_alone) {
  read();
  std::ostringstream nodes, cards, pods;
  top_nodes(cluster, {"json", "en"}, nodes, "gpu-4");
  top_cards(cluster, {"json", "en"}, cards, "gpu-4");
  top_pods(cluster, "", {"json", "en"}, pods, "train");
  ASSERT_EQ(json::parse(nodes.str())["nodes"].size(), 1u);
  EXPECT_EQ(json::parse(nodes.str())["nodes"][0]["node"], "gpu-4");
  EXPECT_EQ(json::parse(cards.str())["cards"].size(), 2u);
  EXPECT_EQ(json::parse(pods.str())["pods"].size(), 1u);
}

TEST_F(top, cards_of_other_vendors_are_named_and_not_counted_as_none) {
  cluster.nodes.put(extender_test::node("npu-1", {}, {{"huawei.com/Ascend910", 8}}));
  cluster.cards.put(extender_test::reported("npu-1", json::array()));
  cluster.reports["npu-1"].other_cards.resize(8, {"0000:01:00.0", "Huawei", "19e5:d802", "", "", 0});
  read();
  std::ostringstream out;
  top_nodes(cluster, {"table", "en"}, out, "npu-1");
  EXPECT_THAT(out.str(), testing::ContainsRegex("npu-1 +none +8 Huawei +- +- +- +- +- +0"));
  for (const auto& row : answer("nodes")) EXPECT_EQ(row["otherCards"].size(), row["node"] == "npu-1" ? 8U : 0U) << row;
}

TEST_F(top, a_card_of_which_no_one_has_said_how_it_is_is_not_called_healthy) {
  read();
  for (const auto& row : answer("cards")) {
    const bool is_reported = row["node"] == "gpu-4";
    EXPECT_EQ(row["health"], !is_reported ? "Unknown" : row["healthy"] == true ? "Healthy" : "Unhealthy") << row;
  }
}

/// GPU-Manager's plugin takes the first free card, whatever someone says of it.
TEST_F(top, a_card_behind_one_that_a_plugin_would_take_and_that_may_not_be_used_is_not_free) {
  const auto free_cards_without = [&](const std::string& card, std::uint64_t version) {
    auto node = extender_test::vgpu_node("gpu-5", 2);
    node.annotations = extender_test::packed({{"quartermaster.io/cordon", card}});
    node.resource_version = version;
    cluster.nodes.put(node);
    for (const auto& row : answer("nodes"))
      if (row["node"] == "gpu-5") return row["freeCards"].get<int>();
    return -1;
  };
  EXPECT_EQ(free_cards_without("gpu-5/1", 2), 1);
  EXPECT_EQ(free_cards_without("gpu-5/0", 3), 0);
  EXPECT_EQ(free_cards_without("gpu-5/7", 4), 2) << "no such card";
}

TEST_F(top, golden_mark_of_a_cordoned_card) {
  auto node = *cluster.nodes.find({{}, "gpu-4"});
  node.annotations = extender_test::packed({{"quartermaster.io/cordon", "GPU-a, GPU-not-here"}});
  node.resource_version = 2;
  cluster.nodes.put(node);
  read();
  std::ostringstream out;
  top_cards(cluster, {"table", "en"}, out, "gpu-4");
  EXPECT_THAT(out.str(), testing::ContainsRegex("gpu-4 +GPU-a .*Healthy, cordoned\n"));
  EXPECT_THAT(out.str(), testing::ContainsRegex("gpu-4 +GPU-b .*Unhealthy\n"));
}

TEST_F(top, a_filter_that_nothing_matches_is_named_in_place_of_an_empty_table) {
  cluster.nodes.put(extender_test::node("plain", {}, {}));
  read();
  const auto no_match = [](const std::string& kind, const std::string& filter) {
    return words::english("no_match." + kind, {{"filters", filter}}) + "\n";
  };
  listing_style labels{"table", "en"};
  labels.selector = "foo=bar";
  std::ostringstream cards, of_labels, nodes, pods;
  top_cards(cluster, {"table", "en"}, cards, "plain");
  top_cards(cluster, labels, of_labels);
  top_nodes(cluster, labels, nodes);
  top_pods(cluster, "nowhere", {"table", "en"}, pods);
  EXPECT_EQ(cards.str(), no_match("cards", "plain"));
  EXPECT_EQ(of_labels.str(), no_match("cards", "-l foo=bar"));
  EXPECT_EQ(nodes.str(), no_match("nodes", "-l foo=bar"));
  EXPECT_EQ(pods.str(), no_match("pods", "-n nowhere"));
}

TEST_F(top, a_namespace_shows_its_own_pods_alone) {
  read();
  std::ostringstream out;
  top_pods(cluster, "team-a", {"table", "en"}, out);
  EXPECT_THAT(out.str(), testing::HasSubstr("mine-1"));
  EXPECT_THAT(out.str(), testing::Not(testing::HasSubstr("secret")));
}

TEST_F(top, what_an_agent_reports_moves_no_cursor) {
  cluster.cards.put(extender_test::reported("gpu-4", {{{"uuid", "GPU-\x1b[2J"},
                                                       {"index", 0},
                                                       {"model", "T4\x1b]0;owned\a\xe2\x80\xae"},
                                                       {"memoryMiB", 15360},
                                                       {"health", "Healthy"}}}));
  for (const auto& [name, print] : subjects()) {
    std::ostringstream out;
    print({"wide", "en"}, out);
    EXPECT_THAT(out.str(), testing::Not(testing::ContainsRegex("[\x01-\x09\x0b-\x1f]"))) << name;
    if (name != "cards") continue;
    EXPECT_THAT(out.str(), testing::HasSubstr("T4\\u{1b}]0;owned\\u{7}\\u{202e}"));
    EXPECT_THAT(out.str(), testing::HasSubstr("GPU-\\u{1b}[2J"));
  }
}

/// A card by its node and place, as [cores, MiB, shares].
using card_numbers = std::map<std::pair<std::string, std::size_t>, json>;

TEST_F(top, its_numbers_are_those_of_the_console) {
  read();
  const auto fleet = console::fleet_view(cluster, everyone(), {0, 5000});
  card_numbers in_console, in_top;
  std::map<std::string, json> nodes_in_console, nodes_in_top;
  std::map<std::string, std::size_t> places;
  for (const auto& node : fleet["nodes"]) {
    const auto name = node[0].get<std::string>();
    std::int64_t cores = 0, memory = 0;
    for (const auto& card : node[4]) {
      cores += card[3].get<std::int64_t>();
      memory += card[4].get<std::int64_t>();
      in_console[{name, places[name]++}] = {card[3], card[4], card.size() > 5 ? card[5].size() : 0};
    }
    nodes_in_console[name] = {node[4].size(), cores, memory};
  }
  for (const auto& node : answer("nodes"))
    nodes_in_top[node["node"]] = {node["cards"], node["usedCores"], node["usedMiB"]};
  EXPECT_EQ(nodes_in_top, nodes_in_console);
  EXPECT_EQ(nodes_in_top.size(), 4u);
  for (const auto& card : answer("cards"))
    in_top[{card["node"], card["index"]}] = {card["usedCores"], card["usedMiB"], card["shares"]};
  EXPECT_EQ(in_top, in_console);
}

TEST_F(top, S42_a_namespace_uses_in_the_console_what_its_pods_hold_in_top) {
  std::map<std::string, json> in_console, in_top;
  const auto pods = answer("pods");
  for (const auto& row : console::namespaces_view(cluster, everyone(), {})["namespaces"])
    in_console[row["name"]] = row["used"];
  for (const auto& pod : pods) {
    auto& sum = in_top[pod["namespace"]];
    if (sum.is_null()) sum = {{"cards", 0}, {"cores", 0}, {"memoryMiB", 0}};
    sum["cards"] = sum["cards"].get<int>() + static_cast<int>(pod["cards"].size());
    for (const auto* key : {"cores", "memoryMiB"})
      sum[key] = sum[key].get<std::int64_t>() + pod[key].get<std::int64_t>();
  }
  EXPECT_EQ(in_top, in_console);
}

TEST_F(top, what_no_sum_has_is_named_below_the_table) {
  cluster.pods.put(pod_of("team-a", "half", 30, 0, "gpu-1"));
  cluster.pods.put(pod_of("team-b", "secret-half", 30, 0, "gpu-2"));
  read();
  const auto refusal =
      words::english("engine.refusal.needs_partner",
                     {{"key", "tencent.com/vcuda-core"}, {"amount", "30"}, {"other", "tencent.com/vcuda-memory"}});
  const auto named_half = words::english(
      "uncounted.pod", {{"pod", "team-a/half"}, {"reason", words::english("uncounted.reason", {{"text", refusal}})}});
  std::ostringstream nodes, pods, named;
  top_nodes(cluster, {"table", "en"}, nodes);
  EXPECT_THAT(nodes.str(),
              testing::HasSubstr(text::counted(2, "top.uncounted", text::language::en) + "\n  " + named_half));
  top_pods(cluster, "team-a", {"table", "en"}, pods);
  EXPECT_THAT(pods.str(),
              testing::AllOf(testing::HasSubstr(text::counted(1, "top.uncounted", text::language::en)),
                             testing::HasSubstr(named_half), testing::Not(testing::HasSubstr("secret-half"))));
  top_pods(cluster, "", {"table", "en"}, named, "half");
  EXPECT_THAT(named.str(), testing::AllOf(testing::HasSubstr(named_half), testing::Not(testing::HasSubstr("secret"))));
  EXPECT_EQ(answer("pods").size(), 6u) << "they hold nothing that is known";
}

}  // namespace
}  // namespace cli
