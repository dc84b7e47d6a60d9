// Every answer about one cluster has the same numbers: `top`, `inspect`, `verify`, `report capacity`, the console and
// the metrics, over random clusters, next to an oracle that adds up what it drew itself.

#include <cstdlib>
#include <random>
#include <sstream>

#include "cli/console/given_twice.hpp"
#include "cli/console/overview.hpp"
#include "cli/console/views.hpp"
#include "cli/console/waiting.hpp"
#include "cli/console/walked_view.hpp"
#include "cli/explain/explain_pod.hpp"
#include "cli/explain/uncounted.hpp"
#include "cli/inspect/inspect_fleet.hpp"
#include "cli/top/top.hpp"
#include "cli/verify/verify.hpp"
#include "reconcilers/usage/allocation_metrics.hpp"
#include "test/cli/console/two_teams.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

using console_test::pod_of;
using nlohmann::json;

struct held_sum {
  std::int64_t cores = 0, memory_mib = 0;
  std::set<std::string> pods;
  friend bool operator==(const held_sum&, const held_sum&) = default;
  void add(const std::string& pod, std::int64_t more_cores, std::int64_t more_mib) {
    cores += more_cores, memory_mib += more_mib;
    pods.insert(pod);
  }
};

/// Nodes of every kind, and pods that schedulers bound or someone past them.
class random_cluster {
 public:
  explicit random_cluster(unsigned seed) : random_(seed) {
    begin(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
          cluster.cards);
    for (int i = 0, count = 2 + below(5); i < count; ++i) add_node("n" + std::to_string(i));
    for (int i = 0; i < 3; ++i) add_waiting();
    cluster.leader.ns = "quartermaster";
    commit(cluster.pods, cluster.nodes, cluster.policies, cluster.rules, cluster.quotas, cluster.old_quotas,
           cluster.cards);
    cluster.finish();
  }

  picture cluster;
  std::map<std::string, held_sum> by_node, by_namespace;
  std::map<std::string, std::set<std::string>> uncounted;               ///< pods by node
  std::map<std::string, std::map<std::string, std::int64_t>> requests;  ///< by node and key, as Kubernetes adds up
  std::set<std::string> closed;          ///< nodes that take no new pods: cordoned, not ready, or in a change of mode
  std::set<std::string> sick, cordoned;  ///< cards
  std::set<std::string> reported;        ///< nodes with an agent
  std::set<std::string> by_plugin;       ///< nodes whose plugin takes cards by a rule of its own
  std::set<std::string> changing;        ///< nodes
  std::map<std::string, std::int64_t> offered;              ///< whole cards, by node whose plugin offers those
  std::map<kube::object_key, kube::described_pod> waiting;  ///< pods that have no node

  bool has_module(const std::string& module) const {
    return std::ranges::any_of(cluster.nodes.all(), [&](const kube::node& node) {
      return node.labels.value_or("quartermaster.io/module", "") == module;
    });
  }

 private:
  static void begin(auto&... stores) { (stores.begin(), ...); }
  static void commit(auto&... stores) { (stores.commit(), ...); }
  int below(int most) { return std::uniform_int_distribution<int>(0, most - 1)(random_); }

