#include "cli/controller/control_plane_agents.hpp"

#include "agent/static_pod/health.hpp"
#include "test/reconcilers/fake_cluster.hpp"

namespace cli {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

struct control_plane_agents_test : testing::Test, reconcilers::fake_cluster {
  controller::store<kube::node> nodes;
  controller::store<reconcilers::accelerator_policy> policies;
  controller::store<kube::config_map> rows;
  const kube::object_key rows_key{"quartermaster", "quartermaster-static-pod"};
  control_plane_agents subject{{nodes, policies, rows}, rows_key, client};

  control_plane_agents_test() {
    sync(nodes, policies, rows);
    server.watch = [this](const std::string&, const json& now, const json&) {
      kube::node node;
      reconcilers::read_metadata(now, node);
      nodes.put(node);
    };
    add("m1", {{"node-role.kubernetes.io/control-plane", ""}});
    add("w1", json::object());
    says("None");
    server.forget();
  }
  void add(const std::string& name, const json& labels) {
    server.put("/api/v1/nodes/" + name, {{"metadata", {{"name", name}, {"labels", labels}}}});
  }
  void says(const std::string& mode, bool removing = false) {
    reconcilers::accelerator_policy policy;
    policy.key = reconcilers::policy_key;
    policy.scheduler.mode = mode;
    policy.removing = removing;
    policies.put(policy);
  }
  void reports(const std::string& text) {
    kube::config_map map;
    map.key = rows_key;
    std::vector<kube::packed_map::entry> data{{"m1", text}};
    map.data = kube::packed_map::of(data);
    rows.put(map);
  }
  void row(agent::static_pod::state state) {
    reports(agent::static_pod::write({std::string(agent::static_pod::to_string(state))}));
  }
  bool has_agent(const std::string& name) {
    const auto done = reconcilers::run(subject.reconcile({{}, name}));
    EXPECT_TRUE(done) << done.error().message;
    return nodes.find({{}, name})->labels.value_or("quartermaster.io/static-pod", "") == "true";
  }
};

TEST_F(control_plane_agents_test, S7_no_node_has_an_agent_that_no_one_asked_for) {
  for (const auto* mode : {"None", "Dedicated", "", "Sideways"}) {
    says(mode);
    EXPECT_FALSE(has_agent("m1")) << mode;
  }
  EXPECT_FALSE(has_agent("w1"));
  EXPECT_THAT(server.writes(), IsEmpty());
}

TEST_F(control_plane_agents_test, S7_control_plane_nodes_have_one_while_the_policy_asks) {
  says("StaticPod");
  EXPECT_TRUE(has_agent("m1"));
  EXPECT_FALSE(has_agent("w1"));
  EXPECT_TRUE(has_agent("m1"));
  EXPECT_THAT(server.writes(), SizeIs(1)) << "nothing is written twice";
}

TEST_F(control_plane_agents_test, S7_an_agent_stays_until_its_row_says_that_the_extender_is_out) {
  using agent::static_pod::state;
  for (const bool removing : {false, true}) {
    says("StaticPod");
    ASSERT_TRUE(has_agent("m1"));
    says(removing ? "StaticPod" : "None", removing);
    for (const auto is : {state::applied, state::waiting, state::changing, state::rolling_back, state::rolled_back,
                          state::removing, state::stopped}) {
      row(is);
      EXPECT_TRUE(has_agent("m1")) << agent::static_pod::to_string(is);
    }
    reports("no row");
    EXPECT_TRUE(has_agent("m1")) << "what cannot be read may be of a node that is not out";
    row(state::disabled);
    EXPECT_FALSE(has_agent("m1"));
  }
  policies.erase(*policies.find(reconcilers::policy_key));
  EXPECT_FALSE(has_agent("m1"));
}

TEST_F(control_plane_agents_test, a_label_that_a_person_wrote_brings_no_agent) {
  add("w1", {{"quartermaster.io/static-pod", "true"}});
  add("m1", {{"node-role.kubernetes.io/control-plane", ""}, {"quartermaster.io/static-pod", "true"}});
  EXPECT_FALSE(has_agent("m1"));
  EXPECT_FALSE(has_agent("w1"));
}

TEST_F(control_plane_agents_test, looks_again_at_what_changes_the_answer) {
  const auto *node = nodes.find({{}, "m1"}), *worker = nodes.find({{}, "w1"});
  EXPECT_THAT(subject.affected_by(nullptr, node), SizeIs(1));
  EXPECT_THAT(subject.affected_by(node, node), IsEmpty());
  EXPECT_THAT(subject.affected_by(nullptr, worker), IsEmpty());
  auto before = *policies.find(reconcilers::policy_key), after = before;
  EXPECT_THAT(subject.affected_by(&before, &after), IsEmpty());
  after.scheduler.mode = "StaticPod";
  EXPECT_THAT(subject.affected_by(&before, &after), SizeIs(1)) << "m1";
  kube::config_map map;
  EXPECT_THAT(subject.affected_by(nullptr, &map), SizeIs(1));
}

}  // namespace
}  // namespace cli
