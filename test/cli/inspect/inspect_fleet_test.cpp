#include "cli/inspect/inspect_fleet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/verbs.hpp"
#include "test/reconcilers/projections.hpp"
#include "test/words.hpp"
#include "text/yaml/source.hpp"

namespace cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using texts = std::map<std::string, std::string>;

std::string file(const std::string& name) {
  std::ifstream ifstream(TEST_DATA "/golden/inspect/" + name);
  std::stringstream out;
  out << ifstream.rdbuf();
  return out.str();
}

using reconcilers::packed;

kube::node node(const std::string& name, const texts& labels, const kube::quantities& resources = {}) {
  kube::node out;
  out.key.name = name;
  out.address = "192.0.2.1";
  out.labels = packed(labels);
  out.ready = kube::condition_status::yes;
  out.operating_system = "linux";
  out.architecture = "amd64";
  out.kubelet_version = "v1.36.3";
  out.capacity = out.allocatable = resources;
  return out;
}

api::reported_card card(const std::string& uuid, const std::string& model, const std::string& health, int index,
                        std::int64_t mib) {
  api::reported_card out;
  out.uuid = uuid;
  out.model = model;
  out.health = health;
  out.index = index;
  out.memory_mib = mib;
  return out;
}

kube::pod pod(const std::string& ns, const std::string& name, const std::string& node_name,
              const kube::quantities& asks, const texts& annotations = {}) {
  kube::pod out;
  out.key = {ns, name};
  out.node_name = node_name;
  out.phase = node_name.empty() ? kube::pod_phase::pending : kube::pod_phase::running;
  out.annotations = packed(annotations);
  kube::container container;
  container.name = "main";
  container.limits = asks;
  out.containers.push_back(std::move(container));
  return out;
}

api::accelerator_node anode(const std::string& name, const std::string& requested, const std::string& mode,
                            const std::string& phase, const std::string& reason, const std::string& message) {
  api::accelerator_node out;
  out.key.name = name;
  out.mode.requested_mode = requested;
  out.mode.actual_mode = mode;
  out.mode.phase = phase;
  out.mode.reason = reason;
  out.mode.message = message;
  return out;
}

