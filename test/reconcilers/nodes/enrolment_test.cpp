#include "reconcilers/nodes/enrolment.hpp"

#include "test/facts_in.hpp"
#include "test/reconcilers/fake_cluster.hpp"
#include "test/reconcilers/nodes/gpu_1.hpp"
#include "test/reconcilers/rights.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

/// The reconciler with a server whose watches it sees at once, unless they lag.
class cluster : public fake_cluster {
 public:
  controller::store<accelerator_policy> policies;
  controller::store<kube::node> nodes;
  controller::store<kube::pod> pods;
  controller::store<api::accelerator_node> objects;
  bool lag = false;
  std::vector<kube::object_key> woken;
  std::optional<bool> isolates;
  bool awaits_policy = false;
  enrolment subject{{policies, nodes, pods, objects},
                    client,
                    recorder,
                    {"quartermaster", [] { return controller::wall_time(1'800'000'000s); }, [this] { return now; },
                     [this](const kube::object_key& next) { woken.push_back(next); }, [this] { return isolates; },
                     [this] { return awaits_policy; }}};

  cluster() {
    sync(policies, nodes, pods, objects);
    server.watch = [this](const std::string& path, const json& is, const json& last) {
      if (!lag) show(path, is, last);
    };
    switch_modules({"pgpu", "vgpu", "mps"});
  }

  void show(const std::string& path, const json& is, const json& last) {
    const auto& any = is.is_null() ? last : is;
    if (path.contains("/pods/")) return;
    if (path.starts_with("/api/v1/nodes/")) {
      kube::node node;
      read_metadata(any, node);
      node.ready = kube::condition_status::yes;
      for (const auto& entry : any.value("/spec/taints"_json_pointer, json::array()))
        node.taints.push_back({entry.at("key"), entry.value("value", ""), entry.at("effect")});
      for (const auto& [name, amount] : any.value("/status/allocatable"_json_pointer, json::object()).items())
        node.allocatable.emplace_back(name, amount.get<std::int64_t>());
      node.container_runtime = any.value("/status/nodeInfo/containerRuntimeVersion"_json_pointer, "");
      is.is_null() ? nodes.erase(node) : nodes.put(node);
    } else {
      auto object = api::accelerator_node::decode(any.dump());
      ASSERT_TRUE(object) << object.error().message;
      is.is_null() ? objects.erase(*object) : objects.put(*object);
    }
  }
  void catch_up() {
    lag = false;
    for (const auto& [path, object] : server.objects) show(path, object, json());
  }
  void switch_modules(const std::vector<std::string>& names) {
    accelerator_policy policy;
    policy.key.name = "default";
    policy.resource_version = ++policy_version_;
    for (const auto& name : names) policy.modules[name].enabled = true;
    policies.put(policy);
  }
  void node(const json& labels, const json& allocatable = json::object()) {
    json node_labels = labels;
    node_labels["kubernetes.io/hostname"] = "gpu-1";
    server.put(node_path, {{"metadata", {{"name", "gpu-1"}, {"labels", node_labels}}},
                           {"spec", json::object()},
                           {"status", {{"allocatable", allocatable}}}});
  }
  /// A node without a module, only known.
  void other_node(const std::string& name, bool there = true) {
    kube::node made;
    made.key.name = name;
    made.resource_version = ++pod_version_;
    there ? nodes.put(made) : nodes.erase(made);
  }
  /// Changes the present node.
  void node_now(const std::function<void(json&)>& change) {
    auto object = server.objects.at(node_path);
    change(object);
    server.put(node_path, object);
  }
  void pod(const std::string& name, const std::string& mode, bool ready = true, const char* ns = "quartermaster") {
    kube::pod made;
    made.key = {ns, name};
    made.resource_version = ++pod_version_;
    made.labels = packed({{"quartermaster.io/module", mode}});
    made.node_name = "gpu-1";
    made.ready = ready;
    made.phase = kube::pod_phase::running;
    pods.put(made);
  }
  void pod_gone(const std::string& name) {
    kube::pod last = *pods.find({"quartermaster", name});
    last.resource_version = ++pod_version_;
    pods.erase(last);
  }
  controller::action reconcile() {
    const auto done = run(subject.reconcile(node_key));
    EXPECT_TRUE(done) << done.error().message;
    return done.value_or(controller::action());
  }
  json label() const {
    return server.objects.at(node_path)["metadata"]["labels"].value("quartermaster.io/module", json());
  }
  json status(const char* field) const {
    const auto match = server.objects.find(object_path);
    return match == server.objects.end() ? json("no object") : match->second["status"].value(field, json());
  }
  /// "key=value key" of all taints.
  std::string taints() const {
    std::string out;
    for (const auto& object : server.objects.at(node_path).value("/spec/taints"_json_pointer, json::array())) {
      (out += out.empty() ? "" : " ") += object.at("key").get<std::string>();
      if (object.contains("value")) out += "=" + object.at("value").get<std::string>();
    }
    return out;
  }
  void up(const std::string& mode) {
    pod(mode + "-x", mode);
    node_now([&](json& object) {
      for (const auto name : modules::find(mode)->resources) object["status"]["allocatable"][std::string(name)] = 8;
    });
  }
  void enrolled(const std::string& mode) {
    node({{"nvidia-device-enable", mode}});
    reconcile();
    up(mode);
    reconcile();
    ASSERT_EQ(status("phase"), "Ready");
    EXPECT_EQ(status("conditions")[0]["type"], "Ready");
    EXPECT_EQ(status("conditions")[0]["status"], "True");
    server.forget();
    recorder.events.clear();
  }

 private:
  std::uint64_t policy_version_ = 0, pod_version_ = 0;
};

/// containerd 1.7 takes no CDI names by default, by which our plugin gives cards.
TEST(enrolment, a_node_that_a_change_of_plugin_does_not_suit_keeps_its_mode_and_says_why) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.node_now(
      [](json& object) { object["status"]["nodeInfo"]["containerRuntimeVersion"] = "containerd://1.7.27"; });
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Ready") << "NVIDIA's plugin needs none";
  auto policy = *cluster.policies.find({{}, "default"});
  ++policy.resource_version;
  policy.modules["pgpu"].settings["plugin"] = "quartermaster";
  cluster.policies.put(policy);
  for (int i = 0; i < 3; ++i) {
    cluster.reconcile();
    EXPECT_EQ(cluster.label(), "pgpu");
    EXPECT_EQ(cluster.taints(), "");
    EXPECT_EQ(cluster.status("phase"), "Refused");
    EXPECT_EQ(cluster.status("actualMode"), "pgpu");
    EXPECT_EQ(cluster.status("cause"), "intent.no_cdi");
    EXPECT_EQ(cluster.status("conditions")[0]["status"], "False");
    cluster.now += 1min;
  }
  // Someone has deleted the plugin's pod, and the DaemonSet has made ours, which offers nothing here.
  cluster.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  cluster.now += 1h;
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Refused") << "it is not stuck";
  EXPECT_EQ(cluster.label(), "pgpu");
  cluster.node_now(
      [](json& object) { object["status"]["nodeInfo"]["containerRuntimeVersion"] = "containerd://2.1.0"; });
  cluster.up("pgpu");
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Ready");
}

TEST(enrolment, S3_labels_the_node_and_says_what_became_of_it) {
  cluster cluster;
  cluster.node({{"nvidia-device-enable", "vGPU"}});
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "vgpu");
  EXPECT_THAT(cluster.server.writes(),
              ElementsAre("patch " + node_path, "apply " + object_path, "apply " + object_path + "/status"));
  EXPECT_EQ(cluster.status("phase"), "Verifying");
  EXPECT_EQ(cluster.status("since"), "2027-01-15T08:00:00Z");
  const auto& metadata = cluster.server.objects.at(object_path)["metadata"];
  EXPECT_EQ(metadata["labels"]["app.kubernetes.io/managed-by"], "quartermaster");
  EXPECT_EQ(metadata["ownerReferences"][0]["uid"], cluster.server.objects.at(node_path)["metadata"]["uid"]);
  const auto patch = json::parse(cluster.server.transport.sent.at(0).body);
  EXPECT_EQ(patch[0],
            json::parse(R"({"op":"test","path":"/metadata/uid","value":"00000000-0000-4000-8000-000000100001"})"));
  EXPECT_EQ(patch[1], json::parse(R"({"op":"test","path":"/metadata/labels/quartermaster.io~1module","value":null})"));
  EXPECT_THAT(cluster.server.transport.sent.at(1).target, HasSubstr("fieldManager=quartermaster-controller"));

