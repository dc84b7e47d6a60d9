#include "reconcilers/plugins/rollouts.hpp"

#include "test/facts_in.hpp"
#include "test/reconcilers/fake_cluster.hpp"
#include "test/reconcilers/rights.hpp"
#include "test/words.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::SizeIs;
using kind = rollout_step::kind;

const std::string set_path = "/apis/apps/v1/namespaces/quartermaster/daemonsets/gpu-manager-daemonset";
const std::string pods_path = "/api/v1/namespaces/quartermaster/pods/";
const kube::object_key vgpu{{}, "vgpu"};

/// The reconciler with a server whose watches it sees at once, unless they lag.
class rollout_cluster : public fake_cluster {
 public:
  controller::store<accelerator_policy> policies;
  controller::store<kube::daemon_set> sets;
  controller::store<kube::node> nodes;
  controller::store<kube::pod> pods;
  controller::store<api::accelerator_node> objects;
  node_pods on_nodes{pods, "quartermaster"};
  bool lag_sets = false, lag_pods = false;
  int news = 0;
  rollouts subject{{policies, sets, nodes, pods, objects, on_nodes},
                   client,
                   recorder,
                   {"quartermaster", [this] { return controller::wall_time(1'800'000'000s) + now; },
                    [this] { return now; }, [this] { ++news; }}};

  rollout_cluster() {
    sync(policies, sets, nodes, pods, objects);
    server.watch = [this](const std::string& path, const json& is, const json& last) { show(path, is, last); };
    server.interfere = [this](const kube::request& request) { return answer_list(request); };
    policy({});
    version("a.1");
    for (const auto* name : {"gpu-1", "gpu-2"}) {
      node(name, 400);
      pod(name, "a.1");
    }
  }

  std::vector<json> on_server;  ///< pods on any node, where ours are not seen yet
  std::optional<kube::response> answer_list(const kube::request& request) {
    if (fake_server::path_of_target(request.target) != "/api/v1/pods") return std::nullopt;
    EXPECT_THAT(request.target, HasSubstr("spec.nodeName"));
    return recording_transport::answered(200, {{"items", on_server}, {"metadata", json::object()}});
  }
  void policy(const module_spec& spec) {
    accelerator_policy made;
    made.key.name = "default";
    made.resource_version = ++version_;
    made.modules["vgpu"] = spec;
    made.modules["vgpu"].enabled = true;
    policies.put(made);
  }
  void version(const std::string& text) {
    auto object = server.objects.contains(set_path) ? server.objects.at(set_path) : json::object();
    auto& metadata = object["metadata"];
    metadata["namespace"] = "quartermaster";
    metadata["name"] = "gpu-manager-daemonset";
    metadata["labels"] = {{"quartermaster.io/module", "vgpu"}, {"app.kubernetes.io/managed-by", "quartermaster"}};
    metadata["annotations"]["quartermaster.io/template"] = text;
    server.put(set_path, object);
  }
  void node(const char* name, std::int64_t cores) {
    kube::node made;
    made.key.name = name;
    made.id.bytes[0] = static_cast<std::uint8_t>(name[4]);
    made.resource_version = ++version_;
    made.labels = packed({{"quartermaster.io/module", "vgpu"}});
    made.ready = kube::condition_status::yes;
    made.allocatable = {{"tencent.com/vcuda-core", cores}, {"tencent.com/vcuda-memory", cores / 2}};
    nodes.put(made);
    api::accelerator_node object;
    object.key.name = name;
    object.resource_version = version_;
    object.mode.actual_mode = "vgpu";
    objects.put(object);
  }
  void pod(const std::string& node, const std::string& made_from, bool ready = true) {
    const auto name = "plugin-" + node + "-" + std::to_string(++version_);
    server.put(pods_path + name, {{"metadata",
                                   {{"namespace", "quartermaster"},
                                    {"name", name},
                                    {"labels", {{"quartermaster.io/module", "vgpu"}}},
                                    {"annotations", {{"quartermaster.io/template", made_from}}}}},
                                  {"node", node},
                                  {"ready", ready}});
  }
  void user(const char* name, const char* node) {
    kube::pod made;
    made.key = {"team", name};
    made.resource_version = ++version_;
    made.node_name = node;
    made.containers = {{"c", kube::container::role::main, {{"tencent.com/vcuda-core", 10}}, {}}};
    pods.put(made);
  }
  void show(const std::string& path, const json& is, const json& last) {
    const auto& any = is.is_null() ? last : is;
    if (path.starts_with("/api/v1/nodes/")) {
      kube::node made;
      read_metadata(any, made);
      made.ready = kube::condition_status::yes;
      made.allocatable = {{"tencent.com/vcuda-core", 400}, {"tencent.com/vcuda-memory", 200}};
      nodes.put(made);
    } else if (path.contains("/daemonsets/")) {
      if (lag_sets) return;
      kube::daemon_set made;
      read_metadata(any, made);
      made.observed_generation = made.generation;
      sets.put(made);
    } else if (!lag_pods) {
      kube::pod made;
      read_metadata(any, made);
      const auto owner = any.value("set", std::string("gpu-manager-daemonset"));
      made.owners = {{"DaemonSet", owner, sets.find({"quartermaster", owner})->id, true}};
      made.node_name = any.at("node");
      made.ready = any.at("ready");
      is.is_null() ? pods.erase(made) : pods.put(made);
    }
  }
  controller::action reconcile() {
    const auto done = run(subject.reconcile(vgpu));
    EXPECT_TRUE(done) << done.error().message;
    return done.value_or(controller::action());
  }
  std::string record() const {
    return server.objects.at(set_path)["metadata"]["annotations"].value("state.quartermaster.io/rollout", "");
  }

 private:
  std::uint64_t version_ = 10'000;
};

TEST(rollouts, a_settled_module_is_not_written_to) {
  rollout_cluster cluster;
  EXPECT_FALSE(cluster.reconcile().again_in);
  EXPECT_EQ(cluster.reconcile().again_in, 250ms)
      << "a thousand nodes that enrol are not a thousand looks at a thousand";
  cluster.now += 250ms;
  EXPECT_FALSE(cluster.reconcile().again_in);
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  EXPECT_EQ(cluster.news, 0);
}

TEST(rollouts, writes_down_the_node_then_deletes_its_plugin_by_uid_then_waits) {
  rollout_cluster cluster;
  cluster.version("a.2");
  cluster.server.forget();
  cluster.reconcile();
  ASSERT_EQ(cluster.server.transport.sent.size(), 3u);
  const auto& patch = cluster.server.transport.sent[0];
  EXPECT_EQ(fake_server::verb_of(patch) + " " + fake_server::path_of_target(patch.target), "patch " + set_path);
  EXPECT_EQ(json::parse(patch.body)[0]["path"], "/metadata/uid");
  EXPECT_THAT(patch.target, HasSubstr("fieldManager=quartermaster-rollout"));
  const auto& removal = cluster.server.transport.sent[2];
  EXPECT_THAT(fake_server::path_of_target(removal.target), HasSubstr(pods_path + "plugin-gpu-1-"));
  EXPECT_FALSE(json::parse(removal.body)["preconditions"]["uid"].get<std::string>().empty());
  EXPECT_THAT(not_listed(cluster.server.transport.sent, "quartermaster"), IsEmpty());
  EXPECT_EQ(json::parse(cluster.record())["needs"],
            json({{"tencent.com/vcuda-core", 400}, {"tencent.com/vcuda-memory", 200}}));
  ASSERT_EQ(cluster.recorder.events.size(), 1u);
  EXPECT_EQ(cluster.recorder.events[0].reason, "PluginReplaced");
  EXPECT_EQ(cluster.news, 1);

  cluster.server.forget();
  cluster.node("gpu-1", 0);
  cluster.pod("gpu-1", "a.2");
  cluster.reconcile();
  cluster.node("gpu-1", 400);
  EXPECT_EQ(cluster.reconcile().again_in, 10s);
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  cluster.now += 10s;
  cluster.reconcile();
  ASSERT_EQ(cluster.server.writes().size(), 2u);
  EXPECT_THAT(cluster.server.writes()[1], HasSubstr("plugin-gpu-2-"));
  cluster.pod("gpu-2", "a.2");
  cluster.reconcile();
  cluster.now += 10s;
  cluster.server.forget();
  EXPECT_FALSE(cluster.reconcile().again_in);
  EXPECT_THAT(cluster.server.writes(), ElementsAre("patch " + set_path));
  EXPECT_EQ(cluster.record(), "");
  EXPECT_TRUE(cluster.subject.look("vgpu").message.empty());
}

TEST(rollouts, watches_that_are_behind_do_not_make_it_take_a_second_node) {
  rollout_cluster cluster;
  cluster.version("a.2");
  cluster.user("train", "gpu-1");
  cluster.lag_sets = cluster.lag_pods = true;
  cluster.server.forget();
  cluster.reconcile();
  ASSERT_EQ(cluster.server.writes().size(), 2u);
  EXPECT_THAT(cluster.server.writes()[1], HasSubstr("plugin-gpu-2-"));
  const auto record = cluster.record();
  cluster.pods.erase([&] {  // gpu-1 is free now, and what we see of gpu-2 is from before
    auto last = *cluster.pods.find({"team", "train"});
    last.resource_version += 1'000'000;
    return last;
  }());
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  cluster.lag_sets = cluster.lag_pods = false;
  for (const auto& [path, object] : cluster.server.objects) cluster.show(path, object, json());
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  EXPECT_EQ(cluster.record(), record);
}

TEST(rollouts, looks_again_when_a_pod_that_a_node_waits_for_ends) {
  rollout_cluster cluster;
  cluster.user("train", "gpu-1");
  cluster.user("infer", "gpu-2");
  const auto* pod = cluster.pods.find({"team", "train"});
  EXPECT_THAT(cluster.subject.affected_by(pod, static_cast<const kube::pod*>(nullptr)), IsEmpty())
      << "nothing is waiting";
  cluster.version("a.2");
  cluster.server.forget();
  EXPECT_FALSE(cluster.reconcile().again_in);
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  EXPECT_THAT(words::line_of(cluster.subject.look("vgpu").message),
              testing::HasSubstr(
                  "status.rollout.waits_for_pods.many{number=2,list=" + words::listed({"gpu-1", "gpu-2"}) + "}"));
  EXPECT_THAT(cluster.subject.affected_by(pod, static_cast<const kube::pod*>(nullptr)), ElementsAre(vgpu));
  module_spec now;
  now.rollout = "Always";
  cluster.policy(now);
  cluster.reconcile();
  EXPECT_EQ(cluster.server.writes().size(), 2u);
}

/// The policy turns to our plugin, which gives cards by CDI names. A node of containerd 1.7 keeps what it has.
TEST(rollouts, a_node_whose_runtime_takes_no_CDI_names_keeps_the_plugin_of_others) {
  rollout_cluster cluster;
  auto old = *cluster.nodes.find({{}, "gpu-1"});
  old.container_runtime = "containerd://1.7.27";
  ++old.resource_version;
  cluster.nodes.put(old);
  module_spec own_plugin;
  own_plugin.settings["plugin"] = "quartermaster";
  cluster.policy(own_plugin);
  cluster.version("a.2" + std::string(modules::placement_mark));
  cluster.server.forget();
  cluster.reconcile();
  ASSERT_EQ(cluster.server.writes().size(), 2U);
  EXPECT_THAT(cluster.server.writes()[1], HasSubstr("plugin-gpu-2"));
  EXPECT_THAT(cluster.record(), HasSubstr("gpu-2"));
}

TEST(rollouts, a_pod_that_our_watch_has_not_shown_yet_is_not_disturbed) {
  rollout_cluster cluster;
  cluster.version("a.2");
  cluster.on_server = {json::parse(R"({"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"limits":{
        "tencent.com/vcuda-core":"10"}}}]}})")};
  cluster.server.forget();
  EXPECT_TRUE(cluster.reconcile().again_in);
  EXPECT_THAT(cluster.server.writes(), ElementsAre("patch " + set_path)) << "and no plugin is deleted";
  cluster.on_server = {
      json::parse(R"({"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"limits":{"cpu":"1"}}}]}})")};
  cluster.server.forget();
  cluster.reconcile();
  ASSERT_EQ(cluster.server.writes().size(), 1u);
  EXPECT_THAT(cluster.server.writes()[0], HasSubstr("delete "));
}