  void add_node(const std::string& name) {
    const int cards = 1 + below(4), kind = below(4);
    auto node = kind == 0   ? extender_test::node(name, {{"nvidia.com/gpu.present", "true"}}, {})  // no mode, no plugin
                : kind == 1 ? extender_test::node(name,
                                                  {{"quartermaster.io/module", "pgpu"},
                                                   {"nvidia.com/gpu.memory", "16384"},
                                                   {"nvidia.com/gpu.product", "Tesla-T4"}},
                                                  {{"nvidia.com/gpu", cards}})
                            : extender_test::vgpu_node(name, cards);
    node.unschedulable = below(4) == 0;
    node.ready = below(5) == 0 ? kube::condition_status::no : kube::condition_status::yes;
    const bool is_changing = below(5) == 0, has_report = below(2) == 0;
    if (is_changing) node = extender_test::switching(node), changing.insert(name);
    if (below(4) == 0) node.taints.push_back({"dedicated", "x", "NoSchedule"});
    if (kind > 1) by_plugin.insert(name);
    if (is_changing || node.unschedulable || node.ready == kube::condition_status::no) closed.insert(name);
    for (int i = 0; i < cards; ++i)
      if (node.unschedulable) cordoned.insert(name + (has_report ? "-card-" : "/") + std::to_string(i));
    if (const int list = below(8); list < 3) {
      const auto card = name + (has_report ? "-card-" : "/") + std::to_string(below(cards));
      const auto text = list == 0 ? card : list == 1 ? "GPU-not-here, " + card : "GPU-not-here,GPU-nor-this";
      node.annotations = extender_test::packed({{"quartermaster.io/cordon", text}});
      if (list < 2) cordoned.insert(card);
    }
    cluster.nodes.put(node);
    if (has_report) report(name, cards);
    if (kind == 1) offered[name] = cards;
    if (kind == 1 && has_report && cards > 1 && below(3) == 0) {
      node.allocatable = {{"nvidia.com/gpu", --offered[name]}};  // its plugin has withdrawn a card
      node.resource_version = 2;
      cluster.nodes.put(node);
    }
    by_node[name];
    for (int i = below(5); i > 0 && kind > 0; --i) kind == 1 ? add_whole(name, cards) : add_share(name);
  }
  void report(const std::string& name, int cards) {
    reported.insert(name);
    auto all = json::array();
    for (int i = 0; i < cards; ++i) {
      const bool is_sick = below(5) == 0;
      if (is_sick) sick.insert(name + "-card-" + std::to_string(i));
      all.push_back({{"uuid", name + "-card-" + std::to_string(i)},
                     {"index", i},
                     {"model", "Tesla-T4"},
                     {"memoryMiB", 16384},
                     {"healthy", !is_sick},
                     {"health", is_sick ? "Unhealthy" : "Healthy"}});
    }
    auto made = extender_test::reported(name, all);
    made.mode.actual_mode = cluster.nodes.find({{}, name})->labels.value_or("quartermaster.io/module", "none");
    if (changing.contains(name) && below(2) == 0) made.mode.actual_mode = "none";  // its plugin has just gone
    made.mode.phase = "Ready";
    cluster.cards.put(made);
  }
  kube::pod made_pod(const std::string& node, std::int64_t cores, std::int64_t units) {
    return pod_of(below(2) == 0 ? "team-a" : "team-b", "p" + std::to_string(++made_), cores, units, node);
  }
  void add_share(const std::string& node) {
    const std::int64_t cores = 5 * (1 + below(12)), units = below(6) == 0 ? 0 : 1 + below(20);
    auto pod = made_pod(node, cores, units);
    const bool has_ended = below(8) == 0;
    if (has_ended) pod.phase = kube::pod_phase::succeeded;
    cluster.pods.put(pod);
    if (has_ended) return;
    requests[node]["tencent.com/vcuda-core"] += cores;
    requests[node]["tencent.com/vcuda-memory"] += units;
    if (units == 0)
      uncounted[node].insert(pod.key.to_string());
    else
      hold(pod, cores, units * 256);
  }
  void add_whole(const std::string& node, int cards) {
    const std::int64_t count = 1 + below(cards);
    auto pod = made_pod(node, 0, 0);
    pod.containers = {extender_test::container("main", {{"nvidia.com/gpu", count}})};
    cluster.pods.put(pod);
    requests[node]["nvidia.com/gpu"] += count;
    hold(pod, 100 * count, 16384 * count);
  }
  /// With all that a spec says of nodes.
  void add_waiting() {
    auto pod = made_pod("", 5 * (1 + below(20)), 1 + below(64));
    if (below(3) == 0) pod.containers = {extender_test::container("main", {{"nvidia.com/gpu", 1 + below(2)}})};
    cluster.pods.put(pod);
    kube::described_pod whole{pod};
    if (below(2) == 0) whole.rules.tolerations.push_back({"dedicated", "Exists", {}, {}});
    if (const int wish = below(6); wish < 3)
      whole.rules.selector["quartermaster.io/module"] = wish == 0 ? "vgpu" : wish == 1 ? "pgpu" : "nowhere";
    if (below(6) == 0) whole.rules.terms.emplace().push_back({{"kubernetes.io/hostname", "Exists", {}, false}});
    if (below(8) == 0) whole.gates = {"example.com/wait"};
    if (below(2) == 0)
      whole.scheduled = {"False", "Unschedulable",
                         below(2) == 0 ? "0/3 nodes are available: 3 Insufficient tencent.com/vcuda-core."
                                       : "0/3 nodes are available: 3 Insufficient cpu."};
    waiting.emplace(pod.key, std::move(whole));
  }
  void hold(const kube::pod& pod, std::int64_t cores, std::int64_t mib) {
    by_node[pod.node_name].add(pod.key.to_string(), cores, mib);
    by_namespace[pod.key.ns].add(pod.key.to_string(), cores, mib);
  }

  std::mt19937 random_;
  int made_ = 0;
};