  cluster.pod("gpu-manager-x", "vgpu");
  cluster.node_now([](json& object) {
    object["status"]["allocatable"] = {{"tencent.com/vcuda-core", 800}, {"tencent.com/vcuda-memory", 512}};
  });
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), ElementsAre("apply " + object_path + "/status"));
  EXPECT_EQ(cluster.status("phase"), "Ready");
  EXPECT_EQ(cluster.status("actualMode"), "vgpu");
  ASSERT_EQ(cluster.recorder.events.size(), 1u);
  EXPECT_EQ(cluster.recorder.events[0].about.kind, "Node");
  EXPECT_EQ(cluster.recorder.events[0].reason, "Enrolled");
}

TEST(enrolment, a_settled_node_is_not_written_to) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.now += 1h;
  for (int i = 0; i < 3; ++i) cluster.reconcile();
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
  EXPECT_THAT(cluster.recorder.events, IsEmpty());
}

TEST(enrolment, next_to_a_CRD_without_fields_for_codes_leaves_them_out_and_comes_to_rest) {
  cluster cluster;
  cluster.server.interfere = [](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.contains("/status") || !request.body.contains("\"cause\"")) return std::nullopt;
    return recording_transport::refused(500, "InternalError",
                                        "failed to create typed patch object (/gpu-1; quartermaster.io/v1alpha1, "
                                        "Kind=AcceleratorNode): .status.cause: field not declared in schema");
  };
  cluster.enrolled("pgpu");
  EXPECT_FALSE(cluster.server.objects.at(object_path)["status"].dump().contains("cause"));
  EXPECT_NE(cluster.status("message"), "");
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), testing::IsEmpty());
  cluster.server.interfere = nullptr;
  cluster.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  cluster.reconcile();
  EXPECT_EQ(cluster.status("cause"), "status.node.starting") << "with the next change, once the CRD is new";
}

