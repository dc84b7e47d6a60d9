#include "reconcilers/own_scheduler/scheduler.hpp"

#include "api/names.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/fake_cluster.hpp"
#include "test/reconcilers/rights.hpp"
#include "test/words.hpp"

namespace reconcilers::own_scheduler {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

const std::string set_path = "/apis/apps/v1/namespaces/quartermaster/deployments/quartermaster-scheduler";
const std::string file_path = "/api/v1/namespaces/quartermaster/configmaps/quartermaster-scheduler";

/// The reconciler with a server whose watches it sees at once.
class cluster : public fake_cluster {
 public:
  controller::registry metrics, later_metrics;
  controller::store<accelerator_policy> policies;
  controller::store<api::compiled_rules> rules;
  controller::store<kube::node> nodes;
  controller::store<kube::pod> pods;
  controller::store<extender_secret> secrets;
  controller::store<kube::deployment> deployments;
  controller::store<kube::daemon_set> daemon_sets;
  controller::store<api::owned_service> services;
  controller::store<api::owned_service_account> accounts;
  controller::store<api::owned_config_map> files;
  std::string server_version = "v1.36.3";
  int reported = 0, switched = 0, isolated = 0;
  scheduler first = made(metrics);

  cluster() {
    sync(policies, rules, nodes, pods, secrets, deployments, daemon_sets, services, accounts, files);
    server.interfere = [this](const kube::request& request) -> std::optional<kube::response> {
      if (request.target != "/version") return std::nullopt;
      return recording_transport::answered(200, {{"gitVersion", server_version}});
    };
    server.watch = [this](const std::string& path, const json& is, const json& last) { show(path, is, last); };
    certificate(7);
    node("gpu-1", "pgpu", false);
    node("cpu-1", "", false);
  }
  scheduler made(controller::registry& registry) {
    return scheduler{{policies,
                      rules,
                      nodes,
                      pods,
                      secrets,
                      deployments,
                      {daemon_sets, services, accounts, files, {}, &deployments}},
                     client,
                     recorder,
                     registry,
                     {"quartermaster", true, [this] { return now; }, [this] { ++reported; }, [this] { ++switched; },
                      [this] { ++isolated; }}};
  }
  void show(const std::string& path, const json& is, const json& last) {
    const auto& any = is.is_null() ? last : is;
    const auto read = [&](kube::object& target) {
      const auto& metadata = any.at("metadata");
      target.key = {metadata.value("namespace", ""), metadata.at("name")};
      target.id = kube::uid::parse(metadata.value("uid", ""));
      target.resource_version = std::stoull(metadata.value("resourceVersion", "0"));
      target.generation = metadata.value("generation", 0);
      target.labels = packed(metadata.value("labels", json::object()));
      target.annotations = packed(metadata.value("annotations", json::object()));
    };
    if (any["metadata"].value("labels", json::object()).value("app.kubernetes.io/managed-by", "") != "quartermaster")
      return;
    if (path == set_path) {
      kube::deployment set;
      read(set);
      const auto status = any.value("status", json::object());
      set.desired = any["spec"].value("replicas", 1);
      set.observed_generation = status.value("seen", 0);
      set.replicas = set.updated = set.ready = set.available = status.value("up", 0);
      is.is_null() ? deployments.erase(set) : deployments.put(set);
    } else if (path == file_path) {
      api::owned_config_map file;
      read(file);
      file.content = std::hash<std::string>{}(any["data"].dump());
      is.is_null() ? files.erase(file) : files.put(file);
    }
  }
  void policy(const std::string& mode, bool isolate = true, bool removing = false) {
    accelerator_policy out;
    out.key = {{}, "default"};
    out.resource_version = ++version_;
    out.generation = static_cast<std::int64_t>(version_);
    out.id = kube::uid::parse("6d1f0c1e-0000-4000-8000-000000000001");
    out.scheduler.mode = mode;
    out.scheduler.isolate_nodes = isolate;
    out.removing = removing;
    policies.put(out);
  }
  /// As resource_rules writes it.
  void label(bool sends) {
    api::compiled_rules out;
    out.key = api::compiled_rules::only();
    out.resource_version = ++version_;
    out.labels = packed({{"quartermaster.io/scheduler", sends ? "Dedicated" : "None"}});
    rules.put(out);
  }
  void certificate(std::uint64_t content) {
    extender_secret out;
    out.key = {"quartermaster", "quartermaster-extender-client"};
    out.resource_version = ++version_;
    out.authorities = out.leaf.certificate = out.leaf.key = "PEM";
    out.content = content;
    secrets.put(out);
  }
  void node(const std::string& name, const std::string& module, bool tainted) {
    kube::node out;
    out.key.name = name;
    out.resource_version = ++version_;
    if (!module.empty()) out.labels = packed({{"quartermaster.io/module", module}});
    if (tainted) out.taints.push_back({"quartermaster.io/accelerator", "", "NoSchedule"});
    nodes.put(out);
  }
  void pod(const std::string& name, const std::string& node_name = "",
           const std::string& scheduler_name = "quartermaster") {
    kube::pod out;
    out.key = {"lab", name};
    out.resource_version = ++version_;
    out.scheduler_name = scheduler_name;
    out.node_name = node_name;
    pods.put(out);
  }
  void pod_gone(const std::string& name) {
    auto last = *pods.find({"lab", name});
    last.resource_version = ++version_;
    pods.erase(last);
  }
  void up(int replicas) {
    auto set = server.objects.at(set_path);
    set["status"] = {{"seen", set["metadata"]["generation"]}, {"up", replicas}};
    server.put(set_path, set);
  }
  controller::action reconcile(scheduler& instance) {
    now += 1s;
    const auto done = run(instance.reconcile(scheduler::only()));
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return done.value_or(controller::action());
  }
  controller::action reconcile() { return reconcile(first); }
  std::string reason(const scheduler& scheduler) const {
    return scheduler.state() ? scheduler.state()->reason : "nothing";
  }
  std::string reason() const { return reason(first); }
  void switched_on() {
    policy("Dedicated");
    label(false);
    reconcile();
    up(2);
    reconcile();
    label(true);
    reconcile();
    node("gpu-1", "pgpu", true);
    ASSERT_EQ(reason(), "Dedicated");
    server.forget();
  }
  std::vector<std::string> objects() const {
    std::vector<std::string> out;
    for (const auto& [path, object] : server.objects) out.push_back(path);
    return out;
  }
  json set() const { return server.objects.at(set_path); }