json answer(const std::function<void(const listing_style&, std::ostream&)>& print, const char* list) {
  std::ostringstream out;
  print({"json", "en"}, out);
  return json::parse(out.str())[list];
}

/// "name{...namespace="team-a"...} 50": the sum by namespace.
std::map<std::string, std::int64_t> by_namespace_in(const std::string& page, const std::string& name) {
  std::map<std::string, std::int64_t> out;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(name + "{")) continue;
    const auto start = line.find("namespace=\"") + 11;
    out[line.substr(start, line.find('"', start) - start)] +=
        static_cast<std::int64_t>(std::stod(line.substr(line.rfind(' ') + 1)));
  }
  return out;
}

void compare_nodes(const random_cluster& drawn) {
  const auto& cluster = drawn.cluster;
  std::map<std::string, held_sum> top, cards, pods;
  for (const auto& row : answer([&](const auto& style, auto& out) { top_nodes(cluster, style, out); }, "nodes")) {
    const auto& expected = drawn.by_node.at(row["node"]);
    EXPECT_EQ(row["usedCores"], expected.cores) << row;
    EXPECT_EQ(row["usedMiB"], expected.memory_mib) << row;
    EXPECT_EQ(row["pods"], expected.pods.size()) << row;
  }
  for (const auto& row : answer([&](const auto& style, auto& out) { top_cards(cluster, style, out); }, "cards"))
    cards[row["node"]].cores += row["usedCores"].get<std::int64_t>(),
        cards[row["node"]].memory_mib += row["usedMiB"].get<std::int64_t>();
  for (const auto& row : answer([&](const auto& style, auto& out) { top_pods(cluster, "", style, out); }, "pods"))
    pods[row["node"]].add(row["namespace"].get<std::string>() + "/" + row["name"].get<std::string>(), row["cores"],
                          row["memoryMiB"]);
  for (const auto& [name, expected] : drawn.by_node) {
    EXPECT_EQ(cards[name].cores, expected.cores) << name;
    EXPECT_EQ(cards[name].memory_mib, expected.memory_mib) << name;
    EXPECT_EQ(pods[name], expected) << name;
    const auto view =
        console::node_view(cluster, console_test::two_teams::everyone(), *cluster.nodes.find({{}, name}), std::nullopt);
    held_sum card_sum;
    for (const auto& card : view["cards"])
      card_sum.cores += card["cores"].get<std::int64_t>(), card_sum.memory_mib += card["usedMiB"].get<std::int64_t>();
    EXPECT_EQ(card_sum.cores, expected.cores) << view["cards"];
    EXPECT_EQ(card_sum.memory_mib, expected.memory_mib) << view["cards"];
    for (const auto& resource : view["resources"]) {  // the row of `inspect nodes`
      const auto key = resource["name"].get<std::string>();
      const auto node = drawn.requests.find(name);
      const auto sum = node != drawn.requests.end() && node->second.contains(key) ? node->second.at(key) : 0;
      EXPECT_EQ(resource["requested"], sum) << name << " " << key;
    }
    std::set<std::string> named;
    for (const auto& entry : uncounted_pods(cluster, name)) named.insert(entry.pod.to_string());
    const auto wrong = drawn.uncounted.find(name);
    EXPECT_EQ(named, wrong == drawn.uncounted.end() ? std::set<std::string>() : wrong->second) << name;
  }
}

/// New pods may get a part of the card of a row of `top cards`.
bool is_usable(const random_cluster& drawn, const json& row) {
  const auto card = row["uuid"].get<std::string>();
  const bool is_given_out = row["healthy"].get<bool>() || row["heldBack"].get<bool>();
  return !drawn.closed.contains(row["node"]) && is_given_out && !drawn.cordoned.contains(card);
}