TEST(enrolment, S3_a_refusal_is_an_event_on_the_node_and_leaves_its_labels_alone) {
  cluster cluster;
  cluster.node({{"nvidia-device-enable", "vgpus"}});
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), json());
  EXPECT_EQ(cluster.status("phase"), "Refused");
  EXPECT_EQ(cluster.status("reason"), "UnknownMode");
  ASSERT_EQ(cluster.recorder.events.size(), 1u);
  EXPECT_EQ(cluster.recorder.events[0].type, controller::event_type::warning);
  EXPECT_THAT(cluster.recorder.events[0].note, HasSubstr("nvidia-device-enable=vgpus"));
  EXPECT_THAT(cluster.recorder.events[0].note, HasSubstr("pgpu, vgpu, enable, mps"));
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
}

TEST(enrolment, no_node_is_judged_before_the_policy_of_the_installation_is_applied) {
  cluster cluster;
  auto gone = *cluster.policies.find(policy_key);
  ++gone.resource_version;
  cluster.policies.erase(gone);
  cluster.awaits_policy = true;
  cluster.node({{"nvidia-device-enable", "pgpu"}});
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "no object");
  EXPECT_TRUE(cluster.recorder.events.empty());
  cluster.awaits_policy = false;  // it cannot be applied, or someone has deleted it
  cluster.reconcile();
  EXPECT_EQ(cluster.status("reason"), "NoPolicy");
  EXPECT_FALSE(cluster.recorder.events.empty());
}

TEST(enrolment, S58_changes_the_mode_by_removing_first) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.node_now([](json& object) {
    object["metadata"]["labels"]["nvidia-device-enable"] = "mps";
    object["spec"]["taints"] = json::array({{{"key", "theirs"}, {"effect", "NoSchedule"}}});
  });
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");
  EXPECT_EQ(cluster.taints(), "theirs quartermaster.io/switching=pgpu.mps");
  EXPECT_THAT(cluster.server.writes(), ElementsAre("patch " + node_path)) << "there is no pod to wait for and to name";
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), json());
  EXPECT_EQ(cluster.status("phase"), "Removing");
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), json()) << "the old plugin pod is still there";
  cluster.pod_gone("pgpu-x");
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), json()) << "its cards are still advertised";
  cluster.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "mps");
  cluster.up("mps");
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Ready");
  EXPECT_EQ(cluster.taints(), "theirs");
}

TEST(enrolment, a_plugin_stays_while_the_watch_has_not_shown_a_pod_of_its_node) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  cluster.reconcile();
  ASSERT_EQ(cluster.taints(), "quartermaster.io/switching=pgpu.mps");
  const std::string late = "/api/v1/namespaces/team/pods/late";
  const auto made = cluster.server.put(
      late, {{"metadata", {{"namespace", "team"}, {"name", "late"}}}, {"spec", {{"nodeName", "gpu-1"}}}});
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  EXPECT_THAT(cluster.server.transport.sent.at(0).target, HasSubstr("spec.nodeName%3Dgpu-1"));

  kube::pod earlier;  // another of the same name, which has gone
  earlier.key = {"team", "late"};
  earlier.node_name = "gpu-1";
  earlier.resource_version = 1;
  cluster.pods.put(earlier);
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");

  earlier.id = kube::uid::parse(made["metadata"]["uid"].get<std::string>());
  earlier.resource_version = 2;
  cluster.pods.put(earlier);
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), json()) << "it is known, and holds no card";
}

TEST(enrolment, a_plugin_stays_while_pods_cannot_be_read) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  cluster.reconcile();
  cluster.server.interfere = [](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.starts_with("/api/v1/pods")) return std::nullopt;
    return recording_transport::refused(403, "Forbidden");
  };
  const auto done = run(cluster.subject.reconcile(node_key));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, kube::errc::forbidden);
  EXPECT_EQ(cluster.label(), "pgpu");
  cluster.server.interfere = nullptr;
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), json());
}

TEST(enrolment, S74_takes_a_node_over_from_somebody_elses_plugin_and_gives_it_back) {
  cluster cluster;
  auto policy = *cluster.policies.find({{}, "default"});
  policy.enrolment.take_over = true;
  policy.resource_version = 50;
  cluster.policies.put(policy);
  kube::pod pod;
  pod.key = {"kube-system", "nvidia-device-plugin-daemonset-x"};
  pod.resource_version = 1;
  pod.node_name = "gpu-1";
  pod.owners = {{"DaemonSet", "nvidia-device-plugin-daemonset", {}, true}};
  pod.mounts_plugin_folder = true;
  cluster.pods.put(pod);
  const auto taken_over = [&] {
    return cluster.server.objects.at(node_path)["metadata"]["labels"].contains("quartermaster.io/taken-over");
  };
  cluster.node({{"nvidia-device-enable", "pgpu"}}, {{"nvidia.com/gpu", 8}});
  cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "quartermaster.io/switching=Foreign.pgpu");
  EXPECT_FALSE(taken_over());
  cluster.reconcile();
  EXPECT_TRUE(taken_over());
  EXPECT_EQ(cluster.status("phase"), "Removing");
  EXPECT_THAT(cluster.status("message").get<std::string>(), HasSubstr("kube-system/nvidia-device-plugin-daemonset"));
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), json()) << "two plugins never run on a node";
  pod.resource_version = 2;
  cluster.pods.erase(pod);
  cluster.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");
  cluster.up("pgpu");
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Ready");
  EXPECT_EQ(cluster.taints(), "");
  EXPECT_TRUE(taken_over()) << "or it would be back";
  cluster.node_now([](json& object) {
    object["metadata"]["labels"].erase("nvidia-device-enable");
    object["spec"].erase("taints");  // as the API server has an empty list
  });
  cluster.reconcile(), cluster.reconcile();
  cluster.pod_gone("pgpu-x");
  EXPECT_TRUE(taken_over());
  cluster.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  cluster.reconcile();
  EXPECT_FALSE(taken_over());
  EXPECT_EQ(cluster.taints(), "");
  EXPECT_EQ(cluster.server.objects.count(object_path), 0u);
  EXPECT_THAT(not_listed(cluster.server.transport.sent, "quartermaster"), IsEmpty());
}

