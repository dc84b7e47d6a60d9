#include "cli/console/views.hpp"

#include <chrono>
#include <fstream>

#include "cli/console/overview.hpp"
#include "cli/console/shares.hpp"
#include "cli/console/waiting.hpp"
#include "cli/console/walked_view.hpp"
#include "test/cli/console/two_teams.hpp"
#include "test/words.hpp"

namespace cli::console {
namespace {

using console_test::hostile_name;
using console_test::two_teams;
using extender_test::vgpu_node;
using testing::HasSubstr;
using testing::Not;

struct views : two_teams {
  ordered_json seen(const viewer& viewer, const std::string& node, const api::agent_report& report = {}) {
    return node_view(cluster, viewer, *cluster.nodes.find({{}, node}), report);
  }
  /// A node, and the first of the pods that wait, for which it has too few cores.
  void add_half_full() {
    cluster.nodes.put(vgpu_node("gpu-4", 1));
    cluster.pods.put(console_test::pod_of("team-a", "half", 60, 8, "gpu-4"));
    cluster.pods.put(console_test::pod_of("team-a", "0-large", 90, 8));
  }
  ordered_json waiting(const viewer& viewer, std::string_view ns, page_range range) const {
    const auto known = resources_of(cluster);
    const auto page = waiting_pods(cluster, known, viewer, ns, range);
    std::map<kube::object_key, ordered_json> reasons;
    for (const auto& pod : page.pods) reasons[pod] = waiting_reason(cluster, known, viewer, *cluster.pods.find(pod));
    return waiting_view(page, std::move(reasons));
  }
  ordered_json reasons(const viewer& viewer) const {
    const auto known = resources_of(cluster);
    const auto questions = waiting_questions(cluster, known, viewer);
    std::vector<ordered_json> found;
    for (const auto& question : questions)
      found.push_back(waiting_reason(cluster, known, viewer, *cluster.pods.find(question.pods.front())));
    return reasons_view(questions, found);
  }
  /// Every view, as one text.
  std::string all(const viewer& viewer) {
    read();
    ordered_json out =
        ordered_json::array({me_view(cluster, viewer, false), overview_view(cluster, viewer, {}), reasons(viewer),
                             fleet_view(cluster, viewer, {0, 5000}), waiting(viewer, "", {0, 200}),
                             holders_view(cluster, viewer, "", {0, 200}, {}, {}), namespaces_view(cluster, viewer, {}),
                             declarations_view(cluster, viewer, {}), capacity_view(cluster, viewer, {}, {})});
    for (const auto* node : {"gpu-1", "gpu-2", "gpu-3"}) out.push_back(seen(viewer, node));
    return out.dump();
  }
};

TEST_F(views, the_fleet_shows_every_card_with_its_shares) {
  read();
  const auto view = fleet_view(cluster, everyone(), {0, 5000});
  EXPECT_EQ(view["total"], 3);
  EXPECT_EQ(view["namespaces"], ordered_json({"team-a", "team-b"}));
  const auto& node = view["nodes"][0];
  EXPECT_EQ(node[0], "gpu-1");
  EXPECT_EQ(view["modes"][node[1].get<int>()], "vgpu");
  const auto& card = node[4][0];
  EXPECT_EQ(card[1], 16384);
  EXPECT_EQ(card[3], 80) << "cores that are given out";
  EXPECT_EQ(card[4], 8192) << "MiB";
  EXPECT_EQ(card[5], ordered_json::parse("[[50,4096,0],[30,4096,1]]"));
  EXPECT_EQ(view["nodes"][2][3].get<int>() & 4, 4) << "gpu-3 changes its mode";
}

TEST_F(views, a_share_of_others_is_in_use_and_has_no_name) {
  read();
  const auto view = fleet_view(cluster, team_a(), {0, 5000});
  EXPECT_EQ(view["namespaces"], ordered_json({"team-a"}));
  EXPECT_EQ(view["nodes"][0][4][0][5], ordered_json::parse("[[50,4096,0],[30,4096,-1]]"));
}

TEST_F(views, a_page_of_the_fleet) {
  read();
  const auto view = fleet_view(cluster, everyone(), {1, 1});
  EXPECT_EQ(view["total"], 3);
  EXPECT_EQ(view["offset"], 1);
  ASSERT_EQ(view["nodes"].size(), 1u);
  EXPECT_EQ(view["nodes"][0][0], "gpu-2");
  EXPECT_EQ(fleet_view(cluster, everyone(), {9, 1})["nodes"].size(), 0u);
}

TEST_F(views, no_view_tells_one_team_of_the_other) {
  EXPECT_THAT(all(everyone()), HasSubstr("secret-1")) << "the test sees what it looks for";
  const auto text = all(team_a());
  EXPECT_THAT(text, Not(HasSubstr("secret")));
  EXPECT_THAT(text, Not(HasSubstr("team-b")));
  EXPECT_THAT(text, HasSubstr("mine-1"));
}

TEST_F(views, who_may_not_list_nodes_reads_no_node_name) {
  auto viewer = team_a();
  viewer.nodes = false;
  read();
  for (const auto& view : {me_view(cluster, viewer, false), waiting(viewer, "", {0, 200}),
                           namespaces_view(cluster, viewer, {}), declarations_view(cluster, viewer, {})})
    EXPECT_THAT(view.dump(), Not(HasSubstr("gpu-")));
  EXPECT_THAT(waiting(team_a(), "", {0, 200}).dump(), HasSubstr("gpu-"));
}

/// As `explain pod` answers; agreement_test.cpp compares them on random clusters.
TEST_F(views, what_a_pod_says_of_nodes_is_a_reason_to_wait) {
  cluster.nodes.put(vgpu_node("gpu-4", 1));
  const auto pod = console_test::pod_of("team-a", "choosy", 20, 8);
  cluster.pods.put(pod);
  read();
  const auto known = resources_of(cluster);
  kube::described_pod whole{pod};
  const auto reason = [&] { return waiting_reason(cluster, known, team_a(), pod, &whole); };
  EXPECT_EQ(reason()["kind"], "other") << "it fits, and nothing is closed to it";
  EXPECT_EQ(reason()["closed"], ordered_json::array());
  const auto question = question_of(team_a(), pod, &whole);

  EXPECT_TRUE(reason()["refusedBefore"].is_null());
  whole.scheduled = {"False", "Unschedulable", "0/1 nodes are available: 1 Insufficient tencent.com/vcuda-core."};
  EXPECT_EQ(reason()["refusedBefore"], "tencent.com/vcuda-core");
  EXPECT_THAT(reason()["reason"]["zh"].get<std::string>(), HasSubstr("tencent.com/vcuda-core"));
  EXPECT_NE(question_of(team_a(), pod, &whole), question) << "what was kept for others of its kind is no answer for it";
  whole.scheduled.reset();

  whole.rules.terms.emplace().push_back({{"zone", "In", {"b"}, false}});
  EXPECT_EQ(reason()["kind"], "closed");
  const auto closed = reason()["closed"];
  ASSERT_EQ(closed.size(), 1U) << closed;
  EXPECT_EQ(closed[0]["nodes"], 2);
  EXPECT_EQ(closed[0]["reason"]["zh"], words::chinese("explain.closed_by.affinity"));
  EXPECT_THAT(reason()["reason"]["zh"].get<std::string>(), HasSubstr(words::chinese("explain.closed_by.affinity")));
  EXPECT_NE(question_of(team_a(), pod, &whole), question) << "pods that wait for the same are looked at once";

  whole.rules = {};
  whole.rules.selector = {{"quartermaster.io/module", "gold"}};
  auto blind = team_a();
  blind.nodes = false;
  for (const auto& viewer : {team_a(), blind}) {
    const auto held = waiting_reason(cluster, known, viewer, pod, &whole);
    EXPECT_EQ(held["kind"], "held_back");
    EXPECT_THAT(held["reason"]["en"].get<std::string>(), HasSubstr("quartermaster.io/module=gold"));
    EXPECT_EQ(held["reason"]["en"].get<std::string>().contains("=vgpu"), viewer.nodes)
        << "labels of nodes are for who may list them";
  }
  whole.rules = {};
  whole.gates = {"example.com/wait"};
  EXPECT_EQ(reason()["kind"], "held_back");
  EXPECT_THAT(reason()["reason"]["zh"].get<std::string>(), HasSubstr("example.com/wait"));
}

TEST_F(views, a_change_of_mode_has_its_steps_and_what_blocks_it) {
  read();
  const auto change = seen(team_a(), "gpu-3")["change"];
  EXPECT_EQ(change["source"], "vgpu");
  EXPECT_EQ(change["target"], "pgpu");
  EXPECT_EQ(change["step"], "Draining");
  EXPECT_EQ(change["steps"][0]["state"], "done");
  EXPECT_EQ(change["steps"][1]["state"], "now");
  EXPECT_EQ(change["steps"][5]["state"], "later");
  EXPECT_EQ(change["blockers"], ordered_json::parse(R"([{"namespace":"team-a","name":"mine-3"}])"));
  EXPECT_EQ(change["hiddenBlockers"], 1);
  EXPECT_TRUE(seen(team_a(), "gpu-3")["message"].is_null());
  EXPECT_TRUE(seen(everyone(), "gpu-3")["message"].contains("zh"));
  EXPECT_TRUE(seen(everyone(), "gpu-1")["change"].is_null());
}

TEST_F(views, a_change_that_is_stuck_says_at_which_step) {
  auto stuck = *cluster.cards.find({{}, "gpu-3"});
  stuck.mode.phase = "Stuck";
  cluster.cards.put(stuck);
  read();
  const auto change = seen(everyone(), "gpu-3")["change"];
  EXPECT_EQ(change["stuck"], true);
  EXPECT_EQ(change["step"], "Draining") << "the old label is still there";
}

TEST_F(views, a_waiting_pod_has_reason_and_smallest_change) {
  read();
  const auto view = waiting(everyone(), "team-a", {0, 200});
  ASSERT_EQ(view["total"], 1);
  const auto& pod = view["pods"][0];
  EXPECT_EQ(pod["name"], hostile_name) << "a text, for the page to put there as text";
  EXPECT_EQ(pod["kind"], "fits_nowhere");
  EXPECT_EQ(pod["asks"]["tencent.com/vcuda-core"], 90);
  EXPECT_THAT(pod["changeOfNode"]["text"]["en"].get<std::string>(), HasSubstr("gpu-"));
  ASSERT_GT(pod["causes"].size(), 0u);
  const std::string code = pod["causes"][0]["code"];
  EXPECT_EQ(pod["causes"][0]["reason"]["en"], words::english("engine.reason." + code));
  EXPECT_EQ(pod["causes"][0]["reason"]["zh"], words::chinese("engine.reason." + code));
}

TEST_F(views, a_change_that_would_place_a_pod_has_code_and_amounts_and_words_without_a_node) {
  add_half_full();
  read();
  auto viewer = team_a();
  viewer.nodes = false;
  const auto pod = waiting(viewer, "team-a", {0, 1})["pods"][0];
  EXPECT_EQ(pod["name"], "0-large");
  const auto& change = pod["changeOfPod"];
  EXPECT_EQ(change["code"], "lower");
  EXPECT_EQ(change["key"], "tencent.com/vcuda-core");
  EXPECT_EQ(change["container"], "main");
  EXPECT_EQ(change["current"], 90);
  EXPECT_EQ(change["amount"], 40);
  const std::vector<text::parameter> parameters{
      {"key", "tencent.com/vcuda-core"}, {"container", "main"}, {"current", "90"}, {"amount", "40"}, {"place", ""}};
  EXPECT_EQ(change["text"]["en"],
            text::filled(text::pattern_of("engine.change.lower", text::language::en), parameters));
  EXPECT_EQ(change["text"]["zh"],
            text::filled(text::pattern_of("engine.change.lower", text::language::zh), parameters));
  EXPECT_TRUE(pod["changeOfNode"].is_null());
  const auto whole = waiting(everyone(), "team-a", {0, 1})["pods"][0];
  EXPECT_EQ(whole["changeOfNode"]["code"], "free_cores");
  EXPECT_EQ(whole["changeOfNode"]["amount"], 50);
  EXPECT_THAT(whole["changeOfPod"]["text"]["en"].get<std::string>(), HasSubstr("gpu-4"));
}

TEST_F(views, a_module_that_is_off_is_what_a_pod_waits_for) {
  auto pod = console_test::pod_of("team-a", "whole", 1, 1);
  pod.containers = {extender_test::container("main", {{"nvidia.com/gpu", 1}})};
  cluster.pods.put(pod);
  read();
  const auto rows = waiting(team_a(), "", {0, 200})["pods"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["unserved"], ordered_json::array());
  EXPECT_THAT(rows[1]["unserved"][0]["en"].get<std::string>(),
              HasSubstr(words::english(
                  "explain.unserved.off",
                  {{"module", "pgpu"}, {"label", words::english("explain.unserved.label", {{"value", "pgpu"}})}})));
}

TEST_F(views, a_node_that_is_refused_or_whose_card_is_given_out_twice_has_a_flag) {
  auto report = *cluster.cards.find({{}, "gpu-3"});
  report.mode.phase = "Refused";
  cluster.cards.put(report);
  cluster.pods.put(console_test::pod_of("team-a", "forced", 90, 8, "gpu-1"));
  read();
  const auto nodes = fleet_view(cluster, everyone(), {0, 5000})["nodes"];
  EXPECT_EQ(nodes[0][3].get<int>() & (32 | 64), 64);
  EXPECT_EQ(nodes[1][3].get<int>() & (32 | 64), 0);
  EXPECT_EQ(nodes[2][3].get<int>() & (32 | 64), 32);
  const auto capacity = capacity_view(cluster, everyone(), {}, {})["models"];
  EXPECT_EQ(capacity[0]["usedCores"], 280 + 90) << "as top and the metrics count";
}

TEST_F(views, cards_of_a_pod_that_someone_else_placed_are_a_guess) {
  read();
  const auto shares = seen(everyone(), "gpu-1")["cards"][0]["shares"];
  for (const auto& share : shares) EXPECT_EQ(share["guessed"], true);
}

TEST_F(views, a_resource_that_no_one_knows_is_the_reason) {
  auto pod = console_test::pod_of("team-a", "typo", 1, 1);
  pod.containers = {extender_test::container("main", {{"tencent.com/vcuda-cores", 1}})};
  cluster.pods.put(pod);
  read();
  const auto rows = waiting(team_a(), "", {0, 200})["pods"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["kind"], "unknown_resource");
  EXPECT_EQ(rows[1]["reason"]["en"],
            words::english("explain.no_offer_with_hint",
                           {{"key", "tencent.com/vcuda-cores"}, {"hint", "tencent.com/vcuda-core"}}));
}

TEST_F(views, a_limit_that_refuses_is_the_reason) {
  cluster.quotas.put(limit_of("team-a", "limits", 95));
  cluster.quotas.put(limit_of("team-b", "secret-limits", 190));
  cluster.pods.put(console_test::pod_of("team-a", "small", 10, 1));
  read();
  const auto rows = waiting(team_a(), "", {0, 200})["pods"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["name"], "small");
  EXPECT_EQ(rows[1]["kind"], "quota");
  for (const auto* locale : {"en", "zh"}) {
    const auto quota = rows[1]["quota"][locale].get<std::string>();
    EXPECT_THAT(quota, AllOf(HasSubstr("all"), HasSubstr("team-a")));
    EXPECT_THAT(rows[1]["reason"][locale].get<std::string>(), HasSubstr(quota));
  }
}

TEST_F(views, S42_namespaces_have_what_they_use_and_may_use) {
  read();
  const auto rows = namespaces_view(cluster, team_a(), {})["namespaces"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["name"], "team-a");
  EXPECT_EQ(rows[0]["pods"], 2);
  EXPECT_EQ(rows[0]["waiting"], 1);
  EXPECT_EQ(rows[0]["used"], ordered_json::parse(R"({"cards":2,"cores":90,"memoryMiB":6144})"));
  EXPECT_EQ(rows[0]["cohort"], "all");
  EXPECT_EQ(rows[0]["quota"][0]["resource"], "cores");
  EXPECT_EQ(rows[0]["quota"][0]["nominal"], 200);
  EXPECT_EQ(rows[0]["quota"][0]["used"], 90);
  auto without_quotas = team_a();
  without_quotas.quota_namespaces.clear();
  EXPECT_TRUE(namespaces_view(cluster, without_quotas, {})["namespaces"][0]["quota"].is_null());
}

/// By the names that the page has words for.
TEST_F(views, a_limit_names_what_it_is_of) {
  const nlohmann::json hard{
      {{"units", "cores"}, {"max", 200}}, {{"units", "memory"}, {"max", 65536}}, {{"units", "cards"}, {"max", 2}}};
  cluster.quotas.put(extender_test::quota_of("team-a", "limits", {{"hard", hard}},
                                             static_cast<std::int64_t>(extender_test::next_version())));
  read();
  std::set<std::string> names;
  for (const auto& row : namespaces_view(cluster, team_a(), {})["namespaces"][0]["quota"])
    names.insert(row["resource"].get<std::string>());
  EXPECT_EQ(names, (std::set<std::string>{"cards", "cores", "memory"}));
}

TEST_F(views, namespaces_have_their_cost_where_there_are_prices) {
  read();
  const auto object_of = [](const std::string& ns) {
    api::accelerator_usage out;
    out.month = "2026-11";
    out.name_space = ns;
    out.until = 1'795'000'000;
    if (!ns.empty()) {
      out.rows[{"Tesla-T4", "vGPU", "", 0}] = {100 * 3600, 0};
      out.rows[{"Tesla-T4", "vGPU", "", 10}] = {50 * 3600, 0};
      out.rows[{"secret-" + ns, "pGPU", "", 0}] = {100 * 3600, 0};
    }
    return out;
  };
  const std::vector<api::accelerator_usage> objects{object_of("team-a"), object_of("team-b"), object_of("")};
  reconcilers::chargeback_spec spec{"EUR", "", {{"Tesla-*", 2'500'000}}};
  const auto view = namespaces_view(cluster, team_a(), costs_of("2026-11", objects, spec));
  EXPECT_EQ(view["namespaces"][0]["cost"], "3.75 EUR");
  const auto known_costs = costs_of("2026-11", objects, spec);
  EXPECT_EQ(overview_view(cluster, team_a(), known_costs)["cost"]["amount"], "3.75 EUR");
  EXPECT_EQ(overview_view(cluster, everyone(), known_costs)["cost"]["amount"], "7.50 EUR") << "of both teams";
  EXPECT_EQ(view["costMessage"], words::english("console.cost.without_price", {{"models", "secret-team-a"}}));
  EXPECT_THAT(view.dump(), Not(HasSubstr("team-b"))) << "models of others are not named either";
  const auto nothing = namespaces_view(cluster, team_a(), costs_of("2026-11", {object_of("")}, spec));
  EXPECT_EQ(nothing["namespaces"][0]["cost"], "0.00 EUR");
  EXPECT_EQ(nothing["costMessage"], "");
  const auto uncounted = namespaces_view(cluster, team_a(), costs_of("2026-12", objects, spec));
  EXPECT_TRUE(uncounted["namespaces"][0]["cost"].is_null());
  EXPECT_EQ(uncounted["costMessage"], words::english("console.cost.nothing_counted"));
  spec.prices.clear();
  const auto unpriced = namespaces_view(cluster, team_a(), costs_of("2026-11", objects, spec));
  EXPECT_TRUE(unpriced["namespaces"][0]["cost"].is_null());
  EXPECT_EQ(unpriced["costMessages"]["zh"], words::chinese("console.cost.no_prices"));
}

/// The shapes that the page is made for.
std::set<std::string> fields_of(const ordered_json& value, const std::string& path = "") {
  std::set<std::string> out;
  if (value.is_object())
    for (const auto& [key, entry] : value.items()) {
      out.insert(path + "/" + key);
      if (key != "asks" && key != "labels") out.merge(fields_of(entry, path + "/" + key));
    }
  if (value.is_array() && !value.empty() && !value[0].is_array()) out.merge(fields_of(value[0], path + "[]"));
  return out;
}
ordered_json example(const std::string& name) {
  std::ifstream file(TEST_DATA "/console/examples/" + name + ".json");
  return ordered_json::parse(file);
}

TEST_F(views, the_cost_of_a_month_has_the_namespaces_that_are_seen_and_the_idle_hours_for_who_sees_all) {
  const auto with_rows = [](const std::string& ns, const quota::usage_rows& rows) {
    api::accelerator_usage out;
    out.month = "2026-11", out.name_space = ns, out.until = 1'795'000'000, out.rows = rows;
    return out;
  };
  month_usage usage{"2026-11", {}, {}};
  const quota::card_time hour{100 * 3600, 0}, half{50 * 3600, 0};
  usage.objects = {with_rows("team-a", {{{"Tesla-T4", "vGPU", "", 0}, hour}, {{"Tesla-T4", "vGPU", "lab", 10}, half}}),
                   with_rows("team-b", {{{"secret", "pGPU", "", 0}, hour}}), with_rows("", {})};
  auto& models = usage.objects.back().models;
  models["Tesla-T4"] = {
      .capacity = hour + hour, .parts = hour + half, .idle = half, .unhealthy = {}, .unattributed = {}, .beyond = {}};
  models["secret"] = {.capacity = hour, .parts = hour, .idle = {}, .unhealthy = {}, .unattributed = {}, .beyond = {}};
  reconcilers::chargeback_spec spec{"EUR", "", {{"Tesla-*", 2'500'000}}};
  const auto own = cost_view(team_a(), usage, {"2026-11"}, spec);
  ASSERT_EQ(own["rows"].size(), 1u) << "organizations and priorities are added up";
  EXPECT_EQ(own["rows"][0]["gpuHours"], 1.5);
  EXPECT_EQ(own["rows"][0]["amount"], "3.75 EUR");
  EXPECT_EQ(own["rows"][0]["hundredths"], 375);
  EXPECT_EQ(own["amount"], "3.75 EUR");
  EXPECT_EQ(own["countedUntil"], 1'795'000'000);
  EXPECT_TRUE(own["models"].is_null());
  EXPECT_EQ(own["message"], "");
  EXPECT_THAT(own.dump(), Not(testing::AnyOf(HasSubstr("team-b"), HasSubstr("secret"))));
  const auto all = cost_view(everyone(), usage, {"2026-11"}, spec);
  ASSERT_EQ(all["models"].size(), 2u);
  EXPECT_EQ(all["models"][0]["idle"], 0.5);
  EXPECT_EQ(all["models"][0]["idleAmount"], "1.25 EUR");
  EXPECT_TRUE(all["models"][1]["idleAmount"].is_null());
  EXPECT_TRUE(all["rows"][1]["amount"].is_null());
  EXPECT_EQ(all["message"], words::english("console.cost.without_price", {{"models", "secret"}}));
  EXPECT_EQ(fields_of(all), fields_of(example("cost")));
  // Hours are counted without prices, too.
  spec.prices.clear();
  const auto unpriced = cost_view(team_a(), usage, {"2026-11"}, spec);
  EXPECT_TRUE(unpriced["amount"].is_null());
  EXPECT_EQ(unpriced["rows"][0]["gpuHours"], 1.5);
  EXPECT_EQ(unpriced["message"], words::english("console.cost.no_prices"));
  usage.objects.clear();
  EXPECT_EQ(cost_view(team_a(), usage, {"2026-11"}, spec)["message"],
            words::english("console.cost.nothing_in_month", {{"month", "2026-11"}}));
  usage.problem = {"console.usage.forbidden"};
  EXPECT_EQ(cost_view(team_a(), usage, {"2026-11"}, spec)["message"], words::english("console.usage.forbidden"));
}

TEST_F(views, capacity_says_what_is_stranded) {
  read();
  const auto rows = capacity_view(cluster, everyone(), {}, {"console.no_prometheus"})["models"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["cards"], 3);
  EXPECT_EQ(rows[0]["cores"], 300);
  EXPECT_EQ(rows[0]["usedCores"], 280);
  EXPECT_EQ(rows[0]["free"], 0);
  EXPECT_EQ(rows[0]["strandedCards"], 1) << "gpu-3: cores are used up, memory is left";
  EXPECT_EQ(rows[0]["strandedMiB"], 16384 - 4096);
  EXPECT_EQ(rows[0]["strandedCores"], 0);
  EXPECT_TRUE(rows[0]["daysUntilFull"].is_null());
}

TEST_F(views, S43_days_until_full_follow_the_trend) {
  trend growing, level;
  for (int hour = 0; hour < 48; ++hour) {
    growing.emplace_back(hour * 3600, 100 + hour);
    level.emplace_back(hour * 3600, 100);
  }
  EXPECT_NEAR(days_until(147 + 24 * 3, growing).value(), 3, 0.01) << "24 cores a day";
  EXPECT_EQ(days_until(100, growing), 0);
  EXPECT_FALSE(days_until(300, level)) << "use does not grow";
  EXPECT_FALSE(days_until(300, {growing.begin(), growing.begin() + 3})) << "too few points";
  read();
  const auto rows = capacity_view(cluster, everyone(), {{{"", "vgpu"}, growing}}, {})["models"];
  EXPECT_TRUE(rows[0]["daysUntilFull"].is_number());
}

TEST_F(views, the_person_reads_which_views_there_are) {
  read();
  const auto view = me_view(cluster, team_a(), true);
  EXPECT_EQ(view["namespaces"], ordered_json({"team-a"}));
  EXPECT_EQ(view["views"]["fleet"], true);
  EXPECT_EQ(view["allNamespaces"], false);
  EXPECT_EQ(view["prometheus"], true);
  EXPECT_EQ(me_view(cluster, viewer(), false)["views"]["waiting"], false);
}

TEST_F(views, the_examples_have_the_fields_of_the_views) {
  add_half_full();
  auto report = extender_test::reported(
      "gpu-3", ordered_json::parse(R"([{"uuid":"GPU-0","index":0,"model":"T4","memoryMiB":16384,"links":["X"]}])"));
  report.mode = cluster.cards.find({{}, "gpu-3"})->mode;
  cluster.cards.put(report);
  read();
  const auto viewer = everyone();
  const api::agent_report agent{
      .checks = {{"driver", api::check_state::ok, "550"}}, .other_cards = {}, .passed_since = {}};
  EXPECT_EQ(fields_of(me_view(cluster, viewer, false)), fields_of(example("me")));
  EXPECT_EQ(fields_of(fleet_view(cluster, viewer, {0, 5000})), fields_of(example("fleet")));
  EXPECT_EQ(fields_of(reasons(viewer)), fields_of(example("reasons")));
  const auto overview = fields_of(overview_view(cluster, viewer, {}));
  for (const auto& field : fields_of(example("overview")))
    if (!field.contains("findings[]") && !field.contains("parts[]/text"))
      EXPECT_TRUE(overview.contains(field)) << field;
  EXPECT_EQ(fields_of(waiting(viewer, "", {0, 50})), fields_of(example("waiting")));
  EXPECT_EQ(fields_of(namespaces_view(cluster, viewer, {})), fields_of(example("namespaces")));
  EXPECT_EQ(fields_of(capacity_view(cluster, viewer, {}, {})), fields_of(example("capacity")));
  const auto node = fields_of(seen(viewer, "gpu-3", agent));
  for (const auto& field : fields_of(example("node")))
    if (!field.starts_with("/cards[]/shares[]")) EXPECT_TRUE(node.contains(field)) << field;
}

TEST_F(views, a_pod_that_an_idle_node_would_serve_has_the_label_as_its_command) {
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.modules["pgpu"].enabled = true;
  cluster.policies.put(policy);
  for (const auto* name : {"idle-2", "idle-1", "idle-0"}) {
    auto node = extender_test::node(name, {{"nvidia.com/gpu.present", "true"}, {"nvidia.com/gpu.count", "4"}}, {});
    node.unschedulable = std::string_view(name) == "idle-0";
    cluster.nodes.put(node);
  }
  auto pod = console_test::pod_of("team-a", "whole", 1, 1);
  pod.containers = {extender_test::container("main", {{"nvidia.com/gpu", 1}})};
  cluster.pods.put(pod);
  read();
  const auto label = std::string("kubectl label node idle-1 nvidia-device-enable=pgpu");
  const auto command_for = [&](const viewer& viewer) {
    for (const auto& group : reasons(viewer)["groups"])
      if (group["examples"][0]["name"] == "whole") return group["command"].get<std::string>();
    return std::string();
  };
  EXPECT_EQ(command_for(everyone()), label);
  auto blind = team_a();
  blind.nodes = false;
  EXPECT_EQ(command_for(blind), "quartermaster explain pod whole -n team-a") << "names of nodes are not theirs";
}

TEST_F(views, the_overview_has_the_parts_that_a_person_may_see) {
  read();
  const auto whole = overview_view(cluster, everyone(), {});
  EXPECT_EQ(whole["gpus"]["total"], 3);
  EXPECT_EQ(whole["gpus"]["allocatedCores"], 50 + 30 + 100 + 40 + 60);
  EXPECT_EQ(whole["waiting"]["pods"], 2);
  std::vector<std::string> parts;
  for (const auto& part : whole["health"]["parts"]) parts.push_back(part["part"]);
  EXPECT_THAT(parts, testing::ElementsAre("leader", "scheduler", "modules", "declarations", "quotas", "nodes"));

  const auto some = overview_view(cluster, team_a(), {});
  EXPECT_TRUE(some["health"].is_null()) << "what verify finds names pods of all";
  EXPECT_EQ(some["gpus"], whole["gpus"]) << "numbers of nodes name no one";
  EXPECT_EQ(some["waiting"]["pods"], 1);

  auto blind = team_a();
  blind.nodes = false;
  EXPECT_TRUE(overview_view(cluster, blind, {})["gpus"].is_null());
  EXPECT_TRUE(overview_view(cluster, viewer(), {})["waiting"].is_null());
}

TEST_F(views, what_is_wrong_has_its_remedy_and_a_command_for_a_terminal) {
  auto cordoned = vgpu_node("gpu-2", 1);
  cordoned.unschedulable = true;
  cordoned.ready = kube::condition_status::yes;
  cluster.nodes.put(cordoned);
  read();
  cluster.leader.ns = "quartermaster";
  const auto health = overview_view(cluster, everyone(), {})["health"];
  const auto found = [&](const std::string& part, const std::string& code) {
    for (const auto& each : health["parts"])
      if (each["part"] == part)
        for (const auto& finding : each["findings"])
          if (finding["code"] == code) return finding;
    return ordered_json();
  };
  const auto leader = found("leader", "leader_missing");
  ASSERT_FALSE(leader.is_null()) << health;
  EXPECT_EQ(leader["command"], "kubectl get deployment,pod -l app.kubernetes.io/name=quartermaster -n quartermaster");
  const auto cordon = found("nodes", "node_cordoned");
  ASSERT_FALSE(cordon.is_null()) << health;
  EXPECT_EQ(cordon["command"], "kubectl uncordon gpu-2");
  EXPECT_EQ(cordon["nodes"], ordered_json::array({"gpu-2"}));
  EXPECT_EQ(health["problems"].get<std::size_t>(), problems(walk(walked_view(cluster)))) << "as verify counts";
}

TEST_F(views, a_refused_declaration_is_a_problem_of_the_console_as_of_verify) {
  reconcilers::accelerator_policy policy;
  policy.key.name = "default";
  policy.status = R"({"conditions":[{"type":"RulesEnforced","status":"True","reason":"Deny"}]})";
  cluster.policies.put(policy);
  kube::lease lease;
  lease.holder = "quartermaster-1";
  lease.duration_seconds = 15;
  cluster.leader.lease = lease;
  cluster.leader.renewed = true;
  read();
  const auto part_of = [&](const viewer& viewer) {
    const auto health = overview_view(cluster, viewer, {})["health"];
    for (const auto& part : health["parts"])
      if (part["part"] == "declarations") return std::pair(health["problems"].get<int>(), part);
    return std::pair(-1, ordered_json());
  };
  const auto [before, good] = part_of(everyone());
  EXPECT_EQ(good["outcome"], "good") << good;
  EXPECT_FALSE(good["text"].is_null());

  cluster.refused_declarations = {{{"kube-public", "cf-crl-lab-fpga"}, "example.com/fpga", "a reason", "其一"}};
  const auto [after, wrong] = part_of(everyone());
  EXPECT_EQ(after, before + 1);
  EXPECT_EQ(wrong["outcome"], "wrong");
  EXPECT_TRUE(wrong["text"].is_null()) << "the text of what is well is none of a part that is not";
  ASSERT_EQ(wrong["findings"].size(), 1U) << wrong;
  EXPECT_EQ(wrong["findings"][0]["code"], "declaration_refused");

  auto blind = everyone();
  blind.declarations = false;
  const auto [unseen, unknown] = part_of(blind);
  EXPECT_EQ(unseen, before);
  EXPECT_EQ(unknown["outcome"], "unknown") << "not good, because they may not be seen";
  EXPECT_FALSE(unknown.dump().contains("cf-crl-lab-fpga"));
}

TEST_F(views, cards_that_no_mode_serves_are_on_the_map_and_in_the_numbers) {
  cluster.nodes.put(extender_test::node("plain",
                                        {{"nvidia.com/gpu.present", "true"},
                                         {"nvidia.com/gpu.count", "4"},
                                         {"nvidia.com/gpu.memory", "16384"},
                                         {"nvidia.com/gpu.product", "Tesla-T4"}},
                                        {}));
  read();
  const auto fleet = fleet_view(cluster, everyone(), {0, 5000});
  ASSERT_EQ(fleet["nodes"].back()[0], "plain");
  EXPECT_EQ(fleet["nodes"].back()[1], -1) << "in no mode";
  ASSERT_EQ(fleet["nodes"].back()[4].size(), 4u);
  EXPECT_EQ(fleet["models"][fleet["nodes"].back()[4][0][0].get<int>()], "Tesla-T4");
  const auto sums = gpus_of(cluster);
  EXPECT_EQ(sums.total, 7);
  EXPECT_EQ(sums.without_mode, 4) << "of gpu-1 and gpu-2 the label says a mode, as in top";
}

TEST_F(views, a_pod_has_its_cards_with_what_it_holds_and_uses) {
  read();
  const pod_use use{{{"team-a", "mine-1"}, 25}, {{"team-b", "secret-1"}, 30}};
  const auto view = holders_view(cluster, team_a(), "", {0, 200}, use, {});
  EXPECT_EQ(view["total"], 2);
  const auto& pod = view["pods"][0];
  EXPECT_EQ(pod["name"], "mine-1");
  EXPECT_EQ(pod["node"], "gpu-1");
  EXPECT_EQ(pod["cores"], 50);
  EXPECT_EQ(pod["memoryMiB"], 16 * 256);
  EXPECT_EQ(pod["use"], 25);
  ASSERT_EQ(pod["cards"].size(), 1u);
  EXPECT_EQ(pod["cards"][0]["index"], 0);
  EXPECT_TRUE(view["pods"][1]["use"].is_null()) << "nothing is measured of it";
  EXPECT_EQ(holders_view(cluster, everyone(), "team-b", {1, 1}, use, {})["pods"].size(), 1u);
  EXPECT_EQ(holders_view(cluster, everyone(), "team-b", {1, 1}, use, {})["total"], 3);
  EXPECT_EQ(fields_of(view), fields_of(example("pods")));
}

TEST_F(views, S41_what_happened_to_a_pod_is_one_line_of_time) {
  read();
  const auto object = nlohmann::json::parse(R"({
    "metadata": {"creationTimestamp": "2026-11-25T12:00:00Z", "annotations": {"quartermaster.io/isolation": "mps"}},
    "status": {
      "conditions": [
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-25T12:00:01Z"},
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-25T12:10:00Z", "message": "containers with unready status"},
        {"type": "Initialized", "status": "True", "lastTransitionTime": "2026-11-25T12:00:01Z"}],
      "containerStatuses": [{"name": "main",
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": "2026-11-25T12:00:02Z", "finishedAt": "2026-11-25T12:10:00Z"}},
        "state": {"running": {"startedAt": "2026-11-25T12:10:05Z"}}}]}})");
  const std::vector<nlohmann::json> events{
      {{"type", "Warning"},
       {"reason", "BackOff"},
       {"message", "Back-off"},
       {"count", 3},
       {"lastTimestamp", "2026-11-25T12:10:02Z"}},
      {{"type", "Normal"},
       {"reason", "Pulled"},
       {"message", std::string(5000, 'x')},
       {"eventTime", "2026-11-25T12:00:02.5Z"},
       {"series", {{"count", 7}, {"lastObservedTime", "2026-11-25T12:10:04.000000Z"}}}},
      {{"reason", "timeless"}},
      "no event"};
  const auto& pod = *cluster.pods.find({"team-a", "mine-1"});
  const auto view = pod_view(cluster, pod, object, events, {{{"team-a", "mine-1"}, 25}}, {});
  std::vector<std::string> kinds;
  for (const auto& moment : view["moments"])
    kinds.push_back(moment["kind"].get<std::string>() + " " + moment["reason"].get<std::string>());
  EXPECT_EQ(kinds, (std::vector<std::string>{"created ", "scheduled PodScheduled", "started ", "ended OOMKilled",
                                             "is_not Ready", "event BackOff", "event Pulled", "started "}));
  EXPECT_EQ(view["moments"][3]["text"], "137");
  EXPECT_EQ(view["moments"][3]["warning"], true);
  EXPECT_EQ(view["moments"][5]["count"], 3);
  EXPECT_EQ(view["moments"][6]["count"], 7);
  EXPECT_EQ(view["moments"][6]["text"].get<std::string>().size(), 1000u);
  EXPECT_EQ(view["isolation"], "mps");
  EXPECT_EQ(view["use"], 25);
  EXPECT_EQ(view["cards"].size(), 1u);
  EXPECT_EQ(fields_of(view), fields_of(example("pod")));
  // One that waits holds nothing, and its own words may be of any form.
  cluster.pods.put(console_test::pod_of("team-a", "waits", 90, 64));
  read();
  const auto waiting =
      pod_view(cluster, *cluster.pods.find({"team-a", "waits"}),
               nlohmann::json::parse(R"({"status": {"conditions": {"a": 1}, "containerStatuses": "none"}})"), {}, {},
               {"console.events.hidden"});
  EXPECT_TRUE(waiting["cards"].empty());
  EXPECT_TRUE(waiting["moments"].empty());
  EXPECT_EQ(waiting["eventsMessage"], words::english("console.events.hidden"));
}

TEST_F(views, pods_that_wait_for_the_same_are_one_group) {
  for (int i = 0; i < 5; ++i) {
    auto pod = console_test::pod_of("team-a", "waits-" + std::to_string(i), 90, 64);
    pod.created = 1'800'000'000 - i;
    cluster.pods.put(pod);
  }
  cluster.pods.put(console_test::pod_of("team-a", "unknown", 1, 1));
  auto unknown = *cluster.pods.find({"team-a", "unknown"});
  unknown.containers = {extender_test::container("main", {{"nvidia.com/gpus", 1}})};
  cluster.pods.put(unknown);
  read();
  const auto view = reasons(everyone());
  EXPECT_EQ(view["total"], 8);
  EXPECT_EQ(view["lookedAt"], 8);
  ASSERT_EQ(view["groups"].size(), 2u) << view;
  EXPECT_EQ(view["groups"][0]["pods"], 7);
  EXPECT_EQ(view["groups"][0]["since"], 1'800'000'000 - 4);
  EXPECT_EQ(view["groups"][0]["examples"].size(), 3u);
  EXPECT_EQ(view["groups"][1]["command"], "quartermaster explain pod unknown -n team-a");
  EXPECT_EQ(view["groups"][1]["kind"], "unknown_resource");
}

TEST_F(views, a_fleet_of_5000_nodes_and_its_overview_are_small) {
  for (int i = 0; i < 5000; ++i) cluster.nodes.put(vgpu_node("node-" + std::to_string(i), 8));
  for (int i = 0; i < 10000; ++i)
    cluster.pods.put(console_test::pod_of("ns-" + std::to_string(i % 50), "p-" + std::to_string(i), 20, 8,
                                          "node-" + std::to_string(i / 2)));
  read();
  EXPECT_LT(fleet_view(cluster, everyone(), {0, 5000}).dump().size(), 4u << 20);
  cluster.leader.ns = "quartermaster";
  EXPECT_LT(overview_view(cluster, everyone(), {}).dump().size(), 64u << 10) << "the same finding on many nodes is one";
}

}  // namespace
}  // namespace cli::console
