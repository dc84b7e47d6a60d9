#include "reconcilers/nodes/report_age.hpp"

#include <memory>

#include "controller/coded_message.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/fake_cluster.hpp"
#include "test/reconcilers/nodes/gpu_1.hpp"
#include "test/words.hpp"

namespace reconcilers {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

class ageing : public testing::Test, public fake_cluster {
 public:
  controller::store<kube::node> nodes;
  controller::store<kube::pod> pods;
  controller::store<api::accelerator_node> reports;
  report_age* subject = nullptr;

  ageing() {
    sync(nodes, reports, pods);
    server.watch = [this](const std::string&, const json& object, const json&) {
      reports.put(*api::accelerator_node::decode(object.dump()));
    };
    begin();
    report("gpu-1");
  }
  /// A new process.
  void begin() {
    report_age::settings settings;
    settings.ns = "quartermaster";
    settings.now = [this] { return now; };
    settings.wall = [this] { return controller::wall_time(now); };
    processes_.push_back(
        std::make_unique<report_age>(report_age::stores{nodes, pods, reports}, client, recorder, settings));
    subject = processes_.back().get();
  }
  void report(const std::string& name) {
    kube::node node;
    node.key.name = name;
    node.resource_version = ++version_;
    nodes.put(node);
    server.put(object_path_of(name),
               {{"metadata", {{"name", name}}},
                {"status", {{"driver", {{"boot", "b"}}}, {"cards", {{{"uuid", "GPU-a"}, {"health", "XID 48"}}}}}}});
  }
  kube::pod agent(const std::string& node, bool ready) {
    kube::pod out;
    out.key = {"quartermaster", "agent-" + node};
    out.node_name = node;
    out.ready = ready;
    out.phase = kube::pod_phase::running;
    out.labels = kube::packed_map::of({{"app.kubernetes.io/name", "quartermaster-agent"}});
    out.resource_version = ++version_;
    return out;
  }
  void put(bool ready, const std::string& node = "gpu-1") { pods.put(agent(node, ready)); }
  std::optional<std::chrono::milliseconds> turn(const std::string& node = "gpu-1") {
    const auto done = run(subject->reconcile({{}, node}));
    EXPECT_TRUE(done) << done.error().message;
    return done ? done->again_in : std::nullopt;
  }
  json condition(const std::string& node = "gpu-1") const {
    for (const auto& entry : server.objects.at(object_path_of(node))["status"].value("conditions", json::array()))
      if (entry["type"] == "AgentReporting") return entry;
    return {};
  }
  std::vector<std::string> told() const {
    std::vector<std::string> out;
    for (const auto& event : recorder.events) out.push_back(event.about.key.name + " " + event.reason);
    return out;
  }