TEST(enrolment, S74_the_name_of_a_daemon_set_alone_refuses_no_node) {
  cluster cluster;
  kube::pod pod;
  pod.key = {"lab", "my-nvidia-device-plugin-x"};
  pod.resource_version = 1;
  pod.node_name = "gpu-1";
  pod.owners = {{"DaemonSet", "my-nvidia-device-plugin", {}, true}};
  cluster.pods.put(pod);
  cluster.node({{"nvidia-device-enable", "pgpu"}});
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");
  EXPECT_THAT(cluster.subject.affected_by(&pod, nullptr), IsEmpty()) << "it wakes no one either";
}

TEST(enrolment, one_node_at_a_time_and_the_next_is_woken_when_it_is_done) {
  cluster cluster;
  cluster.enrolled("pgpu");
  kube::node other;
  other.key.name = "gpu-0";
  other.resource_version = 1;
  other.taints = {{"quartermaster.io/switching", "pgpu.mps", "NoSchedule"}};
  cluster.nodes.put(other);
  cluster.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Waiting");
  EXPECT_EQ(cluster.status("cause"), "status.node.no_turn");
  EXPECT_EQ(cluster.taints(), "");
  EXPECT_THAT(cluster.woken, IsEmpty());
  other.taints.clear();
  other.resource_version = 2;
  cluster.nodes.put(other);
  EXPECT_THAT(cluster.woken, ElementsAre(node_key));
  cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "quartermaster.io/switching=pgpu.mps");
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Removing");
}

TEST(enrolment, a_share_of_the_nodes_counts_no_node_with_an_agent_alone) {
  for (const auto* mode : {"", "none", "pgpu"}) {
    cluster cluster;
    for (int i = 0; i < 19; ++i) {
      api::accelerator_node reported;
      reported.key.name = "gpu-1" + std::to_string(i);
      reported.boot = "b";
      reported.mode.requested_mode = mode;
      cluster.objects.put(reported);
    }
    cluster.enrolled("pgpu");
    kube::node other;
    other.key.name = "gpu-0";
    other.taints = {{"quartermaster.io/switching", "pgpu.mps", "NoSchedule"}};
    cluster.nodes.put(other);
    cluster.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
    cluster.reconcile();
    EXPECT_EQ(cluster.status("phase") == "Waiting", std::string_view(mode) != "pgpu")
        << mode << ": 10 % are one, or two";
  }
}

TEST(enrolment, evicts_with_the_uid_waits_for_budgets_and_tells_the_pods) {
  cluster cluster;
  cluster.enrolled("pgpu");
  auto policy = *cluster.policies.find({{}, "default"});
  policy.enrolment.evict = true;
  ++policy.resource_version;
  cluster.policies.put(policy);
  for (const auto* name : {"guarded", "train"}) {
    kube::pod made;
    made.key = {"team", name};
    made.resource_version = 1;
    made.id = kube::uid::parse("00000000-0000-4000-8000-00000000000a");
    made.node_name = "gpu-1";
    made.owners = {{"ReplicaSet", "rs", {}, true}};
    made.containers = {{"main", kube::container::role::main, {{"nvidia.com/gpu", 1}}, {}}};
    cluster.pods.put(made);
  }
  cluster.server.interfere = [](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.ends_with("/eviction")) return std::nullopt;
    const bool no = request.target.contains("guarded");
    return no ? recording_transport::refused(429, "TooManyRequests")
              : recording_transport::answered(201, json::object());
  };
  cluster.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "quartermaster.io/switching=pgpu.mps");
  ASSERT_EQ(cluster.recorder.events.size(), 3u) << "one on the node, one on each pod";
  EXPECT_EQ(cluster.recorder.events[1].about.kind, "Pod");
  EXPECT_THAT(cluster.recorder.events[1].note, HasSubstr("node gpu-1 waits for this pod"));
  cluster.server.forget();
  EXPECT_EQ(cluster.reconcile().again_in, 5s);
  EXPECT_THAT(cluster.server.writes(),
              ElementsAre("apply " + object_path + "/status", "create /api/v1/namespaces/team/pods/guarded/eviction",
                          "create /api/v1/namespaces/team/pods/train/eviction"));
  EXPECT_THAT(cluster.server.transport.sent.at(1).body, HasSubstr("00000000-0000-4000-8000-00000000000a"));
  cluster.reconcile();
  EXPECT_EQ(cluster.status("blockerCauses")[0]["cause"], "status.node.refusal.budget");
  EXPECT_EQ(cluster.recorder.events.size(), 3u) << "said once";
  EXPECT_THAT(not_listed(cluster.server.transport.sent, "quartermaster"), IsEmpty());
}

