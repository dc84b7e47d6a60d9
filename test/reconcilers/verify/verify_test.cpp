#include "reconcilers/verify/verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "controller/coded_message.hpp"
#include "reconcilers/nodes/intent.hpp"
#include "reconcilers/plugins/plugin_rollout.hpp"
#include "test/reconcilers/projections.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"

namespace reconcilers::verify {
namespace {

/// What the operator wrote in words of its own, as an answer has it.
std::string quoted(const std::string& text) { return words::english("list.quotation", {{"text", text}}); }

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using text::language;
using labels = std::map<std::string, std::string>;

/// A cluster in which everything is right: one vgpu node with four T4, and what is changed about it before the walk.
struct cluster {
  labels node_labels{{"nvidia-device-enable", "vGPU"},
                     {"quartermaster.io/module", "vgpu"},
                     {"nvidia.com/gpu.present", "true"},
                     {"nvidia.com/gpu.count", "4"},
                     {"nvidia.com/gpu.compute.major", "7"},
                     {"nvidia.com/gpu.compute.minor", "5"},
                     {"nvidia.com/cuda.driver-version.full", "535.183.01"},
                     {"nvidia.com/cuda.runtime-version.major", "12"},
                     {"nvidia.com/cuda.runtime-version.minor", "2"},
                     {"nvidia.com/mig.capable", "false"}};
  cluster_view is;

