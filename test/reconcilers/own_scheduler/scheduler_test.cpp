#include "reconcilers/own_scheduler/scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/names.hpp"
#include "test/reconcilers/fake_server.hpp"
#include "test/reconcilers/recording_recorder.hpp"
#include "test/reconcilers/rights.hpp"

namespace reconcilers::dedicated {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string set_path = "/apis/apps/v1/namespaces/quartermaster/deployments/quartermaster-scheduler";
const std::string file_path = "/api/v1/namespaces/quartermaster/configmaps/quartermaster-scheduler";

kube::packed_map packed(const json& map) {
  std::map<std::string, std::string> held;
  for (const auto& [name, value] : map.items()) held[name] = value.get<std::string>();
  std::vector<kube::packed_map::entry> entries(held.begin(), held.end());
  return kube::packed_map::of(entries);
}

/// The reconciler with a server whose watches it sees at once.
class cluster {
 public:
  fake_server server;
  kube::client client{server.transport};
  recording_recorder recorder;
  controller::registry metrics, later_metrics;
  controller::store<accelerator_policy> policies;
  controller::store<compiled_rules> rules;
  controller::store<kube::node> nodes;
  controller::store<kube::pod> pods;
  controller::store<extender_secret> secrets;
  controller::store<kube::deployment> deployments;
  controller::store<kube::daemon_set> daemon_sets;
  controller::store<owned_service> services;
  controller::store<owned_service_account> accounts;
  controller::store<owned_config_map> files;
  controller::milliseconds now{1'000'000};
  std::string server_version = "v1.36.3";
  int told = 0, switched = 0, isolated = 0;
  scheduler first = made(metrics);