TEST(enrolment, a_pod_that_cannot_be_evicted_stops_none_of_the_others) {
  cluster cluster;
  cluster.enrolled("pgpu");
  auto policy = *cluster.policies.find({{}, "default"});
  policy.enrolment.evict = true;
  ++policy.resource_version;
  cluster.policies.put(policy);
  for (const auto* name : {"a-two-budgets", "b-plain"}) {
    kube::pod made;
    made.key = {"team", name};
    made.resource_version = 1;
    made.node_name = "gpu-1";
    made.owners = {{"ReplicaSet", "rs", {}, true}};
    made.containers = {{"main", kube::container::role::main, {{"nvidia.com/gpu", 1}}, {}}};
    cluster.pods.put(made);
  }
  cluster.server.interfere = [](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.ends_with("/eviction")) return std::nullopt;
    return request.target.contains("a-two") ? recording_transport::refused(500, "InternalError")
                                            : recording_transport::answered(201, json::object());
  };
  cluster.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  cluster.reconcile();
  cluster.server.forget();
  EXPECT_EQ(cluster.reconcile().again_in, 5s);
  EXPECT_THAT(cluster.server.writes(), testing::Contains("create /api/v1/namespaces/team/pods/b-plain/eviction"));
  cluster.reconcile();
  EXPECT_THAT(cluster.status("blockers")[0].get<std::string>(), HasSubstr("a-two-budgets"));
  EXPECT_EQ(cluster.status("blockerCauses")[0]["cause"], "status.node.refusal.other");
  EXPECT_THAT(cluster.status("parameters").dump(), HasSubstr("status.node.drain.refused"));
  const auto refusals = std::ranges::count_if(cluster.recorder.events, [](const auto& event) {
    return event.reason == "EvictionRefused" && event.about.key.name == "a-two-budgets";
  });
  EXPECT_EQ(refusals, 1) << "said once";
}

/// Without our extender a kube-scheduler puts pods that tolerate every taint on the node from which they were evicted.
TEST(enrolment, S58_pods_that_come_back_are_evicted_less_and_less_often_and_their_owner_is_named) {
  cluster cluster;
  cluster.enrolled("pgpu");
  auto policy = *cluster.policies.find({{}, "default"});
  policy.enrolment.evict = true;
  ++policy.resource_version;
  cluster.policies.put(policy);
  std::uint64_t version = 0;
  std::map<std::string, kube::pod> there;
  const auto create = [&](const std::string& name) {
    kube::pod made;
    made.key = {"team", name};
    made.resource_version = ++version;
    made.id = kube::uid::parse("pod-" + name);
    made.node_name = "gpu-1";
    made.owners = {{"ReplicaSet", "train", kube::uid::parse("train"), true}};
    made.containers = {{"main", kube::container::role::main, {{"nvidia.com/gpu", 1}}, {}}};
    cluster.pods.put(made);
    there[name] = made;
  };
  for (const auto* name : {"a-0", "a-1", "a-2"}) create(name);
  int evictions = 0, made = 0;
  // The pod ends at once, and its owner makes another, which is bound here again.
  cluster.server.interfere = [&](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.ends_with("/eviction")) return std::nullopt;
    ++evictions;
    const auto path = request.target.substr(0, request.target.rfind('/'));
    const auto name = path.substr(path.rfind('/') + 1);
    auto last = there.at(name);
    last.resource_version = ++version;
    cluster.pods.erase(last);
    there.erase(name);
    create("b-" + std::to_string(++made));
    return recording_transport::answered(201, json::object());
  };
  cluster.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  cluster.reconcile();
  cluster.reconcile();
  EXPECT_EQ(evictions, 3) << "each pod that was there first, once";
  cluster.now += 1s;
  EXPECT_EQ(cluster.reconcile().again_in, 9s);
  EXPECT_EQ(evictions, 3);
  EXPECT_THAT(cluster.status("blockers")[0].get<std::string>(), HasSubstr("team/b-1"));
  EXPECT_EQ(cluster.status("blockerCauses")[0],
            json::parse(R"({"pod":"team/b-1","cause":"status.node.comes_back","parameters":)"
                        R"({"controller":"ReplicaSet train","taint":"quartermaster.io/switching"}})"));
  EXPECT_THAT(cluster.status("parameters").dump(), HasSubstr("status.node.drain.returned"));
  for (int second = 0; second < 600; ++second) {
    cluster.now += 1s;
    cluster.reconcile();
  }
  EXPECT_EQ(evictions, 3 * 6) << "after 0, 10, 30, 70, 150 and 310 s";
  cluster.server.interfere = {};
  for (const auto& [name, pod] : there) {
    auto last = pod;
    last.resource_version = ++version;
    cluster.pods.erase(last);
  }
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Removing") << "scaled down, the change goes on";
}