/// Four nodes: shares, whole cards with a card that is ill, a refused label, and one without cards.
struct small_cluster : picture {
  small_cluster();
};
small_cluster::small_cluster() {
  leader.ns = "quartermaster";
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.modules["pgpu"].enabled = policy.modules["vgpu"].enabled = true;
  policy.status = R"({"modules":[{"name":"pgpu","enabled":true,"desired":1,"ready":1,"nodes":1},)"
                  R"({"name":"vgpu","enabled":true,"desired":1,"ready":0,"message":"0 of 1 ready"}]})";
  policies.put(policy);
  const texts t4{{"nvidia-device-enable", "vGPU"},        {"quartermaster.io/module", "vgpu"},
                 {"nvidia.com/gpu.present", "true"},      {"nvidia.com/gpu.count", "4"},
                 {"nvidia.com/gpu.product", "Tesla-T4"},  {"nvidia.com/gpu.memory", "15360"},
                 {"nvidia.com/gpu.compute.major", "7"},   {"nvidia.com/gpu.compute.minor", "5"},
                 {"nvidia.com/cuda.driver.major", "535"}, {"nvidia.com/cuda.driver.minor", "183"},
                 {"nvidia.com/cuda.driver.rev", "01"},    {"nvidia.com/cuda.runtime.major", "12"},
                 {"nvidia.com/cuda.runtime.minor", "2"}};
  nodes.put(node("gpu-1", t4, {{"tencent.com/vcuda-core", 400}, {"tencent.com/vcuda-memory", 240}}));
  auto sick =
      node("gpu-2", {{"nvidia-device-enable", "pgpu"}, {"quartermaster.io/module", "pgpu"}}, {{"nvidia.com/gpu", 8}});
  sick.allocatable = {{"nvidia.com/gpu", 7}};
  sick.unschedulable = true;
  nodes.put(sick);
  nodes.put(node("gpu-3", {{"nvidia-device-enable", "vgppu"}, {"nvidia.com/gpu.present", "true"}}));
  nodes.put(node("worker-1", {}));
  cards.put(anode("gpu-1", "vgpu", "vgpu", "Ready", "Enrolled", "allocatable"));
  auto leaving = anode("gpu-2", "vgpu", "pgpu", "Draining", "PodsHoldCards", "waits");
  leaving.mode.blockers = {"team/train"};
  leaving.fix = api::runtime_fix{"Failed", "no config.toml", {}, "uid", 1'790'000'000};
  cards.put(leaving);
  reports["gpu-2"].checks = {{"cgroup", api::check_state::ok, "v2"},
                             {"cdi", api::check_state::failed, "an old one", "renew it"},
                             {"dev_char", api::check_state::warning, "no link", "make links"}};
  cards.put(anode("gpu-3", "vgppu", "none", "Refused", "UnknownMode",
                  "label nvidia-device-enable=vgppu names no mode we know"));
  kube::daemon_set set;
  set.key = {"quartermaster", "nvidia-device-plugin-ds"};
  set.labels = packed({{"quartermaster.io/module", "pgpu"}});
  set.image = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0";
  set.desired = set.ready = 1;
  daemon_sets.push_back(set);
  set.key.name = "gpu-manager-daemonset";
  set.labels = packed({{"quartermaster.io/module", "vgpu"}});
  set.image = "tkestack/gpu-manager:v1.1.5";
  set.ready = 0;
  daemon_sets.push_back(set);
  auto plugin = pod("quartermaster", "gpu-manager-daemonset-x", "gpu-1", {});
  plugin.labels = packed({{"quartermaster.io/module", "vgpu"}});
  for (const auto& entry :
       {plugin,
        pod("team", "infer-a", "gpu-1", {{"tencent.com/vcuda-core", 20}, {"tencent.com/vcuda-memory", 8}},
            {{"tencent.com/predicate-gpu-idx-0", "2"}}),
        pod("team", "infer-b", "gpu-1", {{"tencent.com/vcuda-core", 30}, {"tencent.com/vcuda-memory", 8}},
            {{"quartermaster.io/placement",
              R"({"v":1,"node":"gpu-1","containers":{"main":[{"card":"GPU-1f","cores":30,"memoryMiB":2048}]}})"},
             {"quartermaster.io/isolation", "soft"}}),
        pod("team", "train", "gpu-2", {{"nvidia.com/gpu", 2}}), pod("web", "waits", "", {{"example.com/fpga", 1}})})
    pods.put(entry);
}

void change(picture& cluster, const std::string& name, auto change) {
  auto edited = *cluster.cards.find({{}, name});
  change(edited);
  cluster.cards.put(edited);
}
std::vector<node_row> node_rows(const picture& cluster, const std::vector<std::string>& only = {}) {
  return node_rows(fleet(cluster), only);
}
std::vector<pod_row> pod_rows(const picture& cluster, std::string_view ns = {}) { return pod_rows(fleet(cluster), ns); }
std::vector<module_row> module_rows(const picture& cluster) { return module_rows(fleet(cluster)); }

template <class Rows>
std::string printed(const Rows& rows, const std::string& language, const std::string& output = "table",
                    bool no_headers = false) {
  look_options options;
  options.no_headers = no_headers;
  options.language = language;
  options.output = output;
  std::ostringstream out;
  print(rows, options, out);
  return out.str();
}

/// QM_GOLDEN=write writes what is printed now.
void expect_golden(const std::string& name, const std::string& text) {
  const auto* write = std::getenv("QM_GOLDEN");
  if (write && std::string_view(write) == "write") std::ofstream(TEST_DATA "/golden/inspect/" + name) << text;
  EXPECT_EQ(text, file(name)) << name;
}

TEST(inspect_fleet, S3_S63_golden_tables_in_both_languages) {
  const small_cluster cluster;
  for (const std::string language : {"en", "zh"}) {
    for (const std::string output : {"table", "wide"}) {
      const auto suffix = "." + output + "." + language + ".txt";
      expect_golden("nodes" + suffix, printed(node_rows(cluster), language, output));
      expect_golden("pods" + suffix, printed(pod_rows(cluster), language, output));
      auto built_in = module_rows(cluster);
      std::erase_if(built_in,
                    [](const auto& row) { return row.name != "pgpu" && row.name != "vgpu" && row.name != "mps"; });
      expect_golden("modules" + suffix, printed(built_in, language, output));
    }
  }
}

TEST(inspect_fleet, S3_a_message_that_follows_from_what_is_seen_has_words_in_both_languages) {
  small_cluster cluster;
  const auto* policy = cluster.policies.find(reconcilers::policy_key);
  const auto refusal = reconcilers::intent_of(*cluster.nodes.find({{}, "gpu-3"}), policy).message;
  ASSERT_EQ(refusal.key, "intent.label_unknown_with_hint");
  const auto line = [&](const std::string& language) {
    return printed(node_rows(cluster, {"gpu-3"}), language, "wide", true);
  };
  EXPECT_THAT(line("zh"), testing::Not(HasSubstr(words_of(refusal, text::language::zh))))
      << "the operator wrote something else";
  change(cluster, "gpu-3", [&](auto& gpu_3) { gpu_3.mode.message = words_of(refusal, text::language::en); });
  EXPECT_THAT(line("zh"), HasSubstr(words_of(refusal, text::language::zh)));
  EXPECT_THAT(line("en"), HasSubstr(words_of(refusal, text::language::en)));
  cluster.cards.erase(kube::object_key{{}, "gpu-3"});
  EXPECT_THAT(line("zh"), HasSubstr(words_of(refusal, text::language::zh))) << "before the operator has seen the node";
}

TEST(inspect_fleet, S3_a_message_with_a_code_is_in_the_language_asked_for_and_in_json_with_its_code) {
  small_cluster cluster;
  const text::phrase message{"status.node.plugin_leaves", {{"pod", "quartermaster/p"}, {"mode", "pgpu"}}};
  change(cluster, "gpu-3", [&](auto& gpu_3) {
    gpu_3.mode.message = "OWN TEXT";
    gpu_3.mode.code = code_of(message);
  });
  EXPECT_THAT(printed(node_rows(cluster, {"gpu-3"}), "zh", "wide", true),
              HasSubstr(words_of(message, text::language::zh)));
  const auto node = nlohmann::json::parse(printed(node_rows(cluster, {"gpu-3"}), "zh", "json"))["nodes"][0];
  EXPECT_EQ(node["message"], words_of(message, text::language::en));
  EXPECT_EQ(node["cause"], message.key);
  EXPECT_EQ(node["parameters"], (nlohmann::json{{"pod", "quartermaster/p"}, {"mode", "pgpu"}}));
  change(cluster, "gpu-3", [&](auto& gpu_3) { gpu_3.mode.code.cause = "status.node.of_a_later_version"; });
  EXPECT_THAT(printed(node_rows(cluster, {"gpu-3"}), "zh", "wide", true), HasSubstr("OWN TEXT"));
}

TEST(inspect_fleet, json_is_stable_and_yaml_says_the_same) {
  const small_cluster cluster;
  EXPECT_EQ(printed(node_rows(cluster), "en", "json"), file("nodes.json"));
  EXPECT_EQ(printed(pod_rows(cluster), "zh", "json"), file("pods.json"));
  const auto yaml = text::yaml::read("f", printed(node_rows(cluster), "zh", "yaml"));
  ASSERT_TRUE(yaml) << yaml.error();
  EXPECT_EQ(*text::yaml::to_json(*yaml->documents.at(0)), nlohmann::json::parse(file("nodes.json")));
}

TEST(inspect_fleet, S1_an_old_report_is_called_so) {
  small_cluster cluster;
  change(cluster, "gpu-1", [](auto& node) { node.agent_reporting = "False"; });
  change(cluster, "gpu-2", [](auto& node) { node.agent_reporting = "True"; });
  const auto table = printed(node_rows(cluster), "en", "table");
  EXPECT_THAT(table, HasSubstr("Enrolled, AgentGone"));
  EXPECT_THAT(table, testing::Not(HasSubstr("PodsHoldCards, AgentGone")));
  EXPECT_EQ(nlohmann::json::parse(printed(node_rows(cluster), "en", "json"))["nodes"][0]["reportOld"], true);
}

TEST(inspect_fleet, a_node_whose_label_has_a_mistyped_key_says_so) {
  small_cluster cluster;
  cluster.nodes.put(node("gpu-9", {{"nvidia-device-enabled", "pgpu"}}));
  const auto rows = node_rows(fleet(cluster));
  const auto row = std::ranges::find(rows, "gpu-9", &node_row::name);
  ASSERT_NE(row, rows.end());
  EXPECT_EQ(row->reason, "ModeLabelMistyped");
  EXPECT_EQ(words_of(row->message, text::language::en),
            words::english("verify.mode_label_mistyped.wrong",
                           {{"value", "nvidia-device-enabled=pgpu"}, {"other", "nvidia-device-enable=pgpu"}}));
}

TEST(inspect_fleet, every_module_of_the_catalogue_has_a_row) {
  EXPECT_EQ(module_rows(small_cluster()).size(), reconcilers::modules::catalogue().size());
}

TEST(inspect_fleet, cards_an_agent_reports_count_before_labels) {
  small_cluster cluster;
  change(cluster, "gpu-1", [](auto& node) {
    node.cards = {card("GPU-1f", "NVIDIA-A10", "Healthy", 0, 23028), card("GPU-2e", "NVIDIA-A10", "Xid 79", 1, 23028)};
  });
  const auto rows = node_rows(cluster, {"gpu-1"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front().cards, 2);
  EXPECT_EQ(rows.front().model, "NVIDIA-A10");
  EXPECT_EQ(rows.front().memory_mib, 23028);
  EXPECT_EQ(rows.front().unhealthy, 1);
}

TEST(inspect_fleet, of_a_node_that_may_not_be_seen_there_is_what_the_operator_wrote_and_no_number_is_made_up) {
  small_cluster cluster;
  change(cluster, "gpu-1", [](auto& node) {
    node.cards = {card("GPU-1f", "NVIDIA-A10", "Healthy", 0, 23028), card("GPU-2e", "NVIDIA-A10", "Xid 79", 1, 23028)};
  });
  kube::node bare;
  bare.key.name = "gpu-1";
  cluster.nodes.put(bare);
  cluster.unseen[part::nodes] = text::phrase("refused");
  const auto rows = node_rows(cluster, {"gpu-1"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front().mode, "vgpu");
  EXPECT_EQ(rows.front().requested, "vgpu");
  EXPECT_EQ(rows.front().model, "NVIDIA-A10");
  EXPECT_EQ(rows.front().cards, 2);
  EXPECT_EQ(rows.front().unhealthy, 1);
  EXPECT_THAT(rows.front().resources, testing::IsEmpty());
  EXPECT_THAT(printed(rows, "en", "wide"), testing::Not(testing::HasSubstr("NotReady")));
  const auto read = nlohmann::json::parse(printed(rows, "en", "json"))["nodes"][0];
  EXPECT_TRUE(read["nodeReady"].is_null()) << read;
  EXPECT_TRUE(read["cordoned"].is_null());
}

TEST(inspect_fleet, a_node_without_the_condition_Ready_is_neither_ready_nor_not) {
  small_cluster cluster;
  auto bare = *cluster.nodes.find({{}, "gpu-1"});
  const auto shown_as = [&](kube::condition_status ready) {
    bare.ready = ready;
    cluster.nodes.put(bare);
    const auto rows = node_rows(cluster, {"gpu-1"});
    return std::pair(printed(rows, "en", "wide"),
                     nlohmann::json::parse(printed(rows, "en", "json"))["nodes"][0]["nodeReady"]);
  };
  const auto [unknown, no_json] = shown_as(kube::condition_status::unknown);
  EXPECT_THAT(unknown, testing::AllOf(testing::HasSubstr("Unknown"), testing::Not(testing::HasSubstr("NotReady"))));
  EXPECT_TRUE(no_json.is_null());
  const auto [ill, ill_json] = shown_as(kube::condition_status::no);
  EXPECT_THAT(ill, testing::HasSubstr("NotReady"));
  EXPECT_EQ(ill_json, false);
  EXPECT_EQ(shown_as(kube::condition_status::yes).second, true);
}

TEST(inspect_fleet, pods_by_name) {
  const small_cluster cluster;
  const auto rows = cli::pod_rows(fleet(cluster), "team", {"infer-b"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front().key.to_string(), "team/infer-b");
}

TEST(inspect_fleet, S27_cards_of_other_vendors_stand_next_to_what_their_plugin_offers) {
  small_cluster cluster;
  cluster.nodes.put(node("amd-1", {}, {{"amd.com/gpu", 8}}));
  cluster.cards.put(anode("amd-1", "none", "none", "", "", ""));
  auto& cards = cluster.reports["amd-1"].other_cards;
  for (int i = 0; i < 8; ++i)
    cards.push_back({"0000:0" + std::to_string(i) + ":00.0", "AMD", "1002:74a1", "", "amdgpu", i / 4});
  cluster.pods.put(pod("team", "hip", "amd-1", {{"amd.com/gpu", 2}}));
  EXPECT_EQ(printed(node_rows(cluster, {"amd-1"}), "en", "table", true), "amd-1  none  -  8 AMD  gpu 6/8  -  -  -\n");
  const auto row = nlohmann::json::parse(printed(node_rows(cluster, {"amd-1"}), "en", "json"))["nodes"][0];
  EXPECT_TRUE(row["cards"].is_null()) << "those are NVIDIA's";
  EXPECT_EQ(row["otherCards"].size(), 8U);
  EXPECT_EQ(
      row["otherCards"][7],
      nlohmann::json(
          {{"busID", "0000:07:00.0"}, {"vendor", "AMD"}, {"pciID", "1002:74a1"}, {"driver", "amdgpu"}, {"numa", 1}}));
  EXPECT_EQ(row["resources"][0]["name"], "amd.com/gpu");
  EXPECT_THAT(printed(node_rows(cluster), "zh"), HasSubstr("8 AMD"));
}

TEST(inspect_fleet, a_name_that_no_card_has_is_no_cordoned_card) {
  picture all;
  auto counted = node("gpu-9", {{"nvidia.com/gpu.present", "true"}, {"nvidia.com/gpu.count", "4"}});
  counted.annotations = packed({{"quartermaster.io/cordon", "GPU-not-here, gpu-9/1,gpu-9/4"}});
  all.nodes.put(counted);
  EXPECT_EQ(node_rows(all).at(0).cordoned_cards, 1);
  auto agent = anode("gpu-9", "none", "none", "", "", "");
  agent.cards = {card("GPU-a", "T4", "Healthy", 0, 16384)};
  all.cards.put(agent);
  EXPECT_EQ(node_rows(all).at(0).cordoned_cards, 0) << "they have other names now";
}

TEST(inspect_fleet, a_pod_has_its_cards_by_the_names_of_other_tables) {
  auto agent = anode("gpu-1", "vgpu", "vgpu", "Ready", "", "");
  agent.cards = {card("GPU-b", "T4", "Healthy", 1, 16384), card("GPU-a", "T4", "Healthy", 0, 16384)};
  const auto placed = pod("team", "p", "gpu-1", {{"tencent.com/vcuda-core", 20}},
                          {{"tencent.com/predicate-gpu-idx-0", "1"}, {"tencent.com/predicate-gpu-idx-1", "7"}});
  EXPECT_THAT(named_cards(placed, &agent), testing::ElementsAre("GPU-b", "gpu-1/7"));
  EXPECT_THAT(named_cards(placed, nullptr), testing::ElementsAre("gpu-1/1", "gpu-1/7"));
}

/// Cards known from a label alone: no one has looked at one.
TEST(inspect_fleet, health_is_not_said_before_a_plugin_or_an_agent_has_looked) {
  picture all;
  all.nodes.put(node("gpu-9", {{"nvidia.com/gpu.present", "true"}, {"nvidia.com/gpu.count", "4"}}));
  EXPECT_EQ(node_rows(all).at(0).cards, 4);
  EXPECT_FALSE(node_rows(all).at(0).unhealthy);
  std::ostringstream out;
  look_options options;
  options.output = "wide";
  print(node_rows(all), options, out);
  EXPECT_THAT(out.str(), testing::Not(HasSubstr("ok")));
  options.output = "json";
  out.str("");
  print(node_rows(all), options, out);
  EXPECT_TRUE(nlohmann::json::parse(out.str())["nodes"][0]["unhealthyCards"].is_null());

  auto agent = anode("gpu-9", "none", "none", "", "", "");
  agent.cards.emplace_back().uuid = "GPU-0";
  all.cards.put(agent);
  EXPECT_FALSE(node_rows(all).at(0).unhealthy) << "an agent that reports cards and not their health";
  change(all, "gpu-9", [](auto& node) { node.cards[0].health = "Healthy"; });
  EXPECT_EQ(node_rows(all).at(0).unhealthy, 0);
}

TEST(inspect_fleet, a_node_that_is_named_is_shown_whatever_it_has) {
  const auto rows = node_rows(small_cluster(), {"worker-1"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front().mode, "none");
  EXPECT_FALSE(rows.front().cards_known);
}

TEST(inspect_fleet, pods_of_one_namespace) {
  const auto rows = pod_rows(small_cluster(), "web");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows.front().key.name, "waits");
  EXPECT_EQ(rows.front().mode, "") << "none of our modules advertises it";
}

TEST(inspect_fleet, where_nothing_is_there_that_is_said) {
  EXPECT_EQ(printed(std::vector<node_row>(), "en"), words::english("inspect.no_node") + "\n");
  EXPECT_EQ(printed(std::vector<pod_row>(), "zh"), words::chinese("inspect.no_pod") + "\n");
}

TEST(inspect_fleet, cards_of_a_pod_by_whoever_wrote_them) {
  const auto cards = [](const texts& annotations) { return placed_cards(pod("a", "b", "n", {}, annotations)); };
  EXPECT_THAT(cards({{"hami.io/vgpu-devices-allocated", "GPU-1,NVIDIA,3000,30:;GPU-2,NVIDIA,1,1:GPU-1,NVIDIA,1,1:;"}}),
              ElementsAre("GPU-1", "GPU-2"));
  EXPECT_THAT(cards({{"ALIYUN_COM_GPU_MEM_IDX", "3"}}), ElementsAre("3"));
  EXPECT_THAT(cards({{"tencent.com/predicate-gpu-idx-0", "1,0"}, {"tencent.com/predicate-gpu-idx-1", "1"}}),
              ElementsAre("0", "1"));
  EXPECT_THAT(cards({{"quartermaster.io/placement", "not json"}}), ElementsAre());
  EXPECT_THAT(cards({{"quartermaster.io/placement", R"({"containers":{"main":[{"card":7},5]}})"}}), ElementsAre());
  EXPECT_THAT(cards({}), ElementsAre());
}

// --- the table of kubectl inspect cgpu

/// A node of gpushare: cards of one size, and pods that have GiB of them by the card's number.
void add_gpushare(picture& cluster, const std::string& name, const std::string& address, std::int64_t cards,
                  std::int64_t gib_a_card, const std::vector<std::int64_t>& used) {
  auto shared = node(name, {}, {{"aliyun.com/gpu-count", cards}, {"aliyun.com/gpu-mem", cards * gib_a_card}});
  shared.address = address;
  cluster.nodes.put(shared);
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i] > 0)
      cluster.pods.put(pod("default", "binpack-" + std::to_string(cluster.pods.size()), name,
                           {{"aliyun.com/gpu-mem", used[i]}}, {{"ALIYUN_COM_GPU_MEM_IDX", std::to_string(i)}}));
  }
}

std::string cgpu(const picture& cluster, bool details = false) {
  std::ostringstream out;
  print_cgpu(fleet(cluster), {}, details, out);
  return out.str();
}

TEST(inspect_cgpu, S63_equal_byte_for_byte_to_the_published_outputs) {
  picture empty, four, fourteen, two, eight;
  add_gpushare(empty, "cn-shanghai.192.168.6.104", "192.168.6.104", 1, 15, {});
  EXPECT_EQ(cgpu(empty), file("cgpu-1-card-empty.txt"));
  add_gpushare(four, "cn-hangzhou.10.207.173.253", "10.207.173.253", 1, 15, {3});
  EXPECT_EQ(cgpu(four), file("cgpu-1-card.txt"));
  add_gpushare(fourteen, "cn-beijing.192.168.1.105", "192.168.1.105", 1, 14, {3});
  EXPECT_EQ(cgpu(fourteen), file("cgpu-1-card-14.txt"));
  add_gpushare(two, "cn-shanghai.192.168.0.4", "192.168.0.4", 2, 7, {});
  EXPECT_EQ(cgpu(two), file("cgpu-2-cards.txt"));
  add_gpushare(eight, "192.168.3.4", "192.168.3.4", 8, 11, {4, 6, 10});
  add_gpushare(eight, "192.168.68.4", "192.168.68.4", 8, 10, {4, 0, 10, 9, 0, 10, 6, 6});
  EXPECT_EQ(cgpu(eight), file("cgpu-8-cards-2-nodes.txt"));
}

/// Words of each line; a rule is one word, however long.
std::vector<std::vector<std::string>> words(const std::string& text) {
  std::vector<std::vector<std::string>> out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto& row = out.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; cells >> cell;) row.push_back(cell.starts_with("---") ? "---" : cell);
  }
  return out;
}