 private:
  std::uint64_t version_ = 0;
  std::vector<std::unique_ptr<report_age>> processes_;  ///< each observes the pods to the end
};

TEST_F(ageing, writes_nothing_while_the_agent_runs) {
  put(true);
  EXPECT_EQ(turn(), std::nullopt);
  now += 24h;
  EXPECT_EQ(turn(), std::nullopt) << "and looks again at a change only";
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ageing, calls_a_report_old_when_no_agent_was_ready_for_five_minutes) {
  put(true);
  turn();
  now += 1h;
  pods.erase(agent("gpu-1", true));
  EXPECT_EQ(turn(), 300s);
  now += 299s;
  EXPECT_EQ(turn(), 1s);
  EXPECT_TRUE(condition().is_null());
  now += 1s;
  EXPECT_EQ(turn(), std::nullopt);
  EXPECT_EQ(condition()["status"], "False");
  EXPECT_EQ(condition()["reason"], "AgentGone");
  EXPECT_EQ(words::line_of(controller::message_of(condition())),
            "status.agent.gone{finding=status.agent.silent{time=1970-01-01T01:16:40Z},namespace=quartermaster,"
            "label=app.kubernetes.io/name=quartermaster-agent,node=gpu-1}");
  EXPECT_EQ(condition()["lastTransitionTime"], "1970-01-01T01:21:40Z");
  EXPECT_THAT(told(), ElementsAre("gpu-1 AgentGone"));
  EXPECT_EQ(reports.find({{}, "gpu-1"})->cards.at(0).health, "XID 48") << "what was withdrawn stays withdrawn";
  server.forget();
  now += 1h;
  EXPECT_EQ(turn(), std::nullopt);
  EXPECT_THAT(server.writes(), IsEmpty()) << "it is reported once";
}

TEST_F(ageing, a_daemon_set_that_rolls_changes_nothing) {
  put(true);
  turn();
  for (int i = 0; i < 3; ++i) {
    pods.erase(agent("gpu-1", true));
    turn();
    now += 290s;
    turn();
    put(false);
    put(true);
    EXPECT_EQ(turn(), std::nullopt);
  }
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ageing, names_a_pod_that_is_not_ready) {
  auto pod = agent("gpu-1", false);
  pod.reason = "ImagePullBackOff";
  pods.put(pod);
  turn();
  now += 300s;
  turn();
  EXPECT_THAT(words::line_of(controller::message_of(condition())),
              words::has_in_order({"first=status.agent.silent_or_earlier{",
                                   "rest=status.agent.not_ready_because{pod="
                                   "quartermaster/agent-gpu-1,cause=ImagePullBackOff}"}));
}

/// A kubelet writes what it wants there, and the API server refuses a condition that is too long.
TEST_F(ageing, shows_a_reason_without_its_tricks) {
  auto pod = agent("gpu-1", false);
  pod.reason = "a\nb\u202e" + std::string(100'000, 'x');
  pods.put(pod);
  turn();
  now += 300s;
  turn();
  EXPECT_THAT(words::line_of(controller::message_of(condition())), HasSubstr("cause=a b\\u{202e}"));
  EXPECT_LT(condition()["message"].get<std::string>().size(), 1'000U);
}

TEST_F(ageing, a_pod_that_crashes_again_and_again_is_not_back) {
  turn();
  now += 300s;
  turn();
  ASSERT_EQ(condition()["status"], "False");
  for (int i = 0; i < 3; ++i) {
    put(true);
    EXPECT_EQ(turn(), 10s);
    now += 5s;
    put(false);
    EXPECT_EQ(turn(), std::nullopt);
    now += 300s;
  }
  EXPECT_THAT(told(), ElementsAre("gpu-1 AgentGone"));
  put(true);
  turn();
  now += 10s;
  turn();
  EXPECT_EQ(condition()["status"], "True");
  EXPECT_THAT(told(), ElementsAre("gpu-1 AgentGone", "gpu-1 AgentReporting"));
}

TEST_F(ageing, a_new_process_waits_again_and_leaves_what_is_said) {
  turn();
  now += 299s;
  begin();
  EXPECT_EQ(turn(), 300s) << "it does not know for how long the agent has been gone";
  now += 300s;
  turn();
  ASSERT_EQ(condition()["status"], "False");
  begin();
  server.forget();
  EXPECT_EQ(turn(), std::nullopt);
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(ageing, a_node_that_never_had_an_agent_is_not_concerned) {
  server.put(object_path_of("gpu-1"), {{"metadata", {{"name", "gpu-1"}}}, {"status", {{"phase", "Ready"}}}});
  EXPECT_EQ(turn(), std::nullopt);
  const auto pod = agent("gpu-1", true);
  EXPECT_THAT(subject->affected_by(nullptr, &pod), IsEmpty());
}

TEST_F(ageing, the_pod_of_another_namespace_is_no_agent) {
  auto forged = agent("gpu-1", true);
  forged.key.ns = "team";
  pods.put(forged);
  EXPECT_THAT(subject->affected_by(nullptr, &forged), IsEmpty());
  turn();
  now += 300s;
  turn();
  EXPECT_EQ(condition()["status"], "False");
}

TEST_F(ageing, a_fleet_without_agents_is_written_at_five_nodes_a_second) {
  for (const auto* name : {"gpu-2", "gpu-3"}) report(name);
  for (const auto* name : {"gpu-1", "gpu-2", "gpu-3"}) turn(name);
  now += 300s;
  EXPECT_EQ(turn("gpu-1"), std::nullopt);
  EXPECT_EQ(turn("gpu-2"), 200ms);
  EXPECT_EQ(turn("gpu-3"), 400ms);
  EXPECT_EQ(turn("gpu-2"), 200ms) << "it keeps its turn";
  now += 400ms;
  turn("gpu-2"), turn("gpu-3");
  EXPECT_THAT(told(), ElementsAre("gpu-1 AgentGone", "gpu-2 AgentGone", "gpu-3 AgentGone"));
}

TEST_F(ageing, metrics_count_nodes_and_bound_the_names_of_checks) {
  controller::store<api::accelerator_node> store;
  const auto put = [&](const std::string& name, const std::vector<std::string>& failed, const char* reporting) {
    json object = {{"metadata", {{"name", name}}}, {"status", {{"preflight", json::array()}}}};
    for (const auto& check : failed) object["status"]["preflight"].push_back({{"check", check}, {"state", "failed"}});
    object["status"]["preflight"].push_back({{"check", "cuda"}, {"state", "warning"}});
    object["status"]["conditions"] = {{{"type", "AgentReporting"}, {"status", reporting}}};
    store.put(*api::accelerator_node::decode(object.dump()));
  };
  put("gpu-1", {"cdi", "driver"}, "False");
  put("gpu-2", {"driver"}, "True");
  std::vector<std::string> invented;
  for (int i = 0; i < 64; ++i) invented.push_back("a" + std::to_string(i));
  put("gpu-3", invented, "False");
  controller::metric_text out;
  write_report_metrics(store, out);
  const auto text = out.take();
  EXPECT_THAT(text, HasSubstr("quartermaster_agent_gone_nodes 2\n"));
  EXPECT_THAT(text, HasSubstr("quartermaster_preflight_failed_nodes{check=\"driver\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("quartermaster_preflight_failed_nodes{check=\"other\"} 26\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("check=\"cuda\"")));
}

}  // namespace
}  // namespace reconcilers