TEST(enrolment, S52_the_set_of_a_node_comes_and_goes_with_its_module) {
  cluster cluster;
  auto policy = *cluster.policies.find({{}, "default"});
  policy.modules["pgpu"].node_sets = {{"big", {}}};
  ++policy.resource_version;
  cluster.policies.put(policy);
  const auto set = [&] {
    return cluster.server.objects.at(node_path)["metadata"]["labels"].value("quartermaster.io/plugin-set", "none");
  };
  cluster.node({{"nvidia-device-enable", "pgpu"}, {"quartermaster.io/node-set", "big"}});
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");
  EXPECT_EQ(set(), "big") << "in the same patch, or the other DaemonSet would make a pod first";
  cluster.up("pgpu");
  cluster.reconcile();
  ASSERT_EQ(cluster.status("phase"), "Ready");
  cluster.node_now([](json& object) { object["metadata"]["labels"]["quartermaster.io/node-set"] = "small"; });
  cluster.reconcile();
  EXPECT_EQ(set(), "big") << "a node that runs is moved in its turn (rollouts)";
  cluster.node_now([](json& object) { object["metadata"]["labels"].erase("nvidia-device-enable"); });
  for (int i = 0; i < 3; ++i) cluster.reconcile();
  EXPECT_EQ(cluster.label(), json());
  EXPECT_EQ(set(), "none");
}

TEST(enrolment, what_was_given_up_is_in_the_api_before_anything_is_undone) {
  cluster cluster;
  cluster.node({{"nvidia-device-enable", "pgpu"}});
  cluster.reconcile();
  cluster.now += 301s;
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), ElementsAre("apply " + object_path + "/status"));
  EXPECT_EQ(cluster.status("rolledBack")["reason"], "VerifyTimeout");
  EXPECT_EQ(cluster.status("rolledBack")["at"], "2027-01-15T08:00:00Z");
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), json());
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "RolledBack");
  EXPECT_EQ(cluster.status("rolledBack")["request"], "pgpu");
}

TEST(enrolment, a_pod_elsewhere_that_wears_our_label_holds_nobody_up) {
  cluster cluster;
  cluster.node({{"nvidia-device-enable", "pgpu"}});
  cluster.pod("intruder", "mps", true, "team");
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");
}

TEST(enrolment, asking_for_nothing_takes_label_and_object_away) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.node_now([](json& object) { object["metadata"]["labels"].erase("nvidia-device-enable"); });
  cluster.reconcile(), cluster.reconcile();
  EXPECT_EQ(cluster.label(), json());
  cluster.pod_gone("pgpu-x");
  cluster.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "");
  EXPECT_EQ(cluster.status("phase"), "no object");
}

TEST(enrolment, a_node_that_asks_for_nothing_costs_nothing) {
  cluster cluster;
  cluster.node({});
  cluster.reconcile();
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
  EXPECT_THAT(cluster.subject.affected_by(nullptr, cluster.nodes.find(node_key)), IsEmpty());
}

/// What an agent has made: no one owns it. With a report once it has written one.
void agent_object(cluster& cluster, bool reported) {
  json object = {{"metadata", {{"name", "gpu-1"}}}, {"status", json::object()}};
  if (reported) object["status"] = {{"driver", {{"boot", "b"}}}, {"cards", json::array({{{"uuid", "GPU-a"}}})}};
  cluster.server.put(object_path, object);
}

TEST(enrolment, S1_what_an_agent_reports_of_a_node_that_asks_for_nothing_stays_as_long_as_the_node) {
  cluster cluster;
  cluster.node({});
  agent_object(cluster, false);
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  agent_object(cluster, true);
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), ElementsAre("apply " + object_path)) << "a fleet reports for the first time";
  EXPECT_EQ(cluster.server.objects.at(object_path)["metadata"]["ownerReferences"][0]["uid"],
            cluster.server.objects.at(node_path)["metadata"]["uid"]);
  EXPECT_EQ(cluster.status("cards"), json::array({{{"uuid", "GPU-a"}}}));
  EXPECT_EQ(cluster.status("phase"), json());
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  cluster.server.erase(node_path);
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), ElementsAre("delete " + object_path));
}

TEST(enrolment, S1_a_mode_comes_and_goes_and_what_the_agent_reported_stays) {
  cluster cluster;
  cluster.node({});
  agent_object(cluster, true);
  cluster.reconcile();
  cluster.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "pgpu"; });
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Verifying");
  cluster.node_now([](json& object) { object["metadata"]["labels"].erase("nvidia-device-enable"); });
  for (int i = 0; i < 4; ++i) cluster.reconcile();
  EXPECT_EQ(cluster.label(), json());
  EXPECT_EQ(cluster.status("phase"), json());
  EXPECT_EQ(cluster.status("conditions"), json());
  EXPECT_EQ(cluster.status("cards"), json::array({{{"uuid", "GPU-a"}}}));
}

TEST(enrolment, the_object_goes_with_its_node) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.server.erase(node_path);
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), ElementsAre("delete " + object_path));
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
}