  cluster() {
    auto sync = [](auto& store) { store.begin(), store.commit(); };
    sync(policies), sync(rules), sync(nodes), sync(pods), sync(secrets), sync(deployments), sync(daemon_sets);
    sync(services), sync(accounts), sync(files);
    server.interfere = [this](const kube::request& request) -> std::optional<kube::response> {
      if (request.target != "/version") return std::nullopt;
      return recording_transport::answered(200, {{"gitVersion", server_version}});
    };
    server.watch = [this](const std::string& path, const json& is, const json& last) { show(path, is, last); };
    certificate(7);
    node("gpu-1", "pgpu", false);
    node("cpu-1", "", false);
  }
  scheduler made(controller::registry& into) {
    return scheduler{{policies,
                      rules,
                      nodes,
                      pods,
                      secrets,
                      deployments,
                      {daemon_sets, services, accounts, files, {}, &deployments}},
                     client,
                     recorder,
                     into,
                     {"quartermaster", true, [this] { return now; }, [this] { ++told; }, [this] { ++switched; },
                      [this] { ++isolated; }}};
  }
  void show(const std::string& path, const json& is, const json& last) {
    const auto& any = is.is_null() ? last : is;
    const auto read = [&](kube::object& into) {
      const auto& metadata = any.at("metadata");
      into.key = {metadata.value("namespace", ""), metadata.at("name")};
      into.id = kube::uid::parse(metadata.value("uid", ""));
      into.resource_version = std::stoull(metadata.value("resourceVersion", "0"));
      into.generation = metadata.value("generation", 0);
      into.labels = packed(metadata.value("labels", json::object()));
      into.annotations = packed(metadata.value("annotations", json::object()));
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
      owned_config_map file;
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
    compiled_rules out;
    out.key = compiled_rules::only();
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
  void pod(const std::string& name, const std::string& on = "", const std::string& by = "quartermaster") {
    kube::pod out;
    out.key = {"lab", name};
    out.resource_version = ++version_;
    out.scheduler_name = by;
    out.node_name = on;
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
  controller::action reconcile(scheduler& who) {
    now += 1s;
    const auto done = run(who.reconcile(scheduler::only()));
    EXPECT_TRUE(done) << (done ? "" : done.error().what);
    return done.value_or(controller::action());
  }
  controller::action reconcile() { return reconcile(first); }
  std::string reason(const scheduler& of) const { return of.state() ? of.state()->reason : "nothing"; }
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
  cluster it;
  it.policy("Dedicated");
  it.label(false);
  it.reconcile();
  EXPECT_THAT(it.server.writes(), ElementsAre("apply " + file_path, "apply " + set_path));
  EXPECT_EQ(it.first.sends(), false);
  EXPECT_EQ(it.reason(), "Starting");
  EXPECT_EQ(it.set()["spec"]["template"]["spec"]["containers"][0]["image"], "registry.k8s.io/kube-scheduler:v1.36.3");
  it.up(1);
  it.switched = 0;
  it.reconcile();
  EXPECT_EQ(it.first.sends(), true);
  EXPECT_EQ(it.first.isolates(), false) << "the API server does not send yet";
  EXPECT_EQ(it.switched, 1);
  it.label(true);
  it.up(2);
  it.reconcile();
  EXPECT_EQ(it.first.isolates(), true);
  EXPECT_EQ(it.reason(), "Dedicated");
  const auto row = it.first.rows()->at(0);
  EXPECT_EQ(row.version, "v1.36.3");
  EXPECT_EQ(row.checksum.size(), 64u);
  EXPECT_EQ(row.ready, 2);
  std::erase_if(it.server.transport.sent, [](const kube::request& one) { return one.target == "/version"; });
  EXPECT_THAT(not_listed(it.server.transport.sent, "quartermaster"), IsEmpty());
}

TEST(dedicated_scheduler, settled_it_writes_nothing_and_after_a_restart_neither) {
  cluster it;
  it.switched_on();
  for (int i = 0; i < 3; ++i) it.reconcile();
  EXPECT_THAT(it.server.writes(), IsEmpty());
  auto second = it.made(it.later_metrics);
  EXPECT_FALSE(second.sends()) << "it has not looked yet";
  for (int i = 0; i < 3; ++i) it.reconcile(second);
  EXPECT_THAT(it.server.writes(), IsEmpty());
  EXPECT_EQ(second.sends(), true);
  EXPECT_EQ(second.isolates(), true);
}

TEST(dedicated_scheduler, an_edit_is_put_back_and_a_certificate_starts_it_anew) {
  cluster it;
  it.switched_on();
  const auto template_before = it.set()["spec"]["template"];
  auto edited = it.set();
  edited["spec"]["replicas"] = 0;
  it.server.put(set_path, edited);
  it.reconcile();
  EXPECT_EQ(it.set()["spec"]["replicas"], 2);
  EXPECT_EQ(it.set()["spec"]["template"], template_before);
  it.certificate(8);
  it.reconcile();
  EXPECT_NE(it.set()["spec"]["template"], template_before);
  EXPECT_EQ(it.first.sends(), true);
}

TEST(dedicated_scheduler, somebody_elses_objects_of_its_names_are_left_alone) {
  for (const auto& path : {file_path, set_path}) {
    cluster it;
    json theirs = {{"metadata", {{"name", "quartermaster-scheduler"}, {"namespace", "quartermaster"}}},
                   {"data", {{"x", "y"}}}};
    it.server.put(path, theirs);
    it.policy("Dedicated");
    it.label(false);
    it.reconcile();
    EXPECT_EQ(it.reason(), "ForeignObject");
    EXPECT_THAT(it.first.state()->message, HasSubstr("belongs to"));
    EXPECT_THAT(it.first.state()->message, testing::Not(HasSubstr("adopt")));
    EXPECT_EQ(it.server.objects.at(path)["data"]["x"], "y");
    if (path == file_path)
      EXPECT_FALSE(it.server.objects.contains(set_path)) << "it would run with their configuration";
    it.policy("None");
    it.now += 1min;
    it.reconcile(), it.reconcile();
    EXPECT_TRUE(it.server.objects.contains(path));
  }
}

TEST(dedicated_scheduler, switching_off_keeps_it_for_the_pods_that_wait) {
  for (const std::string how : {"None", "removing", "deleted"}) {
    cluster it;
    it.switched_on();
    it.pod("a"), it.pod("b"), it.pod("elsewhere", "", "volcano"), it.pod("placed", "gpu-1");
    if (how == "deleted")
      it.policies.erase(*it.policies.find({{}, "default"}));
    else
      it.policy(how == "None" ? "None" : "Dedicated", true, how == "removing");
    it.reconcile();
    EXPECT_EQ(it.first.sends(), false);
    EXPECT_EQ(it.first.isolates(), false);
    it.label(false);
    it.reconcile();
    EXPECT_EQ(it.reason(), "PodsWait") << how;
    EXPECT_THAT(it.first.state()->message,
                HasSubstr("2 pods wait for it and can have no other scheduler: lab/a, lab/b;"));
    it.now += 1h;
    it.reconcile();
    EXPECT_THAT(it.objects(), ElementsAre(file_path, set_path));
    it.pod("a", "gpu-1");
    it.pod_gone("b");
    auto second = it.made(it.later_metrics);  // a restart begins its patience anew
    it.reconcile(second);
    EXPECT_THAT(it.objects(), ElementsAre(file_path, set_path));
    it.now += 10s;
    it.reconcile(second);
    EXPECT_THAT(it.objects(), IsEmpty()) << how;
    EXPECT_EQ(it.reason(second), "nothing");
    EXPECT_THAT(*second.rows(), IsEmpty());
  }
}

TEST(dedicated_scheduler, is_told_again_what_wakes_it) {
  cluster it;
  it.switched_on();
  const auto* set = it.deployments.find({"quartermaster", "quartermaster-scheduler"});
  EXPECT_THAT(it.first.affected_by(set, set), ElementsAre(scheduler::only()));
  kube::deployment other;
  other.key = {"quartermaster", "web"};
  EXPECT_THAT(it.first.affected_by(static_cast<const kube::object*>(&other), nullptr), IsEmpty());
  kube::pod waits;
  waits.scheduler_name = "quartermaster";
  EXPECT_THAT(it.first.affected_by(nullptr, &waits), IsEmpty()) << "pods come and go while it is on";
  it.policy("None");
  it.reconcile();
  EXPECT_THAT(it.first.affected_by(nullptr, &waits), ElementsAre(scheduler::only()));
}

TEST(dedicated_scheduler, S54_follows_the_servers_version_when_the_upgrade_is_through) {
  cluster it;
  it.switched_on();
  it.server_version = "v1.37.0";
  const auto image = [&] { return it.set()["spec"]["template"]["spec"]["containers"][0]["image"].get<std::string>(); };
  for (int minute = 0; minute < 5; ++minute) {
    it.now += 1min;
    it.reconcile();
    EXPECT_THAT(image(), testing::EndsWith("v1.36.3"));
  }
  it.now += 2min;
  it.reconcile();
  EXPECT_THAT(image(), testing::EndsWith("v1.37.0"));
  it.server_version = "v1.36.9";  // one of several servers
  it.now += 1min;
  it.reconcile();
  EXPECT_THAT(image(), testing::EndsWith("v1.36.9"));
}

}  // namespace
}  // namespace reconcilers::dedicated