/// In the published four-card samples the name, the address and two cells were replaced after printing (a documentation
/// address of other length, "15/15" in a column laid out for "0/15", an indented rule), so blanks say nothing there.
TEST(inspect_cgpu, S63_equal_word_for_word_to_the_published_four_card_samples) {
  picture binpack, spread;
  add_gpushare(binpack, "cn-shanghai.192.0.2.109", "192.0.2.109", 4, 15, {15, 9});
  EXPECT_EQ(words(cgpu(binpack)), words(file("cgpu-4-cards-binpack.txt")));
  EXPECT_THAT(cgpu(binpack), HasSubstr("\n24/60 (40%)\n"));
  add_gpushare(spread, "cn-shanghai.192.0.2.109", "192.0.2.109", 4, 15, {4, 4, 0, 4});
  EXPECT_EQ(words(cgpu(spread)), words(file("cgpu-4-cards-spread.txt")));
  EXPECT_THAT(cgpu(spread), HasSubstr("\n12/60 (20%)\n"));
}

TEST(inspect_cgpu, S63_who_has_the_memory_and_what_no_card_is_known_of) {
  picture cluster;
  add_gpushare(cluster, "node5", "10.202.115.1", 1, 7, {3});
  cluster.pods.put(pod("default", "new", "node5", {{"aliyun.com/gpu-mem", 2}}));
  EXPECT_EQ(cgpu(cluster),
            "NAME   IPADDRESS     GPU0(Allocated/Total)  PENDING(Allocated)  GPU Memory(GiB)\n"
            "node5  10.202.115.1  3/7                    2                   5/7\n" +
                std::string(29 + 20, '-') +
                "\n"
                "Allocated/Total GPU Memory In Cluster:\n"
                "5/7 (71%)\n");
  EXPECT_EQ(cgpu(cluster, true),
            "\n"
            "NAME:       node5\n"
            "IPADDRESS:  10.202.115.1\n"
            "\n"
            "NAME         NAMESPACE  GPU0(Allocated)  Pending(Allocated)\n"
            "binpack-0    default    3                0\n"
            "new          default    0                2\n"
            "Allocated :  5 (71%)\n"
            "Total :      7\n" +
                std::string(23 + 17 + 10, '-') +
                "\n\n\n"
                "Allocated/Total GPU Memory In Cluster:  5/7 (71%)\n");
}