/// What is left for new pods, from the rows of `top cards`.
struct left_sum {
  std::int64_t cards = 0, cores = 0, memory_mib = 0, sick = 0, cordoned = 0;
  bool has_unusable = false;
  bool is_refused = false;  ///< its plugin would take a card that may not be used for the next pod with a whole one
};
std::map<std::string, left_sum> left_by_node(const random_cluster& drawn) {
  std::map<std::string, left_sum> out;
  const auto print = [&](const auto& style, auto& page) { top_cards(drawn.cluster, style, page); };
  auto rows = answer(print, "cards").get<std::vector<json>>();
  std::ranges::sort(rows, {},
                    [](const json& row) { return std::pair(row["node"].get<std::string>(), row["index"].get<int>()); });
  for (const auto& row : rows) {
    const auto card = row["uuid"].get<std::string>();
    auto& sum = out[row["node"]];
    const bool is_known = drawn.reported.contains(row["node"]);
    EXPECT_EQ(row["health"], drawn.sick.contains(card) ? "Unhealthy" : is_known ? "Healthy" : "Unknown") << row;
    sum.sick += row["healthy"].get<bool>() ? 0 : 1;
    sum.cordoned += drawn.cordoned.contains(card) ? 1 : 0;
    EXPECT_EQ(row["healthy"].get<bool>(), !drawn.sick.contains(card)) << row;
    // Where too many are sick at once, the operator still gives out some of them.
    EXPECT_TRUE(row["healthy"].get<bool>() ||
                row["heldBack"] == drawn.cluster.book->brake().holds_back(row["node"].get<std::string>()))
        << row;
    EXPECT_EQ(row["cordoned"], drawn.cordoned.contains(card)) << row;
    const bool is_untouched = row["shares"] == 0;
    if (!is_usable(drawn, row)) {
      sum.has_unusable = true;
      if (is_untouched && drawn.by_plugin.contains(row["node"])) sum.is_refused = true;
      continue;
    }
    sum.cards += is_untouched && !sum.is_refused ? 1 : 0;
    sum.cores += std::max<std::int64_t>(100 - row["usedCores"].get<std::int64_t>(), 0);
    sum.memory_mib += std::max<std::int64_t>(16384 - row["usedMiB"].get<std::int64_t>(), 0);
  }
  for (const auto& [name, number] : drawn.offered) {
    const auto sums = drawn.requests.find(name);
    const auto rest = sums == drawn.requests.end() ? number : number - sums->second.at("nvidia.com/gpu");
    out[name].cards = std::clamp<std::int64_t>(rest, 0, out[name].cards);
  }
  return out;
}

/// Of a resource in a row of `inspect nodes`, as Kubernetes and the cards have it, whichever is less.
std::int64_t free_of(const json& resource, const left_sum& left) {
  const std::map<std::string, std::int64_t> by_key{{"nvidia.com/gpu", left.cards},
                                                   {"tencent.com/vcuda-core", left.cores},
                                                   {"tencent.com/vcuda-memory", (left.memory_mib + 255) / 256}};
  const auto offered = resource["allocatable"].get<std::int64_t>() - resource["asked"].get<std::int64_t>();
  return std::clamp<std::int64_t>(offered, 0, by_key.at(resource["name"]));
}

/// Some share gets a place on the node.
bool takes_some_share(const picture& cluster, const std::string& node) {
  for (std::int64_t cores = 5; cores <= 100; cores += 5)
    for (const std::int64_t units : {1, 4, 8, 16, 32, 48, 64}) {
      const auto pod = extender_test::share("tried", cores, units);
      const reconcilers::extender::pod_request request(pod, cluster.book->keys());
      if (cluster.book->try_on(pod, request, node).held) return true;
    }
  return false;
}

/// FREE of a resource in a row of `inspect nodes`.
void compare_resource(const random_cluster& drawn, const std::string& node, const json& resource,
                      const left_sum& left) {
  const auto most = free_of(resource, left);
  if (drawn.closed.contains(node) || !left.has_unusable || !drawn.by_plugin.contains(node)) {
    EXPECT_EQ(resource["free"], most) << node << resource;
    return;
  }
  EXPECT_LE(resource["free"].get<std::int64_t>(), most) << node << resource;
  const auto offered = resource["allocatable"].get<std::int64_t>() - resource["asked"].get<std::int64_t>();
  if (resource["name"] == "tencent.com/vcuda-core" && offered > 0)
    EXPECT_EQ(resource["free"] > 0, takes_some_share(drawn.cluster, node)) << node << resource;
}