TEST(rollouts, another_process_goes_on_where_the_last_was_killed) {
  rollout_cluster cluster;
  cluster.version("a.2");
  cluster.server.interfere = [&](const kube::request& request) -> std::optional<kube::response> {
    if (request.verb != kube::method::del) return cluster.answer_list(request);
    return recording_transport::refused(500, "InternalError");
  };
  EXPECT_FALSE(run(cluster.subject.reconcile(vgpu)));
  EXPECT_NE(cluster.record(), "");
  cluster.server.interfere = [&](const kube::request& request) { return cluster.answer_list(request); };
  cluster.server.forget();
  rollouts next{{cluster.policies, cluster.sets, cluster.nodes, cluster.pods, cluster.objects, cluster.on_nodes},
                cluster.client,
                cluster.recorder,
                {"quartermaster", [] { return controller::wall_time(1'800'002'000s); }, [] { return 5s; }, [] {}}};
  ASSERT_TRUE(run(next.reconcile(vgpu)));
  ASSERT_EQ(cluster.server.writes().size(), 1u);
  EXPECT_THAT(cluster.server.writes()[0], HasSubstr("delete " + pods_path + "plugin-gpu-1-"));
}

TEST(rollouts, the_record_of_an_earlier_version_counts_and_the_next_write_removes_it) {
  rollout_cluster cluster;
  cluster.version("a.2");
  cluster.reconcile();
  auto object = cluster.server.objects.at(set_path);
  auto& annotations = object["metadata"]["annotations"];
  annotations["quartermaster.io/rollout"] = cluster.record();
  annotations.erase("state.quartermaster.io/rollout");
  cluster.server.put(set_path, object);
  rollouts next{
      {cluster.policies, cluster.sets, cluster.nodes, cluster.pods, cluster.objects, cluster.on_nodes},
      cluster.client,
      cluster.recorder,
      {"quartermaster", [] { return controller::wall_time(1'800'000'000s); }, [&] { return cluster.now; }, [] {}}};
  const auto turn = [&] {
    cluster.server.forget();
    EXPECT_TRUE(run(next.reconcile(vgpu)));
    return cluster.server.writes();
  };
  EXPECT_THAT(turn(), IsEmpty()) << "gpu-1 is under way";
  cluster.pod("gpu-1", "a.2");
  EXPECT_THAT(turn(), IsEmpty()) << "it must stay well for a while";
  cluster.now += 10s;
  EXPECT_THAT(turn(), SizeIs(2)) << "one record follows the other, and the plugin of gpu-2 is deleted";
  EXPECT_FALSE(cluster.server.objects.at(set_path)["metadata"]["annotations"].contains("quartermaster.io/rollout"));
  EXPECT_EQ(json::parse(cluster.record())["node"], "gpu-2");
  cluster.pod("gpu-2", "a.2");
  turn();
  cluster.now += 10s;
  EXPECT_THAT(turn(), ElementsAre("patch " + set_path));
  EXPECT_EQ(cluster.record(), "");
}

TEST(rollouts, a_node_that_does_not_come_back_is_news_and_no_other_is_touched) {
  rollout_cluster cluster;
  cluster.version("a.2");
  cluster.reconcile();
  cluster.pod("gpu-1", "a.2", false);
  cluster.server.forget();
  cluster.reconcile();
  cluster.now += 301s;
  const auto before = cluster.news;
  EXPECT_FALSE(cluster.reconcile().again_in);
  EXPECT_EQ(cluster.news, before + 1);
  EXPECT_EQ(cluster.subject.look("vgpu").is, kind::halted);
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
}

TEST(rollouts, S52_a_node_moves_to_its_node_set_by_our_label_and_the_old_plugin_goes_first) {
  rollout_cluster cluster;
  cluster.nodes.erase(*cluster.nodes.find({{}, "gpu-2"}));
  const std::string path = "/api/v1/nodes/gpu-1";
  const auto label = [&] {
    return cluster.server.objects.at(path)["metadata"]["labels"].value("quartermaster.io/plugin-set", "none");
  };
  cluster.server.put(
      path,
      {{"metadata",
        {{"name", "gpu-1"}, {"labels", {{"quartermaster.io/module", "vgpu"}, {"quartermaster.io/node-set", "big"}}}}}});
  module_spec spec;
  spec.node_sets = {{"big", {}}};
  cluster.policy(spec);
  EXPECT_EQ(cluster.reconcile().again_in, std::nullopt);
  EXPECT_EQ(label(), "none") << "its DaemonSet is not there yet";
  const auto big = cluster.server.objects.at(set_path);
  auto made = big;
  made["metadata"]["name"] = "gpu-manager-daemonset-big";
  made["metadata"]["annotations"]["quartermaster.io/template"] = "b.1";
  made["metadata"].erase("uid");
  cluster.server.put(set_path + "-big", made);
  cluster.user("train", "gpu-1");
  cluster.now += 1s;
  cluster.reconcile();
  EXPECT_EQ(label(), "none") << "GPU-Manager's pods need it";
  cluster.pods.erase(*cluster.pods.find({"team", "train"}));
  cluster.now += 1s;
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_EQ(label(), "") << "neither DaemonSet has it";
  ASSERT_EQ(cluster.recorder.events.size(), 1u);
  EXPECT_EQ(cluster.recorder.events[0].reason, "PluginReplaced");
  cluster.reconcile();
  EXPECT_EQ(label(), "") << "the old plugin is still there";
  std::vector<kube::pod> old;
  for (const auto& pod : cluster.pods.all()) {
    if (pod.node_name == "gpu-1") old.push_back(pod);
  }
  for (const auto& pod : old) cluster.pods.erase(pod);
  cluster.reconcile();
  EXPECT_EQ(label(), "big");
  EXPECT_THAT(not_listed(cluster.server.transport.sent, "quartermaster"), IsEmpty());
}

TEST(rollouts, what_is_not_ours_is_left_alone) {
  rollout_cluster cluster;
  kube::daemon_set set;
  set.key = {"quartermaster", "theirs"};
  set.resource_version = 1;
  set.labels = packed({{"quartermaster.io/module", "vgpu"}});
  cluster.sets.put(set);
  EXPECT_THAT(cluster.subject.affected_by(static_cast<const kube::daemon_set*>(nullptr), &set), IsEmpty());
  cluster.policies.erase([&] {
    auto last = *cluster.policies.find({{}, "default"});
    last.resource_version += 1'000'000;
    return last;
  }());
  cluster.version("a.2");
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), IsEmpty()) << "without a policy nothing is done";
}

}  // namespace
}  // namespace reconcilers