TEST(inspect_cgpu, S63_our_shared_modes_are_in_it_in_gib) {
  small_cluster cluster;
  change(cluster, "gpu-1", [](auto& node) {
    node.cards = {card("GPU-0a", "T4", "Healthy", 0, 15360), card("GPU-1f", "T4", "Healthy", 1, 15360),
                  card("GPU-2e", "T4", "Healthy", 2, 15360), card("GPU-3d", "T4", "Healthy", 3, 15360)};
  });
  EXPECT_THAT(cgpu(cluster), HasSubstr("gpu-1  192.0.2.1  0/15                   2/15                   2/15"));
  EXPECT_THAT(cgpu(cluster), HasSubstr("\n4/60 (6%)\n"));
  EXPECT_EQ(cgpu(picture()), "NAME  IPADDRESS  GPU Memory(GiB)\n\nAllocated/Total GPU Memory In Cluster:\n0/0 (0%)\n");
}

TEST(inspect_cgpu, S63_called_by_its_name_the_program_is_it) {
  EXPECT_THAT(command_of("/usr/local/bin/kubectl-inspect-cgpu", {"-d", "gpu-1"}),
              ElementsAre("inspect", "nodes", "--compat", "cgpu", "-d", "gpu-1"));
  EXPECT_THAT(command_of("kubectl-quartermaster", {"inspect", "nodes"}), ElementsAre("inspect", "nodes"));
  EXPECT_THAT(command_of("quartermaster", {}), ElementsAre());
}

}  // namespace
}  // namespace cli