/// Free is what a new pod can get right now: `inspect nodes`, `top nodes`, `report capacity` and the tiles agree, and
/// count sick and cordoned cards by themselves.
void compare_free(const random_cluster& drawn) {
  const auto& cluster = drawn.cluster;
  const auto left = left_by_node(drawn);
  left_sum all;
  for (const auto& row : answer([&](const auto& style, auto& page) { top_nodes(cluster, style, page); }, "nodes")) {
    const auto match = left.find(row["node"]);
    const auto expected = match == left.end() ? left_sum() : match->second;
    EXPECT_EQ(row["freeCards"], expected.cards) << row;
    EXPECT_EQ(row["sickCards"], expected.sick) << row;
    EXPECT_EQ(row["cordonedCards"], expected.cordoned) << row;
    all.cards += expected.cards, all.sick += expected.sick, all.cordoned += expected.cordoned;
  }
  std::ostringstream page;
  look_options style;
  style.output = "json";
  print(node_rows(fleet(cluster)), style, page);
  for (const auto& row : json::parse(page.str())["nodes"]) {
    const auto match = left.find(row["name"]);
    for (const auto& resource : row["resources"]) {
      if (match == left.end())
        EXPECT_EQ(resource["free"], 0) << row;
      else
        compare_resource(drawn, row["name"], resource, match->second);
      if (drawn.closed.contains(row["name"])) EXPECT_EQ(resource["free"], 0) << row;
    }
    if (match == left.end()) continue;
    EXPECT_EQ(row["cordonedCards"], match->second.cordoned) << row;
    if (!row["unhealthyCards"].is_null()) EXPECT_EQ(row["unhealthyCards"], match->second.sick) << row;
  }
  const auto viewer = console_test::two_teams::everyone();
  left_sum capacity;
  const auto view = console::capacity_view(cluster, viewer, {}, {});
  for (const auto& row : view["models"]) {
    capacity.cards += row["free"].get<std::int64_t>();
    capacity.sick += row["unhealthy"].get<std::int64_t>();
    capacity.cordoned += row["cordoned"].get<std::int64_t>();
  }
  EXPECT_EQ(capacity.cards, all.cards) << view;
  EXPECT_EQ(capacity.sick, all.sick) << view;
  EXPECT_EQ(capacity.cordoned, all.cordoned) << view;
  EXPECT_EQ(console::overview_view(cluster, viewer, {})["gpus"]["free"], all.cards);
}

void compare_sums(const random_cluster& drawn) {
  const auto& cluster = drawn.cluster;
  const auto viewer = console_test::two_teams::everyone();
  controller::metric_text text;
  reconcilers::usage::write_allocation_metrics(
      true, *cluster.book, cluster.pods, [](std::string_view) { return std::string(); }, nullptr, text);
  const auto page = text.take();
  auto cores = by_namespace_in(page, "quartermaster_allocated_cores"),
       bytes = by_namespace_in(page, "quartermaster_allocated_memory_bytes");
  for (const auto& [ns, expected] : drawn.by_namespace) {
    EXPECT_EQ(cores[ns], expected.cores) << ns;
    EXPECT_EQ(bytes[ns], expected.memory_mib << 20) << ns;
  }
  std::int64_t usable_cores = 0, capacity_cores = 0;
  for (const auto& row : answer([&](const auto& style, auto& out) { top_cards(cluster, style, out); }, "cards"))
    if ((row["healthy"].get<bool>() || row["heldBack"].get<bool>()) && !row["cordoned"].get<bool>())
      usable_cores += row["usedCores"].get<std::int64_t>();
  const auto capacity = console::capacity_view(cluster, viewer, {}, {});
  for (const auto& row : capacity["models"]) capacity_cores += row["usedCores"].get<std::int64_t>();
  EXPECT_EQ(capacity_cores, usable_cores) << capacity;
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> fleet;  // cores and MiB
  const auto view = console::fleet_view(cluster, viewer, {0, 1000});
  for (const auto& row : view["nodes"])
    for (const auto& card : row[4]) {
      auto& [node_cores, node_mib] = fleet[row[0]];
      node_cores += card[3].get<std::int64_t>();
      node_mib += card[4].get<std::int64_t>();
    }
  for (const auto& [name, expected] : drawn.by_node)
    EXPECT_EQ(fleet[name], std::pair(expected.cores, expected.memory_mib)) << view;
}

/// The numbers of the console's first screen are those of `inspect nodes`, `top cards`, `report capacity` and `verify`.
void compare_overview(const random_cluster& drawn) {
  const auto& cluster = drawn.cluster;
  const auto overview = console::overview_view(cluster, console_test::two_teams::everyone(), {});
  std::int64_t total = 0, without_mode = 0, unhealthy = 0, cores = 0, free = 0;
  std::ostringstream out;
  look_options style;
  style.output = "json";
  print(node_rows(fleet(cluster)), style, out);
  for (const auto& row : json::parse(out.str())["nodes"]) {
    const auto cards = row["cards"].is_null() ? 0 : row["cards"].get<std::int64_t>();
    total += cards;
    if (row["mode"] == "none") without_mode += cards;
    if (!row["unhealthyCards"].is_null()) unhealthy += row["unhealthyCards"].get<std::int64_t>();
  }
  for (const auto& row : answer([&](const auto& form, auto& page) { top_cards(cluster, form, page); }, "cards"))
    cores += row["usedCores"].get<std::int64_t>();
  const auto capacity = console::capacity_view(cluster, console_test::two_teams::everyone(), {}, {});
  for (const auto& row : capacity["models"])
    if (row["mode"] != "") free += row["free"].get<std::int64_t>();
  const auto& gpus = overview["gpus"];
  EXPECT_EQ(gpus["total"], total);
  EXPECT_EQ(gpus["withoutMode"], without_mode);
  EXPECT_EQ(gpus["unhealthy"], unhealthy);
  EXPECT_EQ(gpus["allocatedCores"], cores);
  EXPECT_EQ(gpus["free"], free);
  std::ostringstream walked;
  const auto report = reconcilers::verify::walk(console::walked_view(cluster));
  verify_options verify_style;
  verify_style.output = "json";
  print(report, verify_style, walked);
  EXPECT_EQ(overview["health"]["problems"].get<std::int64_t>(),
            json::parse(walked.str())["problems"].get<std::int64_t>());
}