TEST(enrolment, an_object_whose_deletion_is_held_up_is_named_on_its_node_after_a_minute) {
  cluster cluster;
  cluster.enrolled("pgpu");
  auto object = cluster.server.objects.at(object_path);
  object["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z";
  object["metadata"]["finalizers"] = {"example.com/hold"};
  cluster.server.put(object_path, object);
  cluster.server.interfere = [&](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.contains("fieldSelector=metadata.name%3Dgpu-1")) return std::nullopt;
    return recording_transport::answered(200, {{"items", {cluster.server.objects.at(object_path)}}});
  };
  cluster.node_now([](json& node) { node["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  EXPECT_EQ(cluster.reconcile().again_in, 60s);
  cluster.now += 59s;
  EXPECT_EQ(cluster.reconcile().again_in, 1s);
  EXPECT_THAT(cluster.recorder.events, IsEmpty());
  cluster.now += 1s;
  EXPECT_EQ(cluster.reconcile().again_in, std::nullopt);
  cluster.reconcile();
  ASSERT_EQ(cluster.recorder.events.size(), 1u) << "said once";
  EXPECT_EQ(cluster.recorder.events[0].about.kind, "Node");
  EXPECT_EQ(cluster.recorder.events[0].reason, "HeldByFinalizer");
  EXPECT_THAT(cluster.recorder.events[0].note,
              words::has_in_order({"AcceleratorNode gpu-1 ", "deleted", "finalizer example.com/hold: "}));
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  EXPECT_THAT(not_listed(cluster.server.transport.sent, "quartermaster"), IsEmpty());
  cluster.server.erase(object_path);
  cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "quartermaster.io/switching=pgpu.mps") << "when it is gone the change goes on";
}

TEST(enrolment, F3_another_node_of_the_same_name_starts_anew) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.server.erase(node_path);
  cluster.pod_gone("pgpu-x");
  cluster.node({{"nvidia-device-enable", "pgpu"}});  // another uid
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), ElementsAre("delete " + object_path));
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");
  EXPECT_EQ(cluster.status("phase"), "Verifying");
  EXPECT_EQ(cluster.server.objects.at(object_path)["metadata"]["ownerReferences"][0]["uid"],
            cluster.server.objects.at(node_path)["metadata"]["uid"]);
}

TEST(enrolment, F25_the_label_and_the_object_come_back) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.node_now([](json& object) { object["metadata"]["labels"].erase("quartermaster.io/module"); });
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");
  cluster.server.erase(object_path);
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Ready");
}

TEST(enrolment, F2_does_not_act_on_a_store_that_is_behind_its_own_write) {
  cluster cluster;
  cluster.node({{"nvidia-device-enable", "pgpu"}});
  cluster.lag = true;
  cluster.reconcile();
  cluster.server.forget();
  EXPECT_TRUE(cluster.reconcile().again_in) << "it looks again even if the watch never shows it";
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
  cluster.catch_up();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
  EXPECT_EQ(cluster.label(), "pgpu");
}

TEST(enrolment, F2_a_write_that_comes_too_late_changes_nothing) {
  cluster cluster;
  cluster.node({{"nvidia-device-enable", "pgpu"}});
  cluster.lag = true;  // the node is replaced by another of that name, and we have not heard of it
  cluster.server.erase(node_path);
  cluster.node({{"nvidia-device-enable", "mps"}});
  cluster.server.interfere = [&](const kube::request& request) -> std::optional<kube::response> {
    if (request.target.starts_with(node_path)) cluster.catch_up();  // it is heard while the write is under way
    return std::nullopt;
  };
  EXPECT_EQ(cluster.reconcile().again_in, 250ms);
  EXPECT_EQ(cluster.label(), json());
  EXPECT_EQ(cluster.status("phase"), "no object");
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "mps");
}

TEST(enrolment, F6_what_cannot_be_written_is_an_error_to_be_tried_again) {
  cluster cluster;
  cluster.node({{"nvidia-device-enable", "pgpu"}});
  cluster.server.interfere = [](const kube::request&) { return recording_transport::refused(500, "InternalError"); };
  const auto done = run(cluster.subject.reconcile(node_key));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, kube::errc::server);
  cluster.server.interfere = nullptr;
  cluster.reconcile();
  EXPECT_EQ(cluster.label(), "pgpu");
}

/// F1: killed before or after every write of a whole enrolment; the successor has only the API.
TEST(enrolment, F1_killed_around_every_write_the_successor_ends_at_the_same_place) {
  for (std::size_t k = 0; k < 3; ++k) {
    for (const bool answered : {false, true}) {
      cluster cluster;
      cluster.node({{"nvidia-device-enable", "pgpu"}});
      std::size_t writes = 0;
      cluster.server.interfere = [&](const kube::request&) -> std::optional<kube::response> {
        const bool dead = answered ? writes > k : writes >= k;
        ++writes;
        return dead ? std::optional(recording_transport::refused(500, "Killed")) : std::nullopt;
      };
      (void)run(cluster.subject.reconcile(node_key));
      cluster.server.interfere = nullptr;
      enrolment successor{{cluster.policies, cluster.nodes, cluster.pods, cluster.objects},
                          cluster.client,
                          cluster.recorder,
                          {"quartermaster"}};
      ASSERT_TRUE(run(successor.reconcile(node_key)));
      EXPECT_EQ(cluster.label(), "pgpu") << k;
      EXPECT_EQ(cluster.status("phase"), "Verifying") << k;
      cluster.server.forget();
      ASSERT_TRUE(run(successor.reconcile(node_key)));
      EXPECT_THAT(cluster.server.writes(), IsEmpty()) << k;
    }
  }
}