  cluster() {
    auto& policy = is.policy.emplace();
    policy.key.name = "default";
    policy.generation = 3;
    for (const auto name : {"pgpu", "vgpu", "mps"}) policy.modules[name].enabled = true;
    policy_ready("True", "RolledOut");
    for (const auto* mode : {&modules::pgpu, &modules::vgpu, &modules::mps}) {
      kube::daemon_set set;
      set.key = {"quartermaster", std::string(mode->daemon_set)};
      set.labels = packed({{"quartermaster.io/module", std::string(mode->name)}});
      is.daemon_sets.push_back(std::move(set));
    }
    vgpu_set().desired = vgpu_set().updated = vgpu_set().available = 1;
    is.leader = leader_view{"quartermaster-7d-1", std::chrono::seconds(2), std::chrono::seconds(15), false};
    auto& added = is.nodes.emplace_back();
    added.node.key.name = "gpu-1";
    added.node.ready = kube::condition_status::yes;
    added.node.kubelet_version = "v1.36.3";
    added.node.operating_system = "linux";
    added.node.architecture = "amd64";
    added.node.capacity = added.node.allocatable = {{"tencent.com/vcuda-core", 400}, {"tencent.com/vcuda-memory", 240}};
    added.status = api::mode_status();
    added.status->requested_mode = added.status->actual_mode = "vgpu";
    added.status->phase = phases::ready;
    added.status->reason = "Enrolled";
    added.plugins.push_back({"vgpu", "quartermaster/gpu-manager-daemonset-x", "", true, false});
  }
  node_view& first() { return is.nodes.front(); }
  kube::node& node() { return first().node; }
  kube::daemon_set& vgpu_set() { return is.daemon_sets.at(1); }
  void policy_ready(const std::string& status, const std::string& reason, const std::string& message = "") {
    is.policy->status =
        nlohmann::json{
            {"observedGeneration", 3},
            {"summary", "vgpu 1/1"},
            {"conditions", {{{"type", "Ready"}, {"status", status}, {"reason", reason}, {"message", message}}}}}
            .dump();
  }
  void module_has(const std::string& name, const std::string& problem, const std::string& message) {
    policy_ready("False", problem, name + ": " + message);
    auto status = nlohmann::json::parse(is.policy->status);
    status["modules"] = {{{"name", name}, {"problem", problem}, {"message", message}}};
    is.policy->status = status.dump();
  }
  void phase(std::string_view name, std::string reason = "", std::string message = "") {
    first().status->phase = name;
    first().status->reason = std::move(reason);
    first().status->message = std::move(message);
  }
  void plugin_breaks(const std::string& reason) {
    first().plugins.front().ready = false;
    first().plugins.front().reason = reason;
    node().allocatable = {{"tencent.com/vcuda-core", 0}, {"tencent.com/vcuda-memory", 0}};
    vgpu_set().available = 0;
    policy_ready("False", "RollingOut", "ready of desired: vgpu 0/1");
    phase(phases::stuck, "PluginNotReady", "plugin pod is not ready");
  }
  void asks(const std::string& mode) {
    node_labels["nvidia-device-enable"] = mode;
    node_labels.erase("quartermaster.io/module");
    first().plugins.clear();
    first().node.allocatable.clear();
    first().node.capacity.clear();
    vgpu_set().desired = vgpu_set().updated = vgpu_set().available = 0;
    first().status->requested_mode = mode;
    first().status->actual_mode = "none";
  }
  report walked() {
    node().labels = packed(node_labels);
    first().known = facts_of(node());
    return walk(is);
  }
  /// Codes of all that is wrong or changes, in order.
  std::vector<std::string> wrong() {
    std::vector<std::string> out;
    const auto found = walked();
    std::size_t problem_count = 0;
    const auto add = [&](const step& step) {
      problem_count += step.is == outcome::wrong ? 1 : 0;
      if (step.is == outcome::wrong || step.is == outcome::changing)
        out.push_back(step.row ? "preflight:" + step.row->name : std::string(to_string(step.cause)));
    };
    std::ranges::for_each(found.cluster, add);
    for (const auto& node : found.nodes) std::ranges::for_each(node.steps, add);
    EXPECT_EQ(problems(found), problem_count);
    return out;
  }
};

TEST(verify, S4_what_could_not_be_seen_is_unknown_and_nothing_is_called_missing) {
  cluster cluster;
  cluster.is.daemon_sets.clear();
  EXPECT_THAT(cluster.wrong(), Not(IsEmpty()));
  cluster.is.sets_unseen = {"the file has none"};
  cluster.is.labels_unseen = {"forbidden"};
  cluster.is.old_quotas_unseen = {"no right"};
  EXPECT_THAT(cluster.wrong(), IsEmpty());
  std::vector<std::pair<stage, std::string>> unknown;
  for (const auto& step : cluster.walked().cluster)
    if (step.is == outcome::unknown) unknown.emplace_back(step.position, text_of(step, language::en));
  EXPECT_THAT(unknown,
              ElementsAre(std::pair(stage::daemon_sets, "the file has none"),
                          std::pair(stage::quotas, words::english("verify.step.old_quotas", {{"reason", "no right"}})),
                          std::pair(stage::label, "forbidden")));
}

TEST(verify, S4_every_refused_declaration_is_wrong_with_its_reason) {
  cluster cluster;
  cluster.is.refused_declarations = {{{"kube-public", "cf-crl-a"}, "example.com/a", "one reason", "其一"},
                                     {{"kube-public", "cf-crl-b"}, "", "another", "其二"}};
  std::vector<std::string> en, zh;
  for (const auto& step : cluster.walked().cluster) {
    if (step.cause != stage_code::declaration_refused) continue;
    EXPECT_EQ(step.is, outcome::wrong);
    EXPECT_FALSE(remedy_of(step, "", language::zh).empty());
    en.push_back(text_of(step, language::en));
    zh.push_back(text_of(step, language::zh));
  }
  const auto key = "verify.declaration_refused.wrong";
  EXPECT_THAT(
      en, ElementsAre(words::english(key, {{"value", "kube-public/cf-crl-a (example.com/a)"}, {"other", "one reason"}}),
                      words::english(key, {{"value", "kube-public/cf-crl-b"}, {"other", "another"}})));
  EXPECT_THAT(zh.at(0), HasSubstr("其一"));
}

TEST(verify, S4_declarations_that_may_not_be_seen_are_not_known) {
  cluster cluster;
  cluster.is.declarations_unseen = {"no right"};
  const auto steps = cluster.walked().cluster;
  const auto match = std::ranges::find_if(
      steps, [](const step& step) { return step.is == outcome::unknown && step.position == stage::rules; });
  ASSERT_NE(match, steps.end());
  EXPECT_EQ(text_of(*match, language::en), words::english("verify.step.declarations", {{"reason", "no right"}}));
  EXPECT_FALSE(all_good(cluster.walked()));
}

TEST(verify, declarations_that_no_one_reads_are_a_warning) {
  cluster cluster;
  cluster.is.unread_declarations = {"lab/cf-crl-x"};
  const auto steps = cluster.walked().cluster;
  const auto match = std::ranges::find(steps, stage_code::declarations_elsewhere, &step::cause);
  ASSERT_NE(match, steps.end());
  EXPECT_EQ(match->is, outcome::warning);
  EXPECT_THAT(text_of(*match, language::zh), HasSubstr("lab/cf-crl-x"));
}

TEST(verify, S4_finds_nothing_wrong_with_a_healthy_cluster) {
  cluster cluster;
  EXPECT_THAT(cluster.wrong(), IsEmpty());
  const auto found = cluster.walked();
  ASSERT_EQ(found.nodes.size(), 1U);
  EXPECT_EQ(found.nodes.front().mode, "vgpu");
  std::vector<stage> order;
  for (const auto& step : found.nodes.front().steps) {
    EXPECT_NE(step.is, outcome::skipped) << text_of(step, language::en);
    if (order.empty() || order.back() != step.position) order.push_back(step.position);
  }
  EXPECT_THAT(order, ElementsAre(stage::label, stage::node, stage::module, stage::enrolment, stage::preflight,
                                 stage::module_label, stage::plugin, stage::other_plugins, stage::resources,
                                 stage::pods, stage::taint))
      << "from the label to what pods can ask for";
}

TEST(verify, S1_an_old_report_is_a_warning) {
  cluster cluster;
  cluster.first().old_report = {"status.agent.silent", {{"time", "2026-07-01T00:00:00Z"}}};
  EXPECT_THAT(cluster.wrong(), IsEmpty());
  const auto steps = cluster.walked().nodes.front().steps;
  const auto found = std::ranges::find(steps, stage::agent, &step::position);
  ASSERT_NE(found, steps.end());
  EXPECT_EQ(found->is, outcome::warning);
  EXPECT_EQ(found->cause, stage_code::agent_gone);
  EXPECT_EQ(found->value, words::english("status.agent.silent", {{"time", "2026-07-01T00:00:00Z"}}));
  EXPECT_EQ(found->value_zh, words::chinese("status.agent.silent", {{"time", "2026-07-01T00:00:00Z"}}));
}

TEST(verify, says_the_message_of_a_node_in_the_language_asked_for) {
  const text::phrase message{"status.node.drain.many", {{"number", "7"}, {"detail", "status.node.drain.waits"}}};
  for (const auto phase : {phases::rolled_back, phases::stuck, phases::removing, phases::refused}) {
    cluster cluster;
    cluster.phase(phase, "R", "OWN TEXT");
    const auto contains = [&](text::language locale) {
      const auto steps = cluster.walked().nodes.front().steps;
      return std::ranges::any_of(
          steps, [&](const step& step) { return text_of(step, locale).contains(words_of(message, locale)); });
    };
    EXPECT_FALSE(contains(text::language::zh)) << phase << ": of an operator that writes no codes";
    cluster.first().status->code = code_of(message);
    EXPECT_TRUE(contains(text::language::en)) << phase;
    EXPECT_TRUE(contains(text::language::zh)) << phase;
    cluster.first().status->code.cause = "status.node.of_a_later_version";
    EXPECT_FALSE(contains(text::language::zh)) << phase;
  }
}

TEST(verify, S4_says_whether_pods_are_held_to_the_declarations) {
  cluster cluster;
  const auto describe = [&](const char* status, const char* reason) {
    cluster.is.policy->status =
        nlohmann::json{
            {"observedGeneration", 3},
            {"conditions",
             {{{"type", "Ready"}, {"status", "True"}},
              {{"type", "RulesEnforced"}, {"status", status}, {"reason", reason}, {"message", "3 declared keys"}}}}}
            .dump();
    EXPECT_THAT(cluster.wrong(), IsEmpty());
    for (const auto& step : cluster.walked().cluster) {
      if (step.position == stage::rules) return step.value + ": " + step.other;
    }
    return std::string();
  };
  EXPECT_EQ(describe("True", "Deny"), "Deny: " + quoted("3 declared keys"));
  EXPECT_EQ(describe("False", "Off"), "Off: " + quoted("3 declared keys")) << "as the policy has it";
}

/// A file of `inspect --save` comes from other people: nothing in a status is taken for granted.
TEST(verify, reads_a_status_of_which_nothing_has_the_type_that_it_should) {
  const auto odd = nlohmann::json::array({nullptr, 7, "text", {1, 2}, {{"a", nullptr}}});
  for (const auto& value : odd) {
    for (const auto* field : {"conditions", "modules", "schedulers", "observedGeneration", "summary"}) {
      cluster cluster;
      cluster.is.policy->status = nlohmann::json{{field, value}}.dump();
      EXPECT_NO_THROW(cluster.walked()) << field << " " << value;
    }
    for (const auto* type : {"Ready", "RulesEnforced", "SchedulerReady", "CallerCertificatesValid", "Other"}) {
      cluster cluster;
      cluster.is.policy->status = nlohmann::json{
          {"conditions", {{{"type", type}, {"status", value}, {"reason", value}, {"message", value}}, value}},
          {"modules", {{{"name", value}, {"problem", value}}, value}},
          {"schedulers",
           {{{"name", value}, {"mode", value}, {"ready", value}},
            value}}}.dump();
      EXPECT_NO_THROW(cluster.walked()) << type << " " << value;
    }
  }
}

/// The policy as the operator reports its schedulers.
void scheduled(cluster& c, const std::string& mode, nlohmann::json condition, nlohmann::json rows) {
  c.is.policy->scheduler.mode = mode;
  auto status = nlohmann::json::parse(c.is.policy->status);
  condition["type"] = "SchedulerReady";
  status["conditions"].push_back(std::move(condition));
  status["schedulers"] = std::move(rows);
  c.is.policy->status = status.dump();
}
nlohmann::json control_plane_node(const std::string& name, const std::string& reason, const std::string& message,
                                  int ready) {
  return {{"name", name},       {"mode", "StaticPod"}, {"reason", reason},
          {"message", message}, {"desired", 1},        {"ready", ready}};
}

std::string good_of(const std::string& stage, const std::string& value, const std::string& other) {
  return words::english("verify.stage." + stage + ".good", {{"value", value}, {"other", other}});
}

TEST(verify, says_who_sends_pods_to_the_extender) {
  const auto describe = [](cluster cluster) {
    EXPECT_THAT(cluster.wrong(), IsEmpty());
    for (const auto& step : cluster.walked().cluster) {
      if (step.position == stage::scheduler) return text_of(step, language::en);
    }
    return std::string("nothing");
  };
  EXPECT_THAT(describe({}), words::english("verify.stage.scheduler.mode_none"));
  cluster dedicated, static_pods, one_node;
  scheduled(dedicated, "Dedicated", {{"status", "True"}, {"reason", "Dedicated"}, {"message", "2 of 2 ready"}}, {});
  EXPECT_EQ(describe(dedicated), good_of("scheduler", "Dedicated", quoted("2 of 2 ready")));
  scheduled(static_pods, "StaticPod", {{"status", "True"}, {"reason", "StaticPod"}, {"message", "1 of 1 asks"}},
            {control_plane_node("cp-1", "Applied", "", 1)});
  EXPECT_EQ(describe(static_pods), good_of("scheduler", "StaticPod", quoted("1 of 1 asks")));
  one_node.is.whole = false;
  EXPECT_THAT(describe(one_node), words::english("verify.stage.scheduler.mode_none"))
      << "a pod for this node waits for it, too";
}

TEST(verify, warns_of_callers_that_the_extender_is_going_to_refuse) {
  const auto describe = [](const char* status) {
    cluster cluster;
    auto is = nlohmann::json::parse(cluster.is.policy->status);
    is["conditions"].push_back(
        {{"type", "CallerCertificatesValid"}, {"status", status}, {"reason", "R"}, {"message", "ends 2027"}});
    cluster.is.policy->status = is.dump();
    EXPECT_THAT(cluster.wrong(), IsEmpty());
    for (const auto& step : cluster.walked().cluster) {
      if (step.position == stage::callers) return std::string(to_string(step.is)) + " " + step.value;
    }
    return std::string("nothing");
  };
  EXPECT_EQ(describe("True"), "good " + quoted("ends 2027"));
  EXPECT_EQ(describe("False"), "warning " + quoted("ends 2027"));
  EXPECT_EQ(describe("Unknown"), "nothing");
}

/// The outcomes of the steps that are not good, with their codes. Left out are checks for which no agent has facts.
std::set<std::string> not_good(cluster& cluster) {
  std::set<std::string> out;
  const auto found = cluster.walked();
  const auto add = [&](const step& step) {
    const bool lacks_facts = step.is == outcome::unknown && step.row;
    if (step.is != outcome::good && step.is != outcome::skipped && !lacks_facts)
      out.insert(std::string(to_string(step.is)) + " " + std::string(to_string(step.cause)));
  };
  std::ranges::for_each(found.cluster, add);
  for (const auto& node : found.nodes) std::ranges::for_each(node.steps, add);
  return out;
}

TEST(verify, passes_no_condition_of_the_policy_that_is_not_in_order) {
  struct condition {
    const char *type, *status, *reason, *found;
  };
  for (const condition& each : std::initializer_list<condition>{
           {"Ready", "False", "ModuleNotOffered", "wrong policy_not_ready"},
           {"RulesEnforced", "False", "PoliciesUnusable", "wrong rules_not_enforced"},
           {"RulesEnforced", "False", "TooManyKeys", "wrong rules_not_enforced"},
           {"CallerCertificatesValid", "False", "ExpiringSoon", "warning caller_certificate_ends"},
           {"ContainerRuntimesFixed", "False", "Halted", "wrong runtimes_not_fixed"},
           {"ContainerRuntimesFixed", "False", "Fixing", "warning runtimes_not_fixed"},
           {"WithdrawalsHeldBack", "True", "TooManySickNodes", "wrong withdrawals_held_back"},
           {"WatchesRefused", "True", "Forbidden", "wrong watches_refused"},
           {"OfALaterVersion", "False", "Something", "unknown condition_unknown"}}) {
    cluster cluster;
    auto is = nlohmann::json::parse(cluster.is.policy->status);
    if (std::string_view(each.type) == "Ready") is["conditions"].clear();
    is["conditions"].push_back(
        {{"type", each.type}, {"status", each.status}, {"reason", each.reason}, {"message", "why"}});
    cluster.is.policy->status = is.dump();
    EXPECT_THAT(not_good(cluster), ElementsAre(each.found)) << each.type << " " << each.reason;
  }
  cluster in_order;
  auto is = nlohmann::json::parse(in_order.is.policy->status);
  is["conditions"].push_back({{"type", "ContainerRuntimesFixed"}, {"status", "True"}, {"message", "none is left"}});
  is["conditions"].push_back({{"type", "WithdrawalsHeldBack"}, {"status", "False"}, {"message", "none"}});
  in_order.is.policy->status = is.dump();
  EXPECT_THAT(not_good(in_order), IsEmpty());
}

TEST(verify, names_an_aggregated_API_that_does_not_answer) {
  cluster cluster;
  EXPECT_THAT(not_good(cluster), IsEmpty());
  cluster.is.view_api_problem = "503: service unavailable";
  EXPECT_THAT(not_good(cluster), ElementsAre("wrong view_api_silent"));
}

TEST(verify, says_what_the_operator_says_in_the_language_of_the_reader) {
  const text::phrase message{"status.rollout.rest.many", {{"number", "3"}}};
  const auto english = words_of(message, text::language::en), chinese = words_of(message, text::language::zh);
  for (const auto& [type, status] :
       std::initializer_list<std::pair<const char*, const char*>>{{"Ready", "False"},
                                                                  {"RulesEnforced", "False"},
                                                                  {"RulesEnforced", "True"},
                                                                  {"SchedulerReady", "False"},
                                                                  {"SchedulerReady", "True"},
                                                                  {"CallerCertificatesValid", "False"},
                                                                  {"CallerCertificatesValid", "True"},
                                                                  {"ContainerRuntimesFixed", "False"},
                                                                  {"ContainerRuntimesFixed", "True"},
                                                                  {"WithdrawalsHeldBack", "True"},
                                                                  {"WithdrawalsHeldBack", "False"},
                                                                  {"WatchesRefused", "True"},
                                                                  {"OfALaterVersion", "False"}}) {
    cluster cluster;
    cluster.is.policy->scheduler.mode = "Dedicated";
    auto is = nlohmann::json::parse(cluster.is.policy->status);
    if (std::string_view(type) == "Ready") is["conditions"].clear();
    nlohmann::json condition{{"type", type}, {"status", status}, {"reason", "R"}};
    controller::set_message(condition, message);
    is["conditions"].push_back(condition);
    cluster.is.policy->status = is.dump();
    const auto contains = [&](const std::string& words, text::language locale) {
      const auto report = cluster.walked();
      return std::ranges::any_of(report.cluster,
                                 [&](const step& step) { return text_of(step, locale).contains(words); });
    };
    EXPECT_TRUE(contains(english, text::language::en)) << type << " " << status;
    EXPECT_TRUE(contains(chinese, text::language::zh)) << type << " " << status;
  }
}

TEST(verify, does_not_pass_what_the_operator_has_not_said) {
  cluster cluster;
  cluster.is.quotas.emplace_back().key = {"team-a", "cards"};
  EXPECT_THAT(not_good(cluster), ElementsAre("unknown quota_not_looked_at"));
  cluster.is.quotas.clear();
  cluster.policy_ready("Unknown", "Starting");
  EXPECT_THAT(not_good(cluster), ElementsAre("unknown policy_unknown"));
}

TEST(verify, warns_of_a_quota_that_counts_in_part) {
  for (const auto* type : {"ModelsKnown", "PoolsKnown", "CohortCounts"}) {
    cluster cluster;
    auto& quota = cluster.is.quotas.emplace_back();
    quota.key = {"team-a", "cards"};
    quota.status =
        nlohmann::json{{"conditions",
                        {{{"type", "Enforced"}, {"status", "True"}},
                         {{"type", type}, {"status", "False"}, {"message", "no node has a card of model T5"}}}}}
            .dump();
    EXPECT_THAT(not_good(cluster), ElementsAre("warning quota_counts_in_part")) << type;
  }
}

/// The first step of the node with this cause.
std::optional<step> step_of(cluster& cluster, stage_code cause) {
  const auto steps = cluster.walked().nodes.at(0).steps;
  const auto match = std::ranges::find(steps, cause, &step::cause);
  return match == steps.end() ? std::nullopt : std::optional(*match);
}

TEST(verify, warns_of_a_card_that_is_given_twice_if_a_guess_is_right) {
  cluster cluster;
  cluster.first().perhaps_given_twice = {"GPU-a (team/x, team/y)"};
  EXPECT_THAT(not_good(cluster), ElementsAre("warning card_perhaps_given_twice"));
  const auto step = step_of(cluster, stage_code::card_perhaps_given_twice);
  ASSERT_TRUE(step);
  EXPECT_EQ(step->position, stage::pods);
  EXPECT_THAT(text_of(*step, language::en), HasSubstr("GPU-a (team/x, team/y)"));
  EXPECT_EQ(remedy_of(*step, "gpu-1", language::zh),
            words::chinese("verify.card_perhaps_given_twice.remedy", {{"node", "gpu-1"}}));
  cluster.first().given_twice = {"GPU-b (team/z)"};
  EXPECT_THAT(not_good(cluster), ElementsAre("wrong card_given_twice")) << "what is certain comes first";
}

TEST(verify, warns_of_cards_that_get_no_share_because_the_plugin_would_take_a_sick_one) {
  cluster cluster;
  cluster.first().withheld_cards = 3;
  EXPECT_THAT(not_good(cluster), ElementsAre("warning shares_withheld"));
  EXPECT_EQ(step_of(cluster, stage_code::shares_withheld)->value, "3");
  EXPECT_NE(remedy_of(*step_of(cluster, stage_code::shares_withheld), "gpu-1", language::zh), "");
}

/// A node that no one has asked for anything of.
void ask_nothing(cluster& cluster) {
  cluster.asks("vgpu");
  cluster.node_labels.erase("nvidia-device-enable");
  cluster.first().status.reset();
}

TEST(verify, a_node_with_cards_that_no_label_asks_for_is_a_finding_where_it_is_asked_about) {
  cluster cluster;
  ask_nothing(cluster);
  EXPECT_THAT(not_good(cluster), IsEmpty()) << "of all nodes many are not ours";
  cluster.is.whole = false;
  EXPECT_THAT(not_good(cluster), ElementsAre("warning mode_label_missing"));
  EXPECT_EQ(remedy_of(*step_of(cluster, stage_code::mode_label_missing), "gpu-1", language::en),
            words::english("verify.mode_label_missing.remedy", {{"node", "gpu-1"}, {"value", "pgpu, vgpu, mps"}}));
  cluster.node_labels.clear();
  EXPECT_THAT(not_good(cluster), IsEmpty()) << "without cards there is nothing to ask for";
}

TEST(verify, a_label_whose_key_is_mistyped_comes_with_the_command) {
  cluster cluster;
  ask_nothing(cluster);
  cluster.node_labels["nvidia-device-enabled"] = "pgpu";
  EXPECT_THAT(not_good(cluster), ElementsAre("wrong mode_label_mistyped"));
  const auto step = step_of(cluster, stage_code::mode_label_mistyped);
  EXPECT_EQ(step->value, "nvidia-device-enabled=pgpu");
  EXPECT_EQ(
      remedy_of(*step, "gpu-1", language::en),
      words::english("verify.mode_label_mistyped.remedy", {{"node", "gpu-1"}, {"other", "nvidia-device-enable=pgpu"}}));
  cluster.node_labels["nvidia-device-enable"] = "none";
  EXPECT_FALSE(step_of(cluster, stage_code::mode_label_mistyped)) << "someone has asked";
}

std::vector<std::string> codes_of(const std::vector<step>& steps) {
  std::vector<std::string> out;
  for (const auto& step : steps)
    if (step.is != outcome::good && step.is != outcome::skipped) out.emplace_back(to_string(step.cause));
  return out;
}

TEST(verify, of_one_node_only_what_concerns_it_counts_and_the_rest_is_a_number) {
  cluster all;
  all.is.refused_declarations = {{{"kube-public", "cf-crl-a"}, "example.com/a", "a reason", "其一"}};
  all.is.view_api_problem = "503";
  all.is.quotas.emplace_back().key = {"team-a", "cards"};
  auto of_node = all;
  of_node.is.whole = false;
  of_node.is.quotas.clear();
  const auto report = about_node(of_node.walked(), all.walked());
  EXPECT_EQ(problems(report), 0U);
  EXPECT_THAT(codes_of(report.cluster), IsEmpty());
  EXPECT_EQ(report.other_findings, 3U);

  all.is.leader->holder.clear();
  all.is.policy->scheduler.mode = "Dedicated";
  of_node.is.leader = all.is.leader;
  of_node.is.policy = all.is.policy;
  const auto leaderless = about_node(of_node.walked(), all.walked());
  EXPECT_THAT(codes_of(leaderless.cluster), ElementsAre("scheduler_asks_no_one", "leader_missing"));
  EXPECT_EQ(leaderless.other_findings, 2U) << "what the node's report has is not counted again";
  EXPECT_FALSE(all.walked().other_findings.has_value());
}

TEST(verify, names_a_card_that_the_agent_finds_sick_while_its_plugin_offers_it) {
  cluster cluster;
  cluster.first().cards.resize(2);
  cluster.first().cards[0].uuid = "GPU-a", cluster.first().cards[0].health = "XID 79";
  cluster.first().cards[1].uuid = "GPU-b", cluster.first().cards[1].health = "Healthy";
  EXPECT_THAT(not_good(cluster), ElementsAre("wrong cards_sick"));
  for (const auto& step : cluster.walked().nodes.front().steps)
    if (step.cause == stage_code::cards_sick) {
      EXPECT_EQ(step.value, "GPU-a (XID 79)");
      EXPECT_EQ(remedy_of(step, "gpu-1", language::en),
                words::english("verify.cards_sick.remedy", {{"node", "gpu-1"}, {"other", "79"}}));
    }
  cluster.first().cards[0].health = "Unhealthy";
  for (const auto& step : cluster.walked().nodes.front().steps)
    if (step.cause == stage_code::cards_sick)
      EXPECT_EQ(remedy_of(step, "gpu-1", language::en),
                words::english("verify.cards_sick.without_xid", {{"node", "gpu-1"}}))
          << "no number is made up";
  cluster.first().old_report = {"the agent has not reported for 9 m"};
  EXPECT_THAT(not_good(cluster), ElementsAre("warning agent_gone")) << "an old report says nothing of now";
}

TEST(verify, a_file_without_conditions_leaves_the_state_of_a_node_unknown) {
  cluster cluster;
  cluster.node().ready = kube::condition_status::unknown;
  EXPECT_THAT(not_good(cluster), ElementsAre("unknown node_state_unseen"));
  cluster.node().ready_since = 1;
  EXPECT_THAT(not_good(cluster), testing::Contains("wrong node_not_ready")) << "the condition is there, and Unknown";
}

TEST(verify, names_annotations_of_products_that_no_one_can_read) {
  const auto faults = [](const std::string& name, const std::string& value) {
    cluster cluster;
    std::map<std::string, std::string> annotations{{name, value}};
    cluster.node().annotations = packed(annotations);
    return not_good(cluster);
  };
  const std::string list = "hami.io/node-nvidia-register", unreadable = "wrong annotation_unreadable";
  for (const auto* value : {"[{", "{}", "[7]", "[{\"count\": 1}]", "GPU-a,10,16384,100",
                            "GPU-a,10,16384,100,T4,0,true,0:", "GPU-a,10,16Gi,100,T4,0,true:"})
    EXPECT_THAT(faults(list, value), ElementsAre(unreadable)) << value;
  for (const auto* value : {"[]", "[{\"id\": \"GPU-a\"}]", "", "GPU-a,10,16384,100,T4,0,true:",
                            "GPU-a,10,16384,100,T4,0,true,0,hami-core:GPU-b,10,16384,100,T4,0,true,1,hami-core:"})
    EXPECT_THAT(faults(list, value), IsEmpty()) << value;
  EXPECT_THAT(faults("hami.io/node-handshake", "Deleted_2026-01-02 03:04:05"),
              ElementsAre("warning left_out_by_product"));
  EXPECT_THAT(faults("hami.io/node-handshake", "Requesting_2026-01-02 03:04:05"), IsEmpty());
}

TEST(verify, a_sick_card_stays_one_while_the_mode_changes) {
  for (const auto phase : {phases::waiting, phases::draining, phases::removing, phases::enrolling}) {
    cluster cluster;
    cluster.phase(phase, "R", "why");
    cluster.first().cards.resize(1);
    cluster.first().cards[0].uuid = "GPU-a", cluster.first().cards[0].health = "Xid79";
    EXPECT_THAT(not_good(cluster), testing::Contains("wrong cards_sick")) << phase;
    EXPECT_THAT(not_good(cluster), testing::Contains(testing::StartsWith("changing ")))
        << phase << " is not hidden by it";
  }
}

TEST(verify, a_node_in_a_change_has_both_modes) {
  cluster cluster;
  EXPECT_EQ(cluster.walked().nodes.front().shown_mode, "vgpu");
  cluster.node().taints.push_back({"quartermaster.io/switching", "pgpu.vgpu", "NoSchedule"});
  EXPECT_EQ(cluster.walked().nodes.front().shown_mode, "pgpu -> vgpu");
  EXPECT_EQ(cluster.walked().nodes.front().mode, "vgpu");
}

TEST(verify, names_pods_that_the_ledger_cannot_count) {
  cluster cluster;
  for (int i = 0; i < 7; ++i) cluster.first().uncounted_pods.push_back({"team/p" + std::to_string(i) + " (why)"});
  EXPECT_THAT(not_good(cluster), ElementsAre("wrong pods_not_counted"));
  for (const auto& step : cluster.walked().nodes.front().steps)
    if (step.cause == stage_code::pods_not_counted) {
      EXPECT_THAT(step.other, testing::AllOf(HasSubstr("team/p0 (why), "), testing::EndsWith("team/p4 (why), …")));
    }
}

/// A card may have been taken out, so the scheduler need not have been passed by.
TEST(verify, S4_pods_on_cards_that_are_not_there_are_told_from_pods_without_limits) {
  cluster cluster;
  cluster.first().uncounted_pods = {
      {"uncounted.pod",
       {{"pod", "team/gone"}, {"reason", text::phrase{"uncounted.no_such_card", {{"card", "GPU-x"}}}}}},
      {"uncounted.pod", {{"pod", "team/wrong"}, {"reason", text::phrase{"uncounted.reason", {{"text", "why"}}}}}}};
  EXPECT_THAT(not_good(cluster), ElementsAre("wrong pods_not_counted", "wrong pods_on_missing_cards"));
  for (const auto& step : cluster.walked().nodes.front().steps) {
    if (step.cause == stage_code::pods_not_counted) EXPECT_THAT(step.other, Not(HasSubstr("team/gone")));
    if (step.cause != stage_code::pods_on_missing_cards) continue;
    EXPECT_THAT(step.other, testing::AllOf(HasSubstr("team/gone"), HasSubstr("GPU-x")));
    EXPECT_EQ(remedy_of(step, "gpu-1", language::en),
              words::english("verify.pods_on_missing_cards.remedy", {{"node", "gpu-1"}}));
  }
}

TEST(verify, S4_a_mode_on_a_node_of_which_nothing_says_that_it_has_a_card) {
  cluster cluster;
  cluster.node_labels = {{"nvidia-device-enable", "vGPU"}, {"quartermaster.io/module", "vgpu"}};
  cluster.node().allocatable = cluster.node().capacity = {{"tencent.com/vcuda-core", 0}};
  cluster.phase(phases::stuck, "NothingAdvertised");
  EXPECT_THAT(not_good(cluster), testing::Contains("wrong no_cards"));
  cluster.node_labels["nvidia.com/gpu.present"] = "true";
  EXPECT_THAT(not_good(cluster), testing::Contains("wrong nothing_advertised"));
}

/// Every word that a reconciler may write as a reason: those of two parts and more in its sources. More than there are
/// reasons, so a new one cannot be missed.
std::set<std::string> words_of_reconcilers() {
  static const std::regex word(R"re("([A-Z][a-z]+(?:[A-Z][a-z]*)+)")re");
  std::set<std::string> out{"AReasonOfALaterVersion"};
  for (const auto* folder : {"../reconcilers", "../cli/controller"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(std::filesystem::path(TEST_DATA) / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
      std::ifstream file(entry.path());
      const std::string text{std::istreambuf_iterator<char>(file), {}};
      for (std::sregex_iterator match(text.begin(), text.end(), word), end; match != end; ++match)
        out.insert((*match)[1]);
    }
  return out;
}

TEST(verify, passes_no_reason_that_any_reconciler_can_give) {
  const auto reasons = words_of_reconcilers();
  for (const auto* known : {"UnsuitableCards", "DrainTimeout", "NotOffered", "MaxUnavailable", "NoSchedulerAsks"})
    EXPECT_TRUE(reasons.contains(known)) << known;
  EXPECT_GT(reasons.size(), 80u);
  // In short: each reason with a third of the phases and conditions.
  auto left_out = [count = 0]() mutable { return count++ % test::rounds(3, 1) != 0; };
  for (const auto phase : {phases::waiting, phases::draining, phases::removing, phases::enrolling, phases::verifying,
                           phases::stuck, phases::rolled_back, phases::refused})
    for (const auto& reason : reasons) {
      if (left_out()) continue;
      cluster cluster;
      cluster.phase(phase, reason, "why");
      EXPECT_THAT(not_good(cluster), testing::Not(IsEmpty())) << phase << " " << reason;
    }
  struct condition {
    const char *type, *status;
  };
  for (const condition& each : std::initializer_list<condition>{{"Ready", "False"},
                                                                {"Ready", "Unknown"},
                                                                {"RulesEnforced", "False"},
                                                                {"RulesEnforced", "Unknown"},
                                                                {"SchedulerReady", "False"},
                                                                {"SchedulerReady", "Unknown"},
                                                                {"CallerCertificatesValid", "False"},
                                                                {"ContainerRuntimesFixed", "False"},
                                                                {"WithdrawalsHeldBack", "True"},
                                                                {"WatchesRefused", "True"},
                                                                {"ConditionOfALaterVersion", "False"},
                                                                {"ConditionOfALaterVersion", "Unknown"}})
    for (const auto& reason : reasons) {
      if (left_out()) continue;
      if (std::string_view(each.type) == "Ready" && reason == "RollingOut")
        continue;  // the step of the DaemonSet says it
      cluster cluster;
      cluster.is.policy->scheduler.mode = "Dedicated";
      auto is = nlohmann::json::parse(cluster.is.policy->status);
      if (std::string_view(each.type) == "Ready") is["conditions"].clear();
      is["conditions"].push_back({{"type", each.type}, {"status", each.status}, {"reason", reason}});
      cluster.is.policy->status = is.dump();
      EXPECT_THAT(not_good(cluster), testing::Not(IsEmpty())) << each.type << " " << each.status << " " << reason;
    }
  for (const auto* type : {"Enforced", "ModelsKnown", "PoolsKnown", "CohortCounts"})
    for (const auto& reason : reasons) {
      if (left_out()) continue;
      cluster cluster;
      auto& quota = cluster.is.quotas.emplace_back();
      quota.key = {"team-a", "cards"};
      const nlohmann::json enforced{{"type", "Enforced"}, {"status", "True"}};
      const nlohmann::json broken{{"type", type}, {"status", "False"}, {"reason", reason}};
      quota.status = nlohmann::json{{"conditions", std::string_view(type) == "Enforced"
                                                       ? nlohmann::json::array({broken})
                                                       : nlohmann::json::array({enforced, broken})}}
                         .dump();
      EXPECT_THAT(not_good(cluster), testing::Not(IsEmpty())) << type << " " << reason;
    }
}

TEST(verify, golden_words_in_chinese) {
  const auto is_chinese = [](std::string_view text) {
    return std::ranges::any_of(text, [](char letter) { return static_cast<unsigned char>(letter) >= 0xE3; });
  };
  const auto is_sentence = [](std::string text) {
    for (const auto* part : {"VALUE", "OTHER"})
      for (auto found = text.find(part); found != std::string::npos; found = text.find(part))
        text.erase(found, std::string_view(part).size());
    return text.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos;
  };
  for (std::size_t i = 1; i < code_count; ++i) {
    const step step{stage::policy, outcome::wrong, static_cast<stage_code>(i), "VALUE", "OTHER", {}};
    for (const auto& [en, zh] : {std::pair(text_of(step, language::en), text_of(step, language::zh)),
                                 std::pair(remedy_of(step, "n", language::en), remedy_of(step, "n", language::zh))}) {
      const bool is_command = en.starts_with("kubectl ") && en == zh;
      EXPECT_TRUE(!is_sentence(en) || is_chinese(zh) || is_command) << to_string(step.cause) << ": " << zh;
      EXPECT_EQ(en.empty(), zh.empty()) << to_string(step.cause);
    }
  }
}

struct defect {
  const char* name;
  std::function<void(cluster&)> seed;
  std::vector<std::string> found;
};

/// Each breaks one thing the way it breaks in a real cluster, consequences included, and is found once.
const std::vector<defect> defects{
    {"label that names no mode",
     [](cluster& c) {
       c.asks("vgppu");
       c.phase(phases::refused, "UnknownMode");
     },
     {"unknown_mode"}},
    {"two labels that disagree",
     [](cluster& c) {
       c.asks("vgpu");
       c.node_labels["quartermaster.io/mode"] = "mps";
       c.phase(phases::refused, "ConflictingLabels");
     },
     {"conflicting_labels"}},
    {"label of another product's plugin",
     [](cluster& c) {
       c.asks("vgpu");
       c.node_labels["vgpu-manager"] = "device-plugin";
       c.phase(phases::refused, "ForeignPlugin");
     },
     {"foreign_label"}},
    {"device plugin of another product",
     [](cluster& c) {
       c.asks("vgpu");
       c.first().foreign.here = {{"kube-system/theirs-x", "kube-system/theirs", "HAMi", false}};
       c.phase(phases::refused, "ForeignPlugin");
     },
     {"foreign_label"}},
    {"label of a device configuration that names a module that is off",
     [](cluster& c) {
       c.asks("vgpu");
       c.node_labels.erase("nvidia-device-enable");
       c.node_labels["cards"] = "yes";
       c.is.declared = {{"cards", "yes", "mps"}};
       c.is.policy->modules["mps"].enabled = false;
       c.first().status->requested_mode = "mps";
       c.phase(phases::disabled, "ModuleDisabled");
     },
     {"module_off"}},
    {"admission policies that are gone",
     [](cluster& c) {
       auto status = nlohmann::json::parse(c.is.policy->status);
       status["conditions"].push_back(
           {{"type", "RulesEnforced"}, {"status", "False"}, {"reason", "PoliciesUnusable"}, {"message", "gone"}});
       c.is.policy->status = status.dump();
     },
     {"rules_not_enforced"}},
    {"a scheduler without certificates",
     [](cluster& c) {
       scheduled(c, "Dedicated", {{"status", "False"}, {"reason", "CertificatesMissing"}, {"message", "no Secret"}},
                 nlohmann::json::array());
     },
     {"scheduler_not_ready"}},
    {"a scheduler in trouble next to a module in trouble",
     [](cluster& c) {
       c.policy_ready("False", "ImageMissing", "mps: no image");
       scheduled(c, "Dedicated", {{"status", "False"}, {"reason", "VersionUnknown"}, {"message", "not said"}},
                 nlohmann::json::array());
     },
     {"policy_not_ready", "scheduler_not_ready"}},
    {"a scheduler that pods still wait for",
     [](cluster& c) {
       scheduled(c, "None", {{"status", "False"}, {"reason", "PodsWait"}, {"message", "1 pod waits"}},
                 nlohmann::json::array());
     },
     {"scheduler_leaving"}},
    {"control-plane nodes in every trouble",
     [](cluster& c) {
       scheduled(
           c, "StaticPod", {{"status", "False"}, {"reason", "Stopped"}, {"message", "1 of 5 control-plane nodes ask"}},
           {control_plane_node("cp-1", "Applied", "", 1), control_plane_node("cp-2", "Stopped", "edited", 0),
            control_plane_node("cp-3", "RolledBack", "no lease", 0),
            control_plane_node("cp-4", "NoAgent", "no agent", 0), control_plane_node("cp-5", "Waiting", "cp-2", 0)});
     },
     {"control_plane_node_stopped", "control_plane_node_rolled_back", "control_plane_node_without_agent",
      "control_plane_node_not_ready"}},
    {"a roll-out that halted",
     [](cluster& c) {
       c.plugin_breaks("ImagePullBackOff");
       c.vgpu_set().annotations =
           packed({{"state.quartermaster.io/rollout", rollout_record{"", "gpu-1", "a.b", 1, {}}.to_string()}});
       c.module_has("vgpu", "RolloutHalted", "its plugin pod on node gpu-1: ImagePullBackOff. Put it back");
       c.phase(phases::verifying, "PluginNotReady", "plugin pod is not ready");
     },
     {"policy_not_ready"}},
    {"node not ready, and its plugin pod with it",
     [](cluster& c) {
       c.plugin_breaks("NodeLost");
       c.node().ready = kube::condition_status::unknown;
       c.node().ready_since = 1;
     },
     {"node_not_ready"}},
    {"node cordoned", [](cluster& c) { c.node().unschedulable = true; }, {"node_cordoned"}},
    {"module off",
     [](cluster& c) {
       c.asks("mps");
       c.is.policy->modules["mps"].enabled = false;
       c.phase(phases::disabled, "ModuleDisabled");
     },
     {"module_off"}},
    {"no policy",
     [](cluster& c) {
       c.asks("vgpu");
       c.is.policy.reset();
       c.is.daemon_sets.clear();
       c.phase(phases::disabled, "NoPolicy");
     },
     {"policy_missing"}},
    {"cards too old for mps",
     [](cluster& c) {
       c.asks("mps");
       c.node_labels["nvidia.com/gpu.compute.major"] = "6";
       c.node_labels["nvidia.com/gpu.compute.minor"] = "1";
       c.phase(phases::refused, "UnsuitableCards");
     },
     {"preflight:compute_capability"}},
    {"driver too old for mps",
     [](cluster& c) {
       c.asks("mps");
       c.node_labels["nvidia.com/cuda.driver-version.full"] = "470.256.02";
       c.node_labels["nvidia.com/cuda.runtime-version.major"] = "11";
       c.node_labels["nvidia.com/cuda.runtime-version.minor"] = "4";
       c.phase(phases::refused, "UnsuitableCards");
     },
     {"preflight:cuda"}},
    {"cards cut by MIG under vgpu",
     [](cluster& c) {
       c.asks("vgpu");
       c.node_labels["nvidia.com/mig.capable"] = "true";
       c.node_labels["nvidia.com/mig.strategy"] = "mixed";
       c.phase(phases::refused, "UnsuitableCards");
     },
     {"preflight:mig"}},
    {"plugin image cannot be pulled", [](cluster& c) { c.plugin_breaks("ImagePullBackOff"); }, {"plugin_not_ready"}},
    {"plugin crashes", [](cluster& c) { c.plugin_breaks("CrashLoopBackOff"); }, {"plugin_not_ready"}},
    {"DaemonSet has no pod here",
     [](cluster& c) {
       c.plugin_breaks("");
       c.first().plugins.clear();
       c.vgpu_set().desired = c.vgpu_set().updated = 0;
       c.phase(phases::stuck, "NoPlugin");
     },
     {"plugin_missing"}},
    {"a taint keeps its pod away",
     [](cluster& c) {
       c.plugin_breaks("");
       c.first().plugins.clear();
       c.vgpu_set().desired = c.vgpu_set().updated = 0;
       c.node().taints = {{"dedicated", "gpu", "NoSchedule"}, {"nvidia.com/gpu", "present", "NoSchedule"}};
       c.phase(phases::stuck, "UntoleratedTaint");
     },
     {"taint_not_tolerated"}},
    {"a first enrolment was rolled back to no mode",
     [](cluster& c) {
       c.node_labels.erase("quartermaster.io/module");
       c.first().plugins.clear();
       c.node().allocatable.clear(), c.node().capacity.clear();
       c.first().status->actual_mode = "none";
       c.phase("RolledBack", "VerifyTimeout", "vgpu did not come up in 5 minutes");
     },
     {"rolled_back"}},
    {"module label taken off by hand",
     [](cluster& c) {
       c.node_labels.erase("quartermaster.io/module");
       c.first().plugins.clear();
       c.node().allocatable = {{"tencent.com/vcuda-core", 0}};
     },
     {"module_label_missing"}},
    {"another plugin on the node",
     [](cluster& c) { c.node().allocatable.insert(c.node().allocatable.begin(), {"nvidia.com/gpu", 4}); },
     {"foreign_plugin"}},
    {"a DRA driver gives out the same cards",
     [](cluster& c) { c.first().claimed_devices.emplace_back("4 devices"); },
     {"foreign_plugin"}},
    {"limits that cannot be read",
     [](cluster& c) { c.is.old_quotas_trouble = {"lab is no object"}; },
     {"old_quotas_unreadable"}},
    {"another plugin holds up enrolment",
     [](cluster& c) {
       c.asks("vgpu");
       c.node().allocatable = {{"nvidia.com/gpu", 4}};
       c.phase(phases::enrolling, "StillAdvertised");
     },
     {"foreign_plugin"}},
    {"plugin advertises nothing",
     [](cluster& c) {
       c.node().allocatable = c.node().capacity = {{"tencent.com/vcuda-core", 0}};
       c.phase(phases::stuck, "NothingAdvertised");
     },
     {"nothing_advertised"}},
    {"a card is unhealthy",
     [](cluster& c) { c.node().allocatable = {{"tencent.com/vcuda-core", 300}, {"tencent.com/vcuda-memory", 180}}; },
     {"cards_unhealthy"}},
    {"a card is gone",
     [](cluster& c) {
       c.node().allocatable = c.node().capacity = {{"tencent.com/vcuda-core", 300}, {"tencent.com/vcuda-memory", 180}};
     },
     {"cards_missing"}},
    {"pods hold more than there is",
     [](cluster& c) { c.first().claims = {{"team/a", {{"tencent.com/vcuda-core", 500}}}}; },
     {"overbooked"}},
    {"a card is given out twice",
     [](cluster& c) { c.first().given_twice = {"GPU-a (team/x, team/y)"}; },
     {"card_given_twice"}},
    {"pods hold more than there is, so a card is given out twice",
     [](cluster& c) {
       c.first().claims = {{"team/a", {{"tencent.com/vcuda-core", 500}}}};
       c.first().given_twice = {"GPU-a (team/x, team/y)"};
     },
     {"overbooked"}},
    {"a pod of the old mode is still there",
     [](cluster& c) { c.first().claims = {{"team/a", {{"nvidia.com/gpu", 1}}}}; },
     {"pod_of_other_mode"}},
    {"change waits for a pod",
     [](cluster& c) {
       c.node_labels["nvidia-device-enable"] = "pgpu";
       c.first().status->requested_mode = "pgpu";
       c.first().status->blockers = {"team/a"};
       c.first().claims = {{"team/a", {{"tencent.com/vcuda-core", 20}}}};
       c.node().taints = {{"quartermaster.io/switching", "vgpu.pgpu", "NoSchedule"}};
       c.phase(phases::draining, "PodsHoldCards");
     },
     {"waits_for_pods"}},
    {"taint left behind",
     [](cluster& c) { c.node().taints = {{"quartermaster.io/switching", "pgpu.vgpu", "NoSchedule"}}; },
     {"taint_left"}},
    {"change was rolled back",
     [](cluster& c) {
       c.node_labels["nvidia-device-enable"] = "pgpu";
       c.first().status->requested_mode = "pgpu";
       c.phase("RolledBack", "VerifyTimeout", "pgpu did not come up in 5 minutes");
     },
     {"rolled_back"}},
    {"change stuck between two modes",
     [](cluster& c) {
       c.asks("pgpu");
       c.first().status->requested_mode = "pgpu";
       c.node().taints = {{"quartermaster.io/switching", "vgpu.pgpu", "NoSchedule"}};
       c.phase(phases::stuck, "PluginLeaving", "plugin pod quartermaster/x of mode vgpu does not go");
     },
     {"stuck"}},
    {"no one leads", [](cluster& c) { c.is.leader->holder.clear(); }, {"leader_missing"}},
    {"no one leads, and pods are sent to a scheduler that asks",
     [](cluster& c) {
       c.is.leader->holder.clear();
       c.is.policy->scheduler.mode = "Dedicated";
     },
     {"leader_missing", "scheduler_asks_no_one"}},
    {"the leader is silent, and a new label is not followed",
     [](cluster& c) {
       c.asks("pgpu");
       c.first().status->requested_mode = "none";
       c.is.leader->age = std::chrono::seconds(400);
     },
     {"leader_silent"}},
    {"a node is not looked at",
     [](cluster& c) {
       c.asks("pgpu");
       c.first().status.reset();
     },
     {"not_enrolled"}},
    {"DaemonSet is not there",
     [](cluster& c) { c.is.daemon_sets.erase(c.is.daemon_sets.begin()); },
     {"daemonset_missing"}},
    {"policy cannot be carried out",
     [](cluster& c) {
       c.is.daemon_sets.erase(c.is.daemon_sets.begin());
       c.policy_ready("False", "NameTaken", "pgpu: DaemonSet nvidia-device-plugin-ds belongs to helm");
     },
     {"policy_not_ready"}},
    {"types are not there",
     [](cluster& c) {
       c.is.missing_types = {"acceleratorpolicies", "acceleratornodes", "resourcerules"};
       c.is.policy.reset();
       c.is.daemon_sets.clear();
       c.is.leader.reset();
       c.is.nodes.clear();
       c.is.nodes.emplace_back().node.key.name = "gpu-1";
       c.node().ready = kube::condition_status::yes;
       c.node_labels.erase("quartermaster.io/module");
     },
     {"types_missing"}},
};

TEST(verify, S4_each_seeded_defect_is_found_and_none_is_invented) {
  EXPECT_GE(defects.size(), 10U);
  for (const auto& defect : defects) {
    cluster broken;
    defect.seed(broken);
    auto found = broken.wrong(), expected = defect.found;
    std::ranges::sort(found);
    std::ranges::sort(expected);
    EXPECT_EQ(found, expected) << defect.name;
  }
}

/// All reasons of node_intent: whatever the operator refuses is wrong in one row.
TEST(verify, S4_every_refusal_is_shown_once) {
  struct refusal {
    const char* reason;
    const char* mode;
    std::function<void(cluster&)> seed;
    const char* code;
  };
  const std::vector<refusal> refusals{
      {"UnknownMode", "vgppu", [](cluster&) {}, "unknown_mode"},
      {"ConflictingLabels", "vgpu", [](cluster& c) { c.node_labels["quartermaster.io/mode"] = "mps"; },
       "conflicting_labels"},
      {"ForeignPlugin", "vgpu",
       [](cluster& c) { c.first().foreign.here = {{"kube-system/x", "kube-system/theirs", "HAMi", false}}; },
       "foreign_label"},
      {"UnsuitableNode", "vgpu", [](cluster& c) { c.node().architecture = "riscv64"; }, "preflight:platform"},
      {"UnsuitableNode", "vgpu", [](cluster& c) { c.node().operating_system = "windows"; }, "preflight:platform"},
      {"UnsuitableCards", "mps", [](cluster& c) { c.node_labels["nvidia.com/gpu.compute.major"] = "6"; },
       "preflight:compute_capability"},
      {"UnsuitableCards", "vgpu",
       [](cluster& c) {
         c.node_labels["nvidia.com/mig.capable"] = "true";
         c.node_labels["nvidia.com/mig.strategy"] = "single";
       },
       "preflight:mig"},
      {"UnsuitableRuntime", "vgpu", [](cluster& c) { c.node().container_runtime = "containerd://2.1.4"; }, "refused"},
      {"NotOffered", "cgpu",
       [](cluster& c) {
         c.node_labels.erase("nvidia-device-enable");
         c.node_labels["ack.node.gpu.schedule"] = "cgpu";
         c.is.policy->modules["gpushare"].enabled = true;
         kube::daemon_set set;
         set.key = {"quartermaster", "gpushare-device-plugin-ds"};
         set.labels = packed({{"quartermaster.io/module", "gpushare"}});
         c.is.daemon_sets.push_back(std::move(set));
       },
       "refused"},
      {"NoPolicy", "vgpu",
       [](cluster& c) {
         c.is.policy.reset();
         c.is.daemon_sets.clear();
       },
       "policy_missing"},
      {"ModuleDisabled", "pgpu", [](cluster& c) { c.is.policy->modules["pgpu"].enabled = false; }, "module_off"},
  };
  for (const auto& [reason, mode, seed, code] : refusals) {
    SCOPED_TRACE(std::string(reason) + " of " + mode);
    cluster refused;
    refused.asks(mode);
    seed(refused);
    refused.node().labels = packed(refused.node_labels);
    const auto intent =
        intent_of(refused.node(), refused.is.policy ? &*refused.is.policy : nullptr, {}, refused.first().foreign);
    EXPECT_EQ(intent.reason, reason);
    refused.phase(intent.reason == module_disabled ? phases::disabled : phases::refused, intent.reason,
                  words_of(intent.message, text::language::en));
    EXPECT_THAT(refused.wrong(), ElementsAre(code));
  }
  cluster runtime;
  runtime.asks("vgpu");
  runtime.node().container_runtime = "containerd://2.1.4";
  runtime.phase(phases::refused, "UnsuitableRuntime");
  const auto steps = runtime.walked().nodes.at(0).steps;
  const auto row = std::ranges::find(steps, stage_code::refused, &step::cause);
  ASSERT_NE(row, steps.end());
  EXPECT_EQ(row->position, stage::enrolment);
  EXPECT_EQ(row->value, "UnsuitableRuntime");
  EXPECT_EQ(row->other, words::english("intent.runtime", {{"mode", "vgpu"}, {"below", "2.0"}, {"version", "2.1.4"}}));
}

TEST(verify, what_the_operator_has_not_come_to_yet_is_unsettled_and_nothing_else_is) {
  cluster settled;
  EXPECT_FALSE(unsettled(settled.walked()));
  settled.phase("RolledBack", "VerifyTimeout", "pgpu did not come up in 5 minutes");
  EXPECT_FALSE(unsettled(settled.walked()));
  cluster unread, unseen, behind;
  unread.is.policy->generation += 1;
  EXPECT_TRUE(unsettled(unread.walked()));
  unseen.asks("pgpu");
  unseen.first().status.reset();
  EXPECT_TRUE(unsettled(unseen.walked()));
  behind.asks("pgpu");
  behind.first().status->requested_mode = "none";
  EXPECT_TRUE(unsettled(behind.walked()));
  behind.is.leader->holder.clear();
  EXPECT_FALSE(unsettled(behind.walked())) << "no one leads: waiting helps nothing";
}

TEST(verify, S4_every_finding_has_words_and_a_remedy_in_both_languages) {
  std::set<stage_code> seen;
  for (const auto& defect : defects) {
    cluster broken;
    defect.seed(broken);
    const auto found = broken.walked();
    const auto check = [&](const step& step) {
      if (step.is != outcome::wrong) return;
      seen.insert(step.cause);
      for (const auto entry : {language::en, language::zh}) {
        EXPECT_NE(text_of(step, entry), "") << defect.name;
        EXPECT_NE(remedy_of(step, "gpu-1", entry), "") << defect.name;
        for (const auto mark : {"{value}", "{other}", "{node}", "{found}", "{needed}"}) {
          EXPECT_THAT(text_of(step, entry), testing::Not(HasSubstr(mark)));
          EXPECT_THAT(remedy_of(step, "gpu-1", entry), testing::Not(HasSubstr(mark)));
        }
      }
    };
    std::ranges::for_each(found.cluster, check);
    for (const auto& node : found.nodes) std::ranges::for_each(node.steps, check);
  }
  EXPECT_GE(seen.size(), 31U);
}

TEST(verify, a_label_that_names_no_mode_is_told_what_is_allowed_in_both_languages) {
  cluster mistyped;
  mistyped.asks("vgppu");
  mistyped.phase(phases::refused, "UnknownMode");
  const auto found = mistyped.walked();
  const auto& steps = found.nodes.at(0).steps;
  const auto label = std::ranges::find(steps, stage_code::unknown_mode, &step::cause);
  ASSERT_NE(label, steps.end());
  const auto unknown = [](const auto& words_in, const char* allowed) {
    return words_in("intent.label_unknown_with_hint",
                    {{"label", "nvidia-device-enable=vgppu"}, {"allowed", allowed}, {"hint", "vgpu"}});
  };
  EXPECT_THAT(text_of(*label, language::en),
              HasSubstr(unknown(words::english, "pgpu, vgpu, enable, mps, hami, share and gpushare")));
  EXPECT_THAT(text_of(*label, language::zh),
              HasSubstr(unknown(words::chinese, "pgpu、vgpu、enable、mps、hami、share、gpushare")));
  EXPECT_EQ(name_of(stage::label, language::zh), words::chinese("verify.stage.label.name"));
  EXPECT_EQ(label->value, "nvidia-device-enable=vgpu") << "what was meant";
  EXPECT_EQ(remedy_of(*label, "gpu-1", language::en),
            words::english("verify.unknown_mode.remedy", {{"node", "gpu-1"}, {"value", "nvidia-device-enable=vgpu"}}));

  cluster strange;
  strange.asks("vgpu");
  strange.node_labels.erase("nvidia-device-enable");
  strange.node_labels["quartermaster.io/mode"] = "something-else";
  const auto unlike = step_of(strange, stage_code::unknown_mode);
  ASSERT_TRUE(unlike);
  EXPECT_EQ(unlike->value, "quartermaster.io/mode=MODE") << "by the key that was written";

  cluster two;
  two.asks("vgpu");
  two.node_labels["quartermaster.io/mode"] = "mps";
  two.phase(phases::refused, "ConflictingLabels");
  const auto both = two.walked();
  const auto match = std::ranges::find(both.nodes.at(0).steps, stage_code::conflicting_labels, &step::cause);
  ASSERT_NE(match, both.nodes.at(0).steps.end());
  EXPECT_THAT(text_of(*match, language::zh),
              HasSubstr(words::chinese("intent.labels_disagree", {{"label", "nvidia-device-enable=vgpu"},
                                                                  {"other", "quartermaster.io/mode=mps"}})));
}

TEST(verify, independent_defects_are_all_found) {
  cluster cluster;
  cluster.plugin_breaks("ImagePullBackOff");
  cluster.node().unschedulable = true;
  cluster.is.policy->modules["extra"].enabled = true;
  cluster.is.leader->holder.clear();
  EXPECT_THAT(cluster.wrong(), ElementsAre("leader_missing", "node_cordoned", "plugin_not_ready"));
}

TEST(verify, a_missing_driver_explains_a_plugin_that_crashes_but_not_one_whose_image_is_missing) {
  cluster crashes;
  crashes.plugin_breaks("CrashLoopBackOff");
  crashes.node_labels["nvidia.com/cuda.driver-version.full"] = "340.108";
  EXPECT_THAT(crashes.wrong(), ElementsAre("preflight:driver"));
  cluster pulls;
  pulls.plugin_breaks("ErrImagePull");
  pulls.node_labels["nvidia.com/cuda.driver-version.full"] = "340.108";
  EXPECT_THAT(pulls.wrong(), ElementsAre("preflight:driver", "plugin_not_ready"));
}

TEST(verify, a_change_under_way_is_told_as_such) {
  cluster cluster;
  cluster.plugin_breaks("");
  cluster.first().plugins.clear();
  cluster.asks("pgpu");
  cluster.first().status->requested_mode = "pgpu";
  cluster.policy_ready("True", "RolledOut");
  cluster.phase(phases::removing, "PluginLeaving", "waits until plugin pod quartermaster/x of mode vgpu is gone");
  EXPECT_THAT(cluster.wrong(), ElementsAre("change_under_way"));
  EXPECT_EQ(problems(cluster.walked()), 0U) << "it goes on";
  EXPECT_FALSE(all_good(cluster.walked()));
}

TEST(verify, while_a_node_changes_its_daemon_set_is_no_finding_of_its_own) {
  cluster cluster;
  cluster.asks("vgpu");
  cluster.node_labels["quartermaster.io/module"] = "vgpu";
  cluster.vgpu_set().desired = cluster.vgpu_set().updated = 1;
  cluster.policy_ready("False", "RollingOut", "ready of desired: vgpu 0/1");
  cluster.phase(phases::enrolling, "PluginComing", "waits for the plugin pod");
  EXPECT_THAT(cluster.wrong(), ElementsAre("change_under_way"));
  EXPECT_EQ(problems(cluster.walked()), 0U) << "it goes on";
  EXPECT_FALSE(all_good(cluster.walked()));
}

TEST(verify, a_plugin_that_is_ready_and_not_yet_counted_as_available_is_no_finding) {
  cluster cluster;
  cluster.vgpu_set().available = 0;
  cluster.vgpu_set().ready = 1;
  EXPECT_THAT(cluster.wrong(), IsEmpty());
  cluster.vgpu_set().ready = 0;
  EXPECT_THAT(cluster.wrong(), ElementsAre("daemonset_not_rolled_out"));
}

/// The operator replaces plugins node by node, and some nodes wait for their pods.
TEST(verify, a_daemon_set_whose_pods_are_available_and_not_all_of_the_newest_version_goes_on) {
  cluster cluster;
  cluster.vgpu_set().updated = 0;
  EXPECT_THAT(cluster.wrong(), ElementsAre("daemonset_updating"));
  EXPECT_EQ(problems(cluster.walked()), 0U) << "it goes on";
  EXPECT_FALSE(all_good(cluster.walked()));
  cluster.vgpu_set().available = cluster.vgpu_set().ready = 0;
  EXPECT_THAT(cluster.wrong(), ElementsAre("daemonset_not_rolled_out"));
  EXPECT_GT(problems(cluster.walked()), 0U);
}

TEST(verify, while_everything_is_removed_no_module_is_off) {
  cluster cluster;
  cluster.is.policy->removing = true;
  for (auto& [name, module] : cluster.is.policy->modules) module.enabled = false;
  cluster.policy_ready("False", "Removing", "1 node has still to leave; quartermaster uninstall goes on");
  const auto found = cluster.wrong();
  EXPECT_THAT(found, testing::Contains("policy_not_ready"));
  EXPECT_THAT(found, testing::Not(testing::Contains("module_off")));
}

TEST(verify, says_which_cards_a_person_took_out_of_use_and_which_of_those_are_none) {
  cluster cluster;
  cluster.node().annotations = packed({{"quartermaster.io/cordon", "gpu-1/2, GPU-gone"}});
  EXPECT_THAT(cluster.wrong(), ElementsAre("cordon_unknown"));
  std::vector<std::string> lines;
  const auto walked = cluster.walked();
  for (const auto& step : walked.nodes.front().steps)
    if (step.position == stage::node)
      lines.push_back(std::string(to_string(step.cause)) + " " + step.value + " " + step.other);
  EXPECT_THAT(lines, testing::Contains("cards_cordoned gpu-1/2 "));
  EXPECT_THAT(lines, testing::Contains(testing::StartsWith("cordon_unknown GPU-gone gpu-1/0,")));
  cluster.node().annotations = packed({{"quartermaster.io/cordon", "gpu-1/2"}});
  EXPECT_THAT(cluster.wrong(), IsEmpty()) << "what a person did on purpose is no defect";
}

TEST(verify, a_node_left_to_somebody_else_is_left_alone) {
  cluster cluster;
  cluster.asks("pgpu-dra");
  cluster.phase(phases::left_alone, "LeftAlone");
  cluster.node().allocatable = {{"nvidia.com/gpu", 4}};
  EXPECT_THAT(cluster.wrong(), IsEmpty());
}

TEST(verify, a_clock_that_is_off_does_not_kill_a_leader_that_renews) {
  cluster cluster;
  cluster.is.leader->age = std::chrono::hours(3);
  cluster.is.leader->renewed = true;
  EXPECT_THAT(cluster.wrong(), IsEmpty());
}

TEST(verify, a_pod_holds_the_largest_of_its_init_and_main_containers) {
  kube::pod pod;
  const auto add = [&](kube::container::role role, std::int64_t cards) {
    kube::container container;
    container.kind = role;
    container.limits = {{"nvidia.com/gpu", cards}};
    pod.containers.push_back(std::move(container));
  };
  using role = kube::container::role;
  add(role::main, 2);
  add(role::main, 1);
  EXPECT_EQ(asked_by(pod), (kube::quantities{{"nvidia.com/gpu", 3}}));
  pod.containers.clear();
  add(role::init, 4);
  add(role::sidecar, 1);
  add(role::init, 2);
  add(role::main, 1);
  EXPECT_EQ(asked_by(pod), (kube::quantities{{"nvidia.com/gpu", 4}})) << "before the sidecar started";
  pod.containers.front().limits.front().second = 2;
  EXPECT_EQ(asked_by(pod), (kube::quantities{{"nvidia.com/gpu", 3}})) << "the second next to the sidecar";
}

}  // namespace
}  // namespace reconcilers::verify