/// The mode of a node, and how a change of it is written.
void compare_modes(const random_cluster& drawn) {
  const auto& cluster = drawn.cluster;
  std::map<std::string, std::string> modes;
  for (const auto& row : answer([&](const auto& style, auto& out) { top_nodes(cluster, style, out); }, "nodes"))
    modes[row["node"]] = row["mode"];
  std::ostringstream top, inspected;
  top_nodes(cluster, {"table", "en"}, top);
  print(node_rows(fleet(cluster)), look_options(), inspected);
  for (const auto& row : node_rows(fleet(cluster)))
    if (const auto match = modes.find(row.name); match != modes.end())
      EXPECT_EQ(row.mode, match->second.empty() ? "none" : match->second) << row.name;
  for (const auto& name : drawn.changing) {
    const auto line = testing::ContainsRegex(name + " +vgpu -> pgpu ");
    if (modes.contains(name)) EXPECT_THAT(top.str(), line);
    EXPECT_THAT(inspected.str(), line);
  }
}

/// Why a pod waits, as the console and as `explain pod` have it. Returns how many nodes were closed to pods.
/// @param refused counts pods that kube-scheduler refused before they fitted
std::size_t compare_waiting(const random_cluster& drawn, std::size_t& refused) {
  const auto& cluster = drawn.cluster;
  const auto known = resources_of(cluster);
  std::size_t all_closed = 0;
  for (const auto& [key, whole] : drawn.waiting) {
    SCOPED_TRACE(key.to_string());
    std::ostringstream out, err;
    explain_pod(cluster, key, {"json", "en"}, out, err, whole);
    const auto explained = json::parse(out.str());
    const json row(
        console::waiting_reason(cluster, known, console_test::two_teams::everyone(), *cluster.pods.find(key), &whole));
    if (explained.contains("unknown")) {
      EXPECT_EQ(row["kind"], "unknown_resource");
      EXPECT_EQ(row["reason"]["en"], explained["unknown"]);
      continue;
    }
    EXPECT_EQ(row["nodes"], explained["explanation"]["nodes"]);
    EXPECT_EQ(row["fitting"], explained["explanation"]["fitting"]);
    EXPECT_EQ(row["refusedBefore"], explained["refusedBefore"]);
    const auto early = row["refusedBefore"].is_null() ? std::string() : row["refusedBefore"].get<std::string>();
    refused += early.empty() ? 0 : 1;
    EXPECT_TRUE(early.empty() || row["reason"]["en"].get<std::string>().contains(early)) << row;
    std::map<std::string, std::size_t> closed;
    for (const auto& entry : row["closed"]) {
      const auto reason = entry["reason"]["en"].get<std::string>();
      closed[reason] = entry["nodes"];
      all_closed += closed[reason];
      const bool is_tolerated = !whole.rules.tolerations.empty();
      EXPECT_FALSE(reason.contains("dedicated=x:NoSchedule") && is_tolerated) << row;
    }
    EXPECT_EQ(json(closed), explained["closed"]);
    EXPECT_EQ(row["changes"].size(), explained["changes"].size()) << row << explained;
    for (std::size_t i = 0; i < std::min(row["changes"].size(), explained["changes"].size()); ++i) {
      EXPECT_EQ(row["changes"][i]["kind"], explained["changes"][i]["kind"]);
      EXPECT_EQ(row["changes"][i]["text"]["en"], explained["changes"][i]["text"]);
      EXPECT_EQ(row["changes"][i]["command"], explained["changes"][i]["command"]);
    }
    bool is_held_back = false;
    for (const auto& entry : explained["obstacles"])
      if (entry["code"] == "gated" || entry["code"] == "selector") {
        is_held_back = true;
        EXPECT_THAT(row["reason"]["en"].get<std::string>(), testing::HasSubstr(entry["text"].get<std::string>()));
      }
    EXPECT_EQ(row["kind"] == "held_back", is_held_back) << row;
    const auto wish = whole.rules.selector.find("quartermaster.io/module");
    const bool is_nowhere = wish != whole.rules.selector.end() && !drawn.has_module(wish->second);
    EXPECT_EQ(is_held_back, is_nowhere || !whole.gates.empty()) << explained;
  }
  return all_closed;
}

