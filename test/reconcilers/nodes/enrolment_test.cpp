#include "reconcilers/nodes/enrolment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/reconcilers/fake_server.hpp"
#include "test/reconcilers/recording_recorder.hpp"
#include "test/reconcilers/rights.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string node_path = "/api/v1/nodes/gpu-1";
const std::string object_path = "/apis/quartermaster.io/v1alpha1/acceleratornodes/gpu-1";
const kube::object_key key{{}, "gpu-1"};

kube::packed_map packed(const json& map) {
  std::map<std::string, std::string> held;
  for (const auto& [name, value] : map.items()) held[name] = value.get<std::string>();
  std::vector<kube::packed_map::entry> entries(held.begin(), held.end());
  return kube::packed_map::of(entries);
}

void read_metadata(const json& object, kube::object& into) {
  const auto& metadata = object.at("metadata");
  into.key.ns = metadata.value("namespace", "");
  into.key.name = metadata.at("name");
  into.id = kube::uid::parse(metadata.value("uid", ""));
  into.resource_version = std::stoull(metadata.value("resourceVersion", "0"));
  into.labels = packed(metadata.value("labels", json::object()));
}

/// The reconciler with a server whose watches it sees at once, unless they lag.
class cluster {
 public:
  fake_server server;
  kube::client client{server.transport};
  recording_recorder recorder;
  controller::store<accelerator_policy> policies;
  controller::store<kube::node> nodes;
  controller::store<kube::pod> pods;
  controller::store<accelerator_node> objects;
  std::chrono::milliseconds now{1'000'000};
  bool lag = false;
  std::vector<kube::object_key> woken;
  std::optional<bool> isolates;
  enrolment subject{{policies, nodes, pods, objects},
                    client,
                    recorder,
                    {"quartermaster", [] { return controller::wall_time(1'800'000'000s); }, [this] { return now; },
                     [this](const kube::object_key& next) { woken.push_back(next); }, [this] { return isolates; }}};

  cluster() {
    auto sync = [](auto& store) { store.begin(), store.commit(); };
    sync(policies), sync(nodes), sync(pods), sync(objects);
    server.watch = [this](const std::string& path, const json& is, const json& last) {
      if (!lag) show(path, is, last);
    };
    switch_modules({"pgpu", "vgpu", "mps"});
  }

  void show(const std::string& path, const json& is, const json& last) {
    const auto& any = is.is_null() ? last : is;
    if (path.starts_with("/api/v1/nodes/")) {
      kube::node node;
      read_metadata(any, node);
      node.ready = kube::condition_status::yes;
      for (const auto& one : any.value("/spec/taints"_json_pointer, json::array()))
        node.taints.push_back({one.at("key"), one.value("value", ""), one.at("effect")});
      for (const auto& [name, amount] : any.value("/status/allocatable"_json_pointer, json::object()).items())
        node.allocatable.emplace_back(name, amount.get<std::int64_t>());
      is.is_null() ? nodes.erase(node) : nodes.put(node);
    } else {
      auto object = accelerator_node::decode(any.dump());
      ASSERT_TRUE(object) << object.error().what;
      is.is_null() ? objects.erase(*object) : objects.put(*object);
    }
  }
  void catch_up() {
    lag = false;
    for (const auto& [path, object] : server.objects) show(path, object, json());
  }
  void switch_modules(const std::vector<std::string>& on) {
    accelerator_policy policy;
    policy.key.name = "default";
    policy.resource_version = ++policy_version_;
    for (const auto& name : on) policy.modules[name].enabled = true;
    if (policy.modules.contains("mps")) policy.modules["mps"].image = "mps-plugin:test";  // there is no public one
    policies.put(policy);
  }
  void node(const json& labels, const json& allocatable = json::object()) {
    json with = labels;
    with["kubernetes.io/hostname"] = "gpu-1";
    server.put(node_path, {{"metadata", {{"name", "gpu-1"}, {"labels", with}}},
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
    const auto done = run(subject.reconcile(key));
    EXPECT_TRUE(done) << done.error().what;
    return done.value_or(controller::action());
  }
  json label() const {
    return server.objects.at(node_path)["metadata"]["labels"].value("quartermaster.io/module", json());
  }
  json status(const char* field) const {
    const auto at = server.objects.find(object_path);
    return at == server.objects.end() ? json("no object") : at->second["status"].value(field, json());
  }
  /// "key=value key" of all taints.
  std::string taints() const {
    std::string out;
    for (const auto& one : server.objects.at(node_path).value("/spec/taints"_json_pointer, json::array())) {
      (out += out.empty() ? "" : " ") += one.at("key").get<std::string>();
      if (one.contains("value")) out += "=" + one.at("value").get<std::string>();
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

TEST(enrolment, S3_labels_the_node_and_says_what_became_of_it) {
  cluster it;
  it.node({{"nvidia-device-enable", "vGPU"}});
  it.reconcile();
  EXPECT_EQ(it.label(), "vgpu");
  EXPECT_THAT(it.server.writes(),
              ElementsAre("patch " + node_path, "apply " + object_path, "apply " + object_path + "/status"));
  EXPECT_EQ(it.status("phase"), "Verifying");
  EXPECT_EQ(it.status("since"), "2027-01-15T08:00:00Z");
  const auto& metadata = it.server.objects.at(object_path)["metadata"];
  EXPECT_EQ(metadata["labels"]["app.kubernetes.io/managed-by"], "quartermaster");
  EXPECT_EQ(metadata["ownerReferences"][0]["uid"], it.server.objects.at(node_path)["metadata"]["uid"]);
  const auto patch = json::parse(it.server.transport.sent.at(0).body);
  EXPECT_EQ(patch[0],
            json::parse(R"({"op":"test","path":"/metadata/uid","value":"00000000-0000-4000-8000-000000100001"})"));
  EXPECT_EQ(patch[1], json::parse(R"({"op":"test","path":"/metadata/labels/quartermaster.io~1module","value":null})"));
  EXPECT_THAT(it.server.transport.sent.at(1).target, HasSubstr("fieldManager=quartermaster-controller"));

  it.pod("gpu-manager-x", "vgpu");
  it.node_now([](json& object) {
    object["status"]["allocatable"] = {{"tencent.com/vcuda-core", 800}, {"tencent.com/vcuda-memory", 512}};
  });
  it.server.forget();
  it.reconcile();
  EXPECT_THAT(it.server.writes(), ElementsAre("apply " + object_path + "/status"));
  EXPECT_EQ(it.status("phase"), "Ready");
  EXPECT_EQ(it.status("actualMode"), "vgpu");
  ASSERT_EQ(it.recorder.events.size(), 1u);
  EXPECT_EQ(it.recorder.events[0].about.kind, "Node");
  EXPECT_EQ(it.recorder.events[0].reason, "Enrolled");
}

TEST(enrolment, a_settled_node_is_not_written_to) {
  cluster it;
  it.enrolled("pgpu");
  it.now += 1h;
  for (int i = 0; i < 3; ++i) it.reconcile();
  EXPECT_THAT(it.server.transport.sent, IsEmpty());
  EXPECT_THAT(it.recorder.events, IsEmpty());
}

TEST(enrolment, S3_a_refusal_is_an_event_on_the_node_and_leaves_its_labels_alone) {
  cluster it;
  it.node({{"nvidia-device-enable", "vgpus"}});
  it.reconcile();
  EXPECT_EQ(it.label(), json());
  EXPECT_EQ(it.status("phase"), "Refused");
  EXPECT_EQ(it.status("reason"), "UnknownMode");
  ASSERT_EQ(it.recorder.events.size(), 1u);
  EXPECT_EQ(it.recorder.events[0].type, controller::event_type::warning);
  EXPECT_THAT(it.recorder.events[0].note, HasSubstr("nvidia-device-enable=vgpus"));
  EXPECT_THAT(it.recorder.events[0].note, HasSubstr("allowed are pgpu, vgpu, enable, mps"));
  it.server.forget();
  it.reconcile();
  EXPECT_THAT(it.server.transport.sent, IsEmpty());
}

TEST(enrolment, C61_changes_the_mode_by_removing_first) {
  cluster it;
  it.enrolled("pgpu");
  it.node_now([](json& object) {
    object["metadata"]["labels"]["nvidia-device-enable"] = "mps";
    object["spec"]["taints"] = json::array({{{"key", "theirs"}, {"effect", "NoSchedule"}}});
  });
  it.reconcile();
  EXPECT_EQ(it.label(), "pgpu");
  EXPECT_EQ(it.taints(), "theirs quartermaster.io/switching=pgpu.mps");
  EXPECT_THAT(it.server.writes(), ElementsAre("patch " + node_path)) << "there is no pod to wait for and to name";
  it.reconcile();
  EXPECT_EQ(it.label(), json());
  EXPECT_EQ(it.status("phase"), "Removing");
  it.reconcile();
  EXPECT_EQ(it.label(), json()) << "the old plugin pod is still there";
  it.pod_gone("pgpu-x");
  it.reconcile();
  EXPECT_EQ(it.label(), json()) << "its cards are still advertised";
  it.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  it.reconcile();
  EXPECT_EQ(it.label(), "mps");
  it.up("mps");
  it.reconcile();
  EXPECT_EQ(it.status("phase"), "Ready");
  EXPECT_EQ(it.taints(), "theirs");
}

TEST(enrolment, S74_takes_a_node_over_from_somebody_elses_plugin_and_gives_it_back) {
  cluster it;
  auto policy = *it.policies.find({{}, "default"});
  policy.enrolment.take_over = true;
  policy.resource_version = 50;
  it.policies.put(policy);
  kube::pod theirs;
  theirs.key = {"kube-system", "nvidia-device-plugin-daemonset-x"};
  theirs.resource_version = 1;
  theirs.node_name = "gpu-1";
  theirs.owners = {{"DaemonSet", "nvidia-device-plugin-daemonset", {}, true}};
  it.pods.put(theirs);
  const auto taken_over = [&] {
    return it.server.objects.at(node_path)["metadata"]["labels"].contains("quartermaster.io/taken-over");
  };
  it.node({{"nvidia-device-enable", "pgpu"}}, {{"nvidia.com/gpu", 8}});
  it.reconcile();
  EXPECT_EQ(it.taints(), "quartermaster.io/switching=Foreign.pgpu");
  EXPECT_FALSE(taken_over());
  it.reconcile();
  EXPECT_TRUE(taken_over());
  EXPECT_EQ(it.status("phase"), "Removing");
  EXPECT_THAT(it.status("message").get<std::string>(),
              HasSubstr("DaemonSet kube-system/nvidia-device-plugin-daemonset"));
  it.reconcile();
  EXPECT_EQ(it.label(), json()) << "two plugins never run on a node";
  theirs.resource_version = 2;
  it.pods.erase(theirs);
  it.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  it.reconcile();
  EXPECT_EQ(it.label(), "pgpu");
  it.up("pgpu");
  it.reconcile();
  EXPECT_EQ(it.status("phase"), "Ready");
  EXPECT_EQ(it.taints(), "");
  EXPECT_TRUE(taken_over()) << "or it would be back";
  it.node_now([](json& object) {
    object["metadata"]["labels"].erase("nvidia-device-enable");
    object["spec"].erase("taints");  // as the API server has an empty list
  });
  it.reconcile(), it.reconcile();
  it.pod_gone("pgpu-x");
  EXPECT_TRUE(taken_over());
  it.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  it.reconcile();
  EXPECT_FALSE(taken_over());
  EXPECT_EQ(it.taints(), "");
  EXPECT_EQ(it.server.objects.count(object_path), 0u);
  EXPECT_THAT(not_listed(it.server.transport.sent, "quartermaster"), IsEmpty());
}

TEST(enrolment, one_node_at_a_time_and_the_next_is_woken_when_it_is_done) {
  cluster it;
  it.enrolled("pgpu");
  kube::node other;
  other.key.name = "gpu-0";
  other.resource_version = 1;
  other.taints = {{"quartermaster.io/switching", "pgpu.mps", "NoSchedule"}};
  it.nodes.put(other);
  it.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  it.reconcile();
  EXPECT_EQ(it.status("phase"), "Waiting");
  EXPECT_THAT(it.status("message").get<std::string>(), HasSubstr("maxUnavailable"));
  EXPECT_EQ(it.taints(), "");
  EXPECT_THAT(it.woken, IsEmpty());
  other.taints.clear();
  other.resource_version = 2;
  it.nodes.put(other);
  EXPECT_THAT(it.woken, ElementsAre(key));
  it.reconcile();
  EXPECT_EQ(it.taints(), "quartermaster.io/switching=pgpu.mps");
  it.reconcile();
  EXPECT_EQ(it.status("phase"), "Removing");
}

TEST(enrolment, C62_evicts_with_the_uid_waits_for_budgets_and_tells_the_pods) {
  cluster it;
  it.enrolled("pgpu");
  auto policy = *it.policies.find({{}, "default"});
  policy.enrolment.evict = true;
  ++policy.resource_version;
  it.policies.put(policy);
  for (const auto* name : {"guarded", "train"}) {
    kube::pod made;
    made.key = {"team", name};
    made.resource_version = 1;
    made.id = kube::uid::parse("00000000-0000-4000-8000-00000000000a");
    made.node_name = "gpu-1";
    made.owners = {{"ReplicaSet", "rs", {}, true}};
    made.containers = {{"main", kube::container::role::main, {{"nvidia.com/gpu", 1}}, {}}};
    it.pods.put(made);
  }
  it.server.interfere = [](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.ends_with("/eviction")) return std::nullopt;
    const bool no = request.target.contains("guarded");
    return no ? recording_transport::refused(429, "TooManyRequests")
              : recording_transport::answered(201, json::object());
  };
  it.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  it.reconcile();
  EXPECT_EQ(it.taints(), "quartermaster.io/switching=pgpu.mps");
  ASSERT_EQ(it.recorder.events.size(), 3u) << "one on the node, one on each pod";
  EXPECT_EQ(it.recorder.events[1].about.kind, "Pod");
  EXPECT_THAT(it.recorder.events[1].note, HasSubstr("node gpu-1 waits for this pod"));
  it.server.forget();
  EXPECT_EQ(it.reconcile().again_in, 5s);
  EXPECT_THAT(it.server.writes(),
              ElementsAre("apply " + object_path + "/status", "create /api/v1/namespaces/team/pods/guarded/eviction",
                          "create /api/v1/namespaces/team/pods/train/eviction"));
  EXPECT_THAT(it.server.transport.sent.at(1).body, HasSubstr("00000000-0000-4000-8000-00000000000a"));
  it.reconcile();
  EXPECT_THAT(it.status("blockers")[0].get<std::string>(), HasSubstr("PodDisruptionBudget"));
  EXPECT_EQ(it.recorder.events.size(), 3u) << "said once";
  EXPECT_THAT(not_listed(it.server.transport.sent, "quartermaster"), IsEmpty());
}

TEST(enrolment, C62_a_pod_that_cannot_be_evicted_stops_none_of_the_others) {
  cluster it;
  it.enrolled("pgpu");
  auto policy = *it.policies.find({{}, "default"});
  policy.enrolment.evict = true;
  ++policy.resource_version;
  it.policies.put(policy);
  for (const auto* name : {"a-two-budgets", "b-plain"}) {
    kube::pod made;
    made.key = {"team", name};
    made.resource_version = 1;
    made.node_name = "gpu-1";
    made.owners = {{"ReplicaSet", "rs", {}, true}};
    made.containers = {{"main", kube::container::role::main, {{"nvidia.com/gpu", 1}}, {}}};
    it.pods.put(made);
  }
  it.server.interfere = [](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.ends_with("/eviction")) return std::nullopt;
    return request.target.contains("a-two") ? recording_transport::refused(500, "InternalError")
                                            : recording_transport::answered(201, json::object());
  };
  it.node_now([](json& object) { object["metadata"]["labels"]["nvidia-device-enable"] = "mps"; });
  it.reconcile();
  it.server.forget();
  EXPECT_EQ(it.reconcile().again_in, 5s);
  EXPECT_THAT(it.server.writes(), testing::Contains("create /api/v1/namespaces/team/pods/b-plain/eviction"));
  it.reconcile();
  EXPECT_THAT(it.status("blockers")[0].get<std::string>(), HasSubstr("a-two-budgets (its eviction is refused: "));
  EXPECT_THAT(it.status("message").get<std::string>(), HasSubstr("refuses to evict 1 of them"));
  const auto refusals = std::ranges::count_if(it.recorder.events, [](const auto& event) {
    return event.reason == "EvictionRefused" && event.about.key.name == "a-two-budgets";
  });
  EXPECT_EQ(refusals, 1) << "said once";
}

TEST(enrolment, S52_the_set_of_a_node_comes_and_goes_with_its_module) {
  cluster it;
  auto policy = *it.policies.find({{}, "default"});
  policy.modules["pgpu"].node_sets = {{"big", {}}};
  ++policy.resource_version;
  it.policies.put(policy);
  const auto set = [&] {
    return it.server.objects.at(node_path)["metadata"]["labels"].value("quartermaster.io/plugin-set", "none");
  };
  it.node({{"nvidia-device-enable", "pgpu"}, {"quartermaster.io/node-set", "big"}});
  it.reconcile();
  EXPECT_EQ(it.label(), "pgpu");
  EXPECT_EQ(set(), "big") << "in the same patch, or the other DaemonSet would make a pod first";
  it.up("pgpu");
  it.reconcile();
  ASSERT_EQ(it.status("phase"), "Ready");
  it.node_now([](json& object) { object["metadata"]["labels"]["quartermaster.io/node-set"] = "small"; });
  it.reconcile();
  EXPECT_EQ(set(), "big") << "a node that runs is moved in its turn (rollouts)";
  it.node_now([](json& object) { object["metadata"]["labels"].erase("nvidia-device-enable"); });
  for (int i = 0; i < 3; ++i) it.reconcile();
  EXPECT_EQ(it.label(), json());
  EXPECT_EQ(set(), "none");
}

TEST(enrolment, what_was_given_up_is_in_the_api_before_anything_is_undone) {
  cluster it;
  it.node({{"nvidia-device-enable", "pgpu"}});
  it.reconcile();
  it.now += 301s;
  it.server.forget();
  it.reconcile();
  EXPECT_THAT(it.server.writes(), ElementsAre("apply " + object_path + "/status"));
  EXPECT_EQ(it.status("rolledBack")["reason"], "VerifyTimeout");
  EXPECT_EQ(it.status("rolledBack")["at"], "2027-01-15T08:00:00Z");
  it.reconcile();
  EXPECT_EQ(it.label(), json());
  it.reconcile();
  EXPECT_EQ(it.status("phase"), "RolledBack");
  EXPECT_EQ(it.status("rolledBack")["request"], "pgpu");
}

TEST(enrolment, a_pod_elsewhere_that_wears_our_label_holds_nobody_up) {
  cluster it;
  it.node({{"nvidia-device-enable", "pgpu"}});
  it.pod("intruder", "mps", true, "team");
  it.reconcile();
  EXPECT_EQ(it.label(), "pgpu");
}

TEST(enrolment, asking_for_nothing_takes_label_and_object_away) {
  cluster it;
  it.enrolled("pgpu");
  it.node_now([](json& object) { object["metadata"]["labels"].erase("nvidia-device-enable"); });
  it.reconcile(), it.reconcile();
  EXPECT_EQ(it.label(), json());
  it.pod_gone("pgpu-x");
  it.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  it.reconcile();
  EXPECT_EQ(it.taints(), "");
  EXPECT_EQ(it.status("phase"), "no object");
}

TEST(enrolment, a_node_that_asks_for_nothing_costs_nothing) {
  cluster it;
  it.node({});
  it.reconcile();
  EXPECT_THAT(it.server.transport.sent, IsEmpty());
  EXPECT_THAT(it.subject.affected_by(nullptr, it.nodes.find(key)), IsEmpty());
}

TEST(enrolment, the_object_goes_with_its_node) {
  cluster it;
  it.enrolled("pgpu");
  it.server.erase(node_path);
  it.reconcile();
  EXPECT_THAT(it.server.writes(), ElementsAre("delete " + object_path));
  it.server.forget();
  it.reconcile();
  EXPECT_THAT(it.server.transport.sent, IsEmpty());
}

TEST(enrolment, F3_another_node_of_the_same_name_starts_anew) {
  cluster it;
  it.enrolled("pgpu");
  it.server.erase(node_path);
  it.pod_gone("pgpu-x");
  it.node({{"nvidia-device-enable", "pgpu"}});  // another uid
  it.reconcile();
  EXPECT_THAT(it.server.writes(), ElementsAre("delete " + object_path));
  it.reconcile();
  EXPECT_EQ(it.label(), "pgpu");
  EXPECT_EQ(it.status("phase"), "Verifying");
  EXPECT_EQ(it.server.objects.at(object_path)["metadata"]["ownerReferences"][0]["uid"],
            it.server.objects.at(node_path)["metadata"]["uid"]);
}

TEST(enrolment, F25_the_label_and_the_object_come_back) {
  cluster it;
  it.enrolled("pgpu");
  it.node_now([](json& object) { object["metadata"]["labels"].erase("quartermaster.io/module"); });
  it.reconcile();
  EXPECT_EQ(it.label(), "pgpu");
  it.server.erase(object_path);
  it.reconcile();
  EXPECT_EQ(it.status("phase"), "Ready");
}

TEST(enrolment, F2_does_not_act_on_a_store_that_is_behind_its_own_write) {
  cluster it;
  it.node({{"nvidia-device-enable", "pgpu"}});
  it.lag = true;
  it.reconcile();
  it.server.forget();
  EXPECT_TRUE(it.reconcile().again_in) << "it looks again even if the watch never shows it";
  EXPECT_THAT(it.server.transport.sent, IsEmpty());
  it.catch_up();
  it.reconcile();
  EXPECT_THAT(it.server.transport.sent, IsEmpty());
  EXPECT_EQ(it.label(), "pgpu");
}

TEST(enrolment, F2_a_write_that_comes_too_late_changes_nothing) {
  cluster it;
  it.node({{"nvidia-device-enable", "pgpu"}});
  it.lag = true;  // the node is replaced by another of that name, and we have not heard of it
  it.server.erase(node_path);
  it.node({{"nvidia-device-enable", "mps"}});
  it.server.interfere = [&](const kube::request& request) -> std::optional<kube::response> {
    if (request.target.starts_with(node_path)) it.catch_up();  // it is heard while the write is under way
    return std::nullopt;
  };
  EXPECT_EQ(it.reconcile().again_in, 250ms);
  EXPECT_EQ(it.label(), json());
  EXPECT_EQ(it.status("phase"), "no object");
  it.reconcile();
  EXPECT_EQ(it.label(), "mps");
}

TEST(enrolment, F6_what_cannot_be_written_is_an_error_to_be_tried_again) {
  cluster it;
  it.node({{"nvidia-device-enable", "pgpu"}});
  it.server.interfere = [](const kube::request&) { return recording_transport::refused(500, "InternalError"); };
  const auto done = run(it.subject.reconcile(key));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, kube::errc::server);
  it.server.interfere = nullptr;
  it.reconcile();
  EXPECT_EQ(it.label(), "pgpu");
}

/// F1: killed before or after every write of a whole enrolment; the successor has only the API.
TEST(enrolment, F1_killed_around_every_write_the_successor_ends_at_the_same_place) {
  for (std::size_t k = 0; k < 3; ++k) {
    for (const bool answered : {false, true}) {
      cluster it;
      it.node({{"nvidia-device-enable", "pgpu"}});
      std::size_t writes = 0;
      it.server.interfere = [&](const kube::request&) -> std::optional<kube::response> {
        const bool dead = answered ? writes > k : writes >= k;
        ++writes;
        return dead ? std::optional(recording_transport::refused(500, "Killed")) : std::nullopt;
      };
      (void)run(it.subject.reconcile(key));
      it.server.interfere = nullptr;
      enrolment successor{{it.policies, it.nodes, it.pods, it.objects}, it.client, it.recorder, {"quartermaster"}};
      ASSERT_TRUE(run(successor.reconcile(key)));
      EXPECT_EQ(it.label(), "pgpu") << k;
      EXPECT_EQ(it.status("phase"), "Verifying") << k;
      it.server.forget();
      ASSERT_TRUE(run(successor.reconcile(key)));
      EXPECT_THAT(it.server.writes(), IsEmpty()) << k;
    }
  }
}

TEST(enrolment, S2_a_policy_that_turns_a_module_on_or_off_wakes_the_nodes_it_concerns) {
  cluster it;
  it.node({{"nvidia-device-enable", "vgpu"}});
  auto off = *it.policies.find({{}, "default"});
  auto on = off;
  on.modules["vgpu"].enabled = false;
  EXPECT_THAT(it.subject.affected_by(&on, &off), ElementsAre(key));
  auto image = off;
  image.modules["vgpu"].image = "x:2";
  EXPECT_THAT(it.subject.affected_by(&off, &image), IsEmpty());
  auto offered = off;
  off.modules["mps"].image.clear();
  EXPECT_THAT(it.subject.affected_by(&off, &offered), ElementsAre(key)) << "what was not offered is, by an image";
  auto other = off;
  other.key.name = "other";
  EXPECT_THAT(it.subject.affected_by(nullptr, &other), IsEmpty());

  it.enrolled("pgpu");
  it.switch_modules({"vgpu"});
  it.reconcile(), it.reconcile();
  EXPECT_EQ(it.label(), json());
  it.pod_gone("pgpu-x");
  it.node_now([](json& object) { object["status"]["allocatable"]["nvidia.com/gpu"] = 0; });
  it.reconcile();
  EXPECT_EQ(it.status("phase"), "Disabled");
  EXPECT_EQ(it.status("reason"), "ModuleDisabled");
  EXPECT_EQ(it.status("actualMode"), "none");
}

TEST(enrolment, asks_for_no_right_that_the_chart_does_not_give) {
  cluster it;
  it.node({{"nvidia-device-enable", "pgpu"}});
  it.reconcile();
  it.node_now([](json& object) { object["metadata"]["labels"].erase("nvidia-device-enable"); });
  it.reconcile();
  it.reconcile();
  EXPECT_GT(it.server.transport.sent.size(), 4u);
  EXPECT_THAT(not_listed(it.server.transport.sent, "quartermaster"), IsEmpty());
}

TEST(enrolment, waits_for_all_of_its_stores) {
  cluster it;
  controller::store<kube::pod> empty;
  enrolment early{{it.policies, it.nodes, empty, it.objects}, it.client, it.recorder, {"quartermaster"}};
  it.node({{"nvidia-device-enable", "pgpu"}});
  const auto done = run(early.reconcile(key));
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->again_in);
  EXPECT_THAT(it.server.transport.sent, IsEmpty());
}

TEST(enrolment, a_node_with_a_module_is_isolated_while_pods_have_a_scheduler_of_their_own) {
  cluster it;
  it.other_node("cpu-1");
  it.enrolled("pgpu");
  it.node_now([](json& object) {
    object["spec"]["taints"] = json::array({{{"key", "example.com/theirs"}, {"effect", "NoSchedule"}}});
  });
  it.isolates = true;
  EXPECT_THAT(it.subject.isolation_changed(), ElementsAre(key));
  it.reconcile();
  EXPECT_EQ(it.taints(), "example.com/theirs quartermaster.io/accelerator");
  EXPECT_THAT(not_listed(it.server.transport.sent, "quartermaster"), IsEmpty());
  it.server.forget();
  it.reconcile();
  EXPECT_THAT(it.server.writes(), IsEmpty());
  EXPECT_EQ(it.status("phase"), "Ready") << "it is no change of mode";

  it.isolates = std::nullopt;  // an operator that has just started does not know yet
  it.reconcile();
  EXPECT_THAT(it.server.writes(), IsEmpty());
  it.isolates = false;
  EXPECT_THAT(it.subject.isolation_changed(), ElementsAre(key));
  it.reconcile();
  EXPECT_EQ(it.taints(), "example.com/theirs");
}

TEST(enrolment, a_node_stays_isolated_while_its_mode_changes_and_is_free_when_it_has_none) {
  cluster it;
  it.other_node("cpu-1");
  it.enrolled("pgpu");
  it.isolates = true;
  it.reconcile();
  it.node_now([](json& object) { object["metadata"]["labels"].erase("nvidia-device-enable"); });
  for (int i = 0; i < 3; ++i) it.reconcile();
  EXPECT_EQ(it.taints(), "quartermaster.io/accelerator quartermaster.io/switching=pgpu.none");
  it.pod_gone("pgpu-x");
  it.node_now([](json& object) { object["status"]["allocatable"] = json::object(); });
  for (int i = 0; i < 5; ++i) it.reconcile();
  EXPECT_EQ(it.taints(), "");
}

TEST(enrolment, one_node_at_least_is_left_to_everything_else) {
  cluster it;
  it.enrolled("pgpu");
  it.isolates = true;
  it.reconcile();
  EXPECT_EQ(it.taints(), "") << "every node has a module";
  it.woken.clear();
  it.other_node("cpu-1");
  EXPECT_THAT(it.woken, ElementsAre(key));
  it.reconcile();
  EXPECT_EQ(it.taints(), "quartermaster.io/accelerator");
  it.other_node("cpu-1", false);
  it.server.forget();
  it.reconcile();
  EXPECT_THAT(it.server.writes(), IsEmpty()) << "what is isolated stays so";
}

}  // namespace
}  // namespace reconcilers