 private:
  std::uint64_t version_ = 10;
};

TEST(dedicated_scheduler, S54_is_made_and_pods_are_sent_to_it_when_it_is_available) {
  cluster cluster;
  cluster.policy("Dedicated");
  cluster.label(false);
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), ElementsAre("apply " + file_path, "apply " + set_path));
  EXPECT_EQ(cluster.first.sends(), false);
  EXPECT_EQ(cluster.reason(), "Starting");
  EXPECT_EQ(cluster.set()["spec"]["template"]["spec"]["containers"][0]["image"],
            "registry.k8s.io/kube-scheduler:v1.36.3");
  cluster.up(1);
  cluster.switched = 0;
  cluster.reconcile();
  EXPECT_EQ(cluster.first.sends(), true);
  EXPECT_EQ(cluster.first.isolates(), false) << "the API server does not send yet";
  EXPECT_EQ(cluster.switched, 1);
  cluster.label(true);
  cluster.up(2);
  cluster.reconcile();
  EXPECT_EQ(cluster.first.isolates(), true);
  EXPECT_EQ(cluster.reason(), "Dedicated");
  const auto row = cluster.first.rows()->at(0);
  EXPECT_EQ(row.version, "v1.36.3");
  EXPECT_EQ(row.checksum.size(), 64u);
  EXPECT_EQ(row.ready, 2);
  std::erase_if(cluster.server.transport.sent,
                [](const kube::request& request) { return request.target == "/version"; });
  EXPECT_THAT(not_listed(cluster.server.transport.sent, "quartermaster"), IsEmpty());
}

TEST(dedicated_scheduler, settled_it_writes_nothing_and_after_a_restart_neither) {
  cluster cluster;
  cluster.switched_on();
  for (int i = 0; i < 3; ++i) cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  auto second = cluster.made(cluster.later_metrics);
  EXPECT_FALSE(second.sends()) << "it has not looked yet";
  for (int i = 0; i < 3; ++i) cluster.reconcile(second);
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  EXPECT_EQ(second.sends(), true);
  EXPECT_EQ(second.isolates(), true);
}

TEST(dedicated_scheduler, an_edit_is_put_back_and_a_certificate_starts_it_anew) {
  cluster cluster;
  cluster.switched_on();
  const auto template_before = cluster.set()["spec"]["template"];
  auto edited = cluster.set();
  edited["spec"]["replicas"] = 0;
  cluster.server.put(set_path, edited);
  cluster.reconcile();
  EXPECT_EQ(cluster.set()["spec"]["replicas"], 2);
  EXPECT_EQ(cluster.set()["spec"]["template"], template_before);
  cluster.certificate(8);
  cluster.reconcile();
  EXPECT_NE(cluster.set()["spec"]["template"], template_before);
  EXPECT_EQ(cluster.first.sends(), true);
}