/// Of a pod, as its object alone says it; `card` is the index that its plugin recorded, or -1.
struct pod_facts {
  std::int64_t cores = 0, memory_mib = 0, wholes = 0;
  int card = -1;
};
pod_facts facts_in(const kube::pod& pod) {
  pod_facts out;
  for (const auto& container : pod.containers)
    for (const auto& [key, amount] : container.limits) {
      if (key == "tencent.com/vcuda-core") out.cores += amount;
      if (key == "tencent.com/vcuda-memory") out.memory_mib += amount * 256;
      if (key == "nvidia.com/gpu") out.wholes += amount;
    }
  const auto index = pod.annotations.value_or("tencent.com/predicate-gpu-idx-0", "");
  if (!index.empty()) out.card = std::stoi(std::string(index));
  return out;
}

/// What `explain pod` says that a bound pod holds: the whole of its limits, on the card that is on record, or on cards
/// of its node.
void compare_pods(const picture& cluster) {
  for (const auto& pod : cluster.pods.all()) {
    SCOPED_TRACE(pod.key.to_string());
    if (pod.phase == kube::pod_phase::succeeded || pod.node_name.empty()) continue;
    const auto facts = facts_in(pod);
    std::ostringstream out, err;
    EXPECT_EQ(explain_pod(cluster, pod.key, {"json", "en"}, out, err), 0) << err.str();
    const auto answer = json::parse(out.str());
    EXPECT_EQ(answer["node"], pod.node_name);
    EXPECT_EQ(answer["waits"], false);
    if (facts.wholes == 0 && facts.memory_mib == 0) {
      EXPECT_TRUE(answer["holds"].empty() && answer.contains("unread")) << answer << " cores without memory";
      const auto named =
          words::english("uncounted.pod", {{"pod", pod.key.to_string()}, {"reason", answer.value("unread", "")}});
      std::vector<std::string> texts;
      for (const auto& entry : uncounted_pods(cluster, pod.node_name))
        texts.push_back(words_of(entry.text(), text::language::en));
      EXPECT_THAT(texts, testing::Contains(named)) << "in the words of `verify`";
      continue;
    }
    std::set<std::string> cards;
    std::int64_t wholes = 0, cores = 0, memory_mib = 0;
    for (const auto& row : answer["holds"]) {
      EXPECT_EQ(row["container"], "main");
      const auto card = row["card"].get<std::string>();
      EXPECT_TRUE(cards.insert(card).second) << "a part of a card for each row: " << answer;
      EXPECT_TRUE(card.starts_with(pod.node_name)) << answer;
      if (facts.card >= 0) EXPECT_TRUE(card.ends_with("/" + std::to_string(facts.card))) << answer;
      if (row["whole"] == true)
        ++wholes;
      else
        cores += row["cores"].get<std::int64_t>(), memory_mib += row["memoryMiB"].get<std::int64_t>();
    }
    EXPECT_EQ(wholes, facts.wholes) << answer;
    EXPECT_EQ(cores, facts.cores) << answer;
    EXPECT_EQ(memory_mib, facts.memory_mib) << answer;
    EXPECT_EQ(answer["source"] == "guessed", facts.card < 0) << answer;
  }
}

/// Nodes whose plugin recorded the card of most pods: someone placed some of them past the extender.
class recorded_cluster {
 public:
  explicit recorded_cluster(unsigned seed) : random_(seed) {
    const auto all = [&](auto&& step) {
      step(cluster.pods), step(cluster.nodes), step(cluster.policies), step(cluster.rules), step(cluster.quotas),
          step(cluster.old_quotas), step(cluster.cards);
    };
    all([](auto& store) { store.begin(); });
    for (int i = 0, count = 1 + below(4); i < count; ++i) add_node("n" + std::to_string(i));
    all([](auto& store) { store.commit(); });
    cluster.finish();
  }
  picture cluster;