TEST(enrolment, S2_a_policy_that_turns_a_module_on_or_off_wakes_the_nodes_it_concerns) {
  cluster cluster;
  cluster.node({{"nvidia-device-enable", "vgpu"}});
  auto match = *cluster.policies.find({{}, "default"});
  auto disabled = match;
  disabled.modules["vgpu"].enabled = false;
  EXPECT_THAT(cluster.subject.affected_by(&disabled, &match), ElementsAre(node_key));
  auto image = match;
  image.modules["pgpu"].image = "x:2";
  EXPECT_THAT(cluster.subject.affected_by(&match, &image), IsEmpty());
  image.modules["vgpu"].image = "x:2";
  EXPECT_THAT(cluster.subject.affected_by(&match, &image), ElementsAre(node_key))
      << "the tested image does not suit every node, and another may";
  auto own = match;
  own.modules["vgpu"].settings["plugin"] = "quartermaster";
  EXPECT_THAT(cluster.subject.affected_by(&match, &own), ElementsAre(node_key))
      << "our plugin suits nodes that GPU-Manager does not";
  auto other = match;
  other.key.name = "other";
  EXPECT_THAT(cluster.subject.affected_by(nullptr, &other), IsEmpty());

  cluster.enrolled("pgpu");
  cluster.switch_modules({"vgpu"});
  cluster.reconcile(), cluster.reconcile();
  EXPECT_EQ(cluster.label(), json());
  cluster.pod_gone("pgpu-x");
  cluster.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  cluster.reconcile();
  EXPECT_EQ(cluster.status("phase"), "Disabled");
  EXPECT_EQ(cluster.status("reason"), "ModuleDisabled");
  EXPECT_EQ(cluster.status("actualMode"), "none");
}

TEST(enrolment, asks_for_no_right_that_the_chart_does_not_give) {
  cluster cluster;
  cluster.node({{"nvidia-device-enable", "pgpu"}});
  cluster.reconcile();
  cluster.node_now([](json& object) { object["metadata"]["labels"].erase("nvidia-device-enable"); });
  cluster.reconcile();
  cluster.reconcile();
  EXPECT_GT(cluster.server.transport.sent.size(), 4u);
  EXPECT_THAT(not_listed(cluster.server.transport.sent, "quartermaster"), IsEmpty());
}

TEST(enrolment, waits_for_all_of_its_stores) {
  cluster cluster;
  controller::store<kube::pod> empty;
  enrolment early{
      {cluster.policies, cluster.nodes, empty, cluster.objects}, cluster.client, cluster.recorder, {"quartermaster"}};
  cluster.node({{"nvidia-device-enable", "pgpu"}});
  const auto done = run(early.reconcile(node_key));
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->again_in);
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
}

TEST(enrolment, a_node_with_a_module_is_isolated_while_pods_have_a_scheduler_of_their_own) {
  cluster cluster;
  cluster.other_node("cpu-1");
  cluster.enrolled("pgpu");
  cluster.node_now([](json& object) {
    object["spec"]["taints"] = json::array({{{"key", "example.com/theirs"}, {"effect", "NoSchedule"}}});
  });
  cluster.isolates = true;
  EXPECT_THAT(cluster.subject.isolation_changed(), ElementsAre(node_key));
  cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "example.com/theirs quartermaster.io/accelerator");
  EXPECT_THAT(not_listed(cluster.server.transport.sent, "quartermaster"), IsEmpty());
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  EXPECT_EQ(cluster.status("phase"), "Ready") << "it is no change of mode";

  cluster.isolates = std::nullopt;  // an operator that has just started does not know yet
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  cluster.isolates = false;
  EXPECT_THAT(cluster.subject.isolation_changed(), ElementsAre(node_key));
  cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "example.com/theirs");
}

TEST(enrolment, a_node_stays_isolated_while_its_mode_changes_and_is_free_when_it_has_none) {
  cluster cluster;
  cluster.other_node("cpu-1");
  cluster.enrolled("pgpu");
  cluster.isolates = true;
  cluster.reconcile();
  cluster.node_now([](json& object) { object["metadata"]["labels"].erase("nvidia-device-enable"); });
  for (int i = 0; i < 3; ++i) cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "quartermaster.io/accelerator quartermaster.io/switching=pgpu.none");
  cluster.pod_gone("pgpu-x");
  cluster.node_now([](json& object) { object["status"]["allocatable"] = json::object(); });
  for (int i = 0; i < 5; ++i) cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "");
}

TEST(enrolment, one_node_at_least_is_left_to_everything_else) {
  cluster cluster;
  cluster.enrolled("pgpu");
  cluster.isolates = true;
  cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "") << "every node has a module";
  cluster.woken.clear();
  cluster.other_node("cpu-1");
  EXPECT_THAT(cluster.woken, ElementsAre(node_key));
  cluster.reconcile();
  EXPECT_EQ(cluster.taints(), "quartermaster.io/accelerator");
  cluster.other_node("cpu-1", false);
  cluster.server.forget();
  cluster.reconcile();
  EXPECT_THAT(cluster.server.writes(), IsEmpty()) << "what is isolated stays so";
}

}  // namespace
}  // namespace reconcilers