TEST(dedicated_scheduler, somebody_elses_objects_of_its_names_are_left_alone) {
  for (const auto& path : {file_path, set_path}) {
    cluster cluster;
    json object = {{"metadata", {{"name", "quartermaster-scheduler"}, {"namespace", "quartermaster"}}},
                   {"data", {{"x", "y"}}}};
    cluster.server.put(path, object);
    cluster.policy("Dedicated");
    cluster.label(false);
    cluster.reconcile();
    EXPECT_EQ(cluster.reason(), "ForeignObject");
    EXPECT_EQ(cluster.first.state()->message.key, "status.object.foreign");
    EXPECT_EQ(cluster.server.objects.at(path)["data"]["x"], "y");
    if (path == file_path)
      EXPECT_FALSE(cluster.server.objects.contains(set_path)) << "it would run with their configuration";
    cluster.policy("None");
    cluster.now += 1min;
    cluster.reconcile(), cluster.reconcile();
    EXPECT_TRUE(cluster.server.objects.contains(path));
  }
}

TEST(dedicated_scheduler, switching_off_keeps_it_for_the_pods_that_wait) {
  for (const std::string string : {"None", "removing", "deleted"}) {
    cluster cluster;
    cluster.switched_on();
    cluster.pod("a"), cluster.pod("b"), cluster.pod("elsewhere", "", "volcano"), cluster.pod("placed", "gpu-1");
    if (string == "deleted")
      cluster.policies.erase(*cluster.policies.find({{}, "default"}));
    else
      cluster.policy(string == "None" ? "None" : "Dedicated", true, string == "removing");
    cluster.reconcile();
    EXPECT_EQ(cluster.first.sends(), false);
    EXPECT_EQ(cluster.first.isolates(), false);
    cluster.label(false);
    cluster.reconcile();
    EXPECT_EQ(cluster.reason(), "PodsWait") << string;
    EXPECT_EQ(words::line_of(cluster.first.state()->message),
              "status.scheduler.pods_wait.many{number=2,list=" + words::listed({"lab/a", "lab/b"}) + "}");
    cluster.now += 1h;
    cluster.reconcile();
    EXPECT_THAT(cluster.objects(), ElementsAre(file_path, set_path));
    cluster.pod("a", "gpu-1");
    cluster.pod_gone("b");
    auto second = cluster.made(cluster.later_metrics);  // a restart resets its patience
    cluster.reconcile(second);
    EXPECT_THAT(cluster.objects(), ElementsAre(file_path, set_path));
    cluster.now += 10s;
    cluster.reconcile(second);
    EXPECT_THAT(cluster.objects(), IsEmpty()) << string;
    EXPECT_EQ(cluster.reason(second), "nothing");
    EXPECT_THAT(*second.rows(), IsEmpty());
  }
}

TEST(dedicated_scheduler, is_told_again_what_wakes_it) {
  cluster cluster;
  cluster.switched_on();
  const auto* set = cluster.deployments.find({"quartermaster", "quartermaster-scheduler"});
  EXPECT_THAT(cluster.first.affected_by(set, set), ElementsAre(scheduler::only()));
  kube::deployment other;
  other.key = {"quartermaster", "web"};
  EXPECT_THAT(cluster.first.affected_by(static_cast<const kube::object*>(&other), nullptr), IsEmpty());
  kube::pod waits;
  waits.scheduler_name = "quartermaster";
  EXPECT_THAT(cluster.first.affected_by(nullptr, &waits), IsEmpty()) << "pods come and go while it is on";
  cluster.policy("None");
  cluster.reconcile();
  EXPECT_THAT(cluster.first.affected_by(nullptr, &waits), ElementsAre(scheduler::only()));
}

TEST(dedicated_scheduler, S54_follows_the_servers_version_when_the_upgrade_is_through) {
  cluster cluster;
  cluster.switched_on();
  cluster.server_version = "v1.37.0";
  const auto image = [&] {
    return cluster.set()["spec"]["template"]["spec"]["containers"][0]["image"].get<std::string>();
  };
  for (int minute = 0; minute < 5; ++minute) {
    cluster.now += 1min;
    cluster.reconcile();
    EXPECT_THAT(image(), testing::EndsWith("v1.36.3"));
  }
  cluster.now += 2min;
  cluster.reconcile();
  EXPECT_THAT(image(), testing::EndsWith("v1.37.0"));
  cluster.server_version = "v1.36.9";  // one of several servers
  cluster.now += 1min;
  cluster.reconcile();
  EXPECT_THAT(image(), testing::EndsWith("v1.36.9"));
}

TEST(dedicated_scheduler, what_an_earlier_version_made_keeps_its_version_until_the_upgrade_is_through) {
  cluster cluster;
  cluster.switched_on();
  auto set = cluster.set();
  auto& annotations = set["metadata"]["annotations"];
  annotations["quartermaster.io/server-version"] = annotations["state.quartermaster.io/server-version"];
  annotations.erase("state.quartermaster.io/server-version");
  cluster.server.put(set_path, set);
  cluster.server_version = "v1.37.0";
  auto second = cluster.made(cluster.later_metrics);
  cluster.reconcile(second);
  EXPECT_EQ(cluster.set()["metadata"]["annotations"]["state.quartermaster.io/server-version"], "v1.36.3");
}

}  // namespace
}  // namespace reconcilers::own_scheduler