 private:
  int below(int most) { return std::uniform_int_distribution<int>(0, most - 1)(random_); }
  void add_node(const std::string& name) {
    const int cards = 1 + below(3);
    const bool has_guesses = below(3) == 0;
    cluster.nodes.put(extender_test::vgpu_node(name, cards));
    for (int i = below(4 * cards + 1); i > 0; --i) {
      const std::int64_t cores = 5 * (1 + below(12)), units = below(12) == 0 ? 80 : 1 + below(24);
      auto pod = pod_of(below(2) == 0 ? "team-a" : "team-b", "p" + std::to_string(++made_), cores, units, name);
      if (!has_guesses || below(3) > 0)
        pod = extender_test::annotated(pod, {{"tencent.com/gpu-assigned", "true"},
                                             {"tencent.com/predicate-gpu-idx-0", std::to_string(below(cards))}});
      if (below(8) == 0) pod.phase = kube::pod_phase::succeeded;
      cluster.pods.put(pod);
    }
  }
  std::mt19937 random_;
  int made_ = 0;
};

struct card_load {
  std::int64_t cores = 0, memory_mib = 0, count = 0;
  std::set<std::string> pods;
  bool is_beyond() const { return cores > 100 || memory_mib > 16384 || count > 16; }
};

/// What `verify` calls overbooked. Where every card is on record it is exactly what the objects add up to; where some
/// are guesses, a card that is on record with too much is named all the same, and no other without a share that is
/// larger than a card. Returns how many were named.
std::size_t compare_overbooked(const picture& cluster) {
  std::size_t all = 0;
  for (const auto& node : cluster.nodes.all()) {
    const auto& name = node.key.name;
    SCOPED_TRACE(name);
    std::map<std::string, card_load> recorded;  // by card
    std::set<std::string> larger;               // pods without a record that no card can have
    bool has_guesses = false;
    for (const auto& pod : cluster.pods.all()) {
      if (pod.node_name != name || pod.phase == kube::pod_phase::succeeded) continue;
      const auto facts = facts_in(pod);
      if (facts.card < 0) {
        has_guesses = true;
        if (facts.memory_mib > 16384) larger.insert(pod.key.to_string());
        continue;
      }
      auto& load = recorded[name + "/" + std::to_string(facts.card)];
      load.cores += facts.cores, load.memory_mib += facts.memory_mib, ++load.count;
      load.pods.insert(pod.key.to_string());
    }
    std::map<std::string, std::string> named;  // pods by card
    for (const auto& text : console::given_twice(cluster, name).certain) {
      const auto gap = text.find(" (");
      named[text.substr(0, gap)] = text.substr(gap + 2, text.size() - gap - 3);
    }
    all += named.size();
    for (const auto& [card, load] : recorded) {
      EXPECT_TRUE(named.contains(card) || !load.is_beyond()) << card << " is on record with " << load.cores << " cores";
      std::string pods;
      for (const auto& pod : load.pods) pods += (pods.empty() ? "" : ", ") + pod;
      if (!has_guesses && named.contains(card)) EXPECT_EQ(named[card], pods) << card;
    }
    for (const auto& [card, pods] : named) {
      const bool has_larger = std::ranges::any_of(larger, [&](const auto& pod) { return pods.contains(pod); });
      EXPECT_TRUE(recorded[card].is_beyond() || has_larger) << card << " (" << pods << ")";
    }
  }
  return all;
}

TEST(agreement, explain_pod_and_what_is_overbooked_are_what_the_objects_add_up_to) {
  const char* seed_text = std::getenv("QM_SEED");
  const unsigned first = seed_text ? static_cast<unsigned>(std::stoul(seed_text)) : 1;
  std::size_t overbooked = 0;
  for (unsigned seed = first; seed < first + 100; ++seed) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed));
    compare_pods(random_cluster(seed).cluster);
    const recorded_cluster drawn(seed);
    compare_pods(drawn.cluster);
    overbooked += compare_overbooked(drawn.cluster);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(overbooked, 30U) << "the test drew nothing to find";
}

TEST(agreement, every_answer_about_a_cluster_has_the_numbers_of_an_oracle) {
  const char* seed_text = std::getenv("QM_SEED");
  const unsigned first = seed_text ? static_cast<unsigned>(std::stoul(seed_text)) : 1;
  std::size_t held_back = 0, closed = 0, refused = 0;
  for (unsigned seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE("QM_SEED=" + std::to_string(seed));
    const random_cluster drawn(seed);
    held_back += drawn.cluster.book->brake().held();
    compare_nodes(drawn);
    compare_free(drawn);
    compare_sums(drawn);
    compare_overview(drawn);
    compare_modes(drawn);
    closed += compare_waiting(drawn, refused);
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(refused, 0U) << "no pod fits that was refused before";
  EXPECT_GT(closed, 10U) << "no node was closed to a pod that waits";
  EXPECT_GT(held_back, 0U) << "no cluster was drawn with sick cards that still get pods";
}

}  // namespace
}  // namespace cli
