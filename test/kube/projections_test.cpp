// Every projection against what the real Kubernetes types say of the same bytes (test/kube/golden/gen).

#include <gtest/gtest.h>

#include "kube/projections/config_map.hpp"
#include "kube/projections/daemon_set.hpp"
#include "kube/projections/deployment.hpp"
#include "kube/projections/described_pod.hpp"
#include "kube/projections/from_json.hpp"
#include "kube/projections/lease.hpp"
#include "kube/projections/name_space.hpp"
#include "kube/projections/node.hpp"
#include "kube/projections/pod.hpp"
#include "kube/projections/running_pod.hpp"
#include "kube/rfc3339.hpp"
#include "test/facts_in.hpp"
#include "test/kube/golden.hpp"

namespace {

using nlohmann::json;

static_assert(kube::projection<kube::node> && kube::projection<kube::pod> && kube::projection<kube::daemon_set> &&
              kube::projection<kube::deployment> && kube::projection<kube::config_map> &&
              kube::projection<kube::lease> && kube::projection<kube::name_space>);

json to_json(const kube::quantities& amounts) {
  auto made = json::object();
  for (const auto& [name, value] : amounts) made[name] = value;
  return made;
}

json to_json(const kube::node& node) {
  static constexpr std::string_view ready[] = {"Unknown", "False", "True"};
  auto taints = json::array();
  for (const auto& taint : node.taints) {
    taints.push_back({{"key", taint.key}, {"value", taint.value}, {"effect", taint.effect}});
  }
  return {{"meta", golden::meta_to_json(node)},           {"unschedulable", node.unschedulable},
          {"has_gpu_discovery", node.has_gpu_discovery},  {"taints", taints},
          {"ready", ready[static_cast<int>(node.ready)]}, {"ready_since", node.ready_since},
          {"capacity", to_json(node.capacity)},           {"allocatable", to_json(node.allocatable)},
          {"container_runtime", node.container_runtime},  {"kubelet_version", node.kubelet_version},
          {"operating_system", node.operating_system},    {"architecture", node.architecture}};
}

json to_json(const kube::pod& pod) {
  static constexpr std::string_view roles[] = {"main", "init", "sidecar"};
  auto containers = json::array();
  for (const auto& container : pod.containers) {
    containers.push_back({{"name", container.name},
                          {"role", roles[static_cast<int>(container.kind)]},
                          {"limits", to_json(container.limits)}});
  }
  return {{"meta", golden::meta_to_json(pod)},
          {"node_name", pod.node_name},
          {"nominated_node", pod.nominated_node.empty() ? "" : pod.nominated_node.front()},
          {"scheduler_name", pod.scheduler_name},
          {"ip", pod.ip},
          {"reason", pod.reason},
          {"containers", containers},
          {"scheduled_at", pod.scheduled_at},
          {"finished_at", pod.finished_at},
          {"priority", pod.priority},
          {"restarts", pod.restarts},
          {"phase", to_string(pod.phase)},
          {"ready", pod.ready},
          {"host_network", pod.host_network},
          {"mounts_plugin_folder", pod.mounts_plugin_folder},
          {"mirror", pod.mirror}};
}

json to_json(const kube::daemon_set& set) {
  return {{"meta", golden::meta_to_json(set)},
          {"image", set.image},
          {"observed_generation", set.observed_generation},
          {"desired", set.desired},
          {"current", set.current},
          {"ready", set.ready},
          {"updated", set.updated},
          {"available", set.available},
          {"misscheduled", set.misscheduled}};
}

json to_json(const kube::deployment& set) {
  return {
      {"meta", golden::meta_to_json(set)}, {"desired", set.desired}, {"observed_generation", set.observed_generation},
      {"replicas", set.replicas},          {"updated", set.updated}, {"ready", set.ready},
      {"available", set.available},        {"problem", set.problem}};
}

json to_json(const kube::config_map& config) {
  auto sizes = json::object();
  for (const auto& [key, size] : config.binary) sizes[key] = size;
  return {{"meta", golden::meta_to_json(config)},
          {"data", golden::to_json(config.data)},
          {"binary", sizes},
          {"immutable", config.immutable}};
}

json to_json(const kube::lease& lease) {
  return {{"meta", golden::meta_to_json(lease)},        {"holder", lease.holder},
          {"duration_seconds", lease.duration_seconds}, {"transitions", lease.transitions},
          {"acquired_us", lease.acquired_us},           {"renewed_us", lease.renewed_us}};
}

json to_json(const kube::name_space& space) { return {{"meta", golden::meta_to_json(space)}}; }

template <class T>
void expect_golden_from_json(const std::string& name) {
  const auto made = kube::from_json<T>(golden::read(name + ".json"));
  ASSERT_TRUE(made) << name << ": " << made.error().message;
  auto expected = golden::read_json(name + ".expected.json");
  if constexpr (std::is_same_v<T, kube::config_map>) expected["binary"] = json::object();
  EXPECT_EQ(to_json(*made), expected) << name;
}

template <class T>
void expect_golden(const std::string& name) {
  const auto made = T::decode(golden::read(name + ".pb"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(to_json(*made), golden::read_json(name + ".expected.json")) << name;
}

template <class T>
void expect_random(const std::string& name) {
  const auto messages = golden::split(golden::read(name + ".pb"));
  const auto expected = golden::read_json(name + ".expected.json");
  ASSERT_EQ(messages.size(), expected.size());
  ASSERT_GE(messages.size(), 40u);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const auto made = T::decode(messages[i]);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(to_json(*made), expected[i]) << i;
  }
}

TEST(projections, read_a_gpu_node_as_kubernetes_wrote_it) { expect_golden<kube::node>("node_gfd"); }

TEST(projections, read_pods_as_kubernetes_wrote_them) {
  for (const auto* name : {"pod_gpu", "pod_plain", "pod_mirror", "pod_evicted", "pod_described"})
    expect_golden<kube::pod>(name);
}

TEST(projections, read_when_a_pod_was_bound_and_when_its_last_container_ended) {
  for (const auto* name : {"pod_finished", "pod_init_failed", "pod_lost_running", "pod_lost_waiting", "pod_lost_end",
                           "pod_restarting", "pod_unbound", "pod_taken_back", "pod_taken_back_early"})
    expect_golden<kube::pod>(name);
}

TEST(projections, read_all_that_a_pod_says_of_where_it_may_run_and_of_what_keeps_it) {
  const auto made = kube::described_pod::decode(golden::read("pod_described.pb"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*made, kube::from_json<kube::described_pod>(golden::read("pod_described.json")).value());
  kube::described_pod expected{kube::pod::decode(golden::read("pod_described.pb")).value()};
  expected.containers.at(1).requests = {{"nvidia.com/gpu", 2}};
  expected.deleted_at = kube::parse_rfc3339("2026-07-01T11:10:30Z").value();
  expected.grace_s = 30;
  expected.finalizers = {"a.example/b", "c.example/d"};
  expected.gates = {"gate"};
  expected.claims = {{"claim", "", ""}};
  expected.native_limits = {"cpu", "kubernetes.io/gpu"};
  expected.rules.selector = {{"arch", "amd64"}, {"zone", "x"}};
  expected.rules.tolerations = {{"k", "Equal", "v", "NoSchedule"}, {"", "Exists", "", ""}};
  expected.rules.terms = {{{"disk", "In", {"ssd", "nvme"}, false}, {"metadata.name", "NotIn", {"n"}, true}}, {}};
  expected.status = {"", "Held", "by a gate"};
  expected.scheduled = {"False", "SchedulingGated", "waits for gates"};
  expected.waiting = {{"first", "ImagePullBackOff", "no image"}, {"main", "PodInitializing", ""}};
  expected.ends = {{"runs", "OOMKilled", 137, kube::parse_rfc3339("2026-07-01T11:05:30Z").value(), 3, true}};
  EXPECT_EQ(*made, expected);
  // The projection of the stores keeps none of that, and of pods that ask for nothing no containers.
  const auto plain = kube::described_pod::decode(golden::read("pod_plain.pb")).value();
  EXPECT_FALSE(plain.rules.terms);
  EXPECT_FALSE(plain.containers.empty());
}

/// Pods with one volume each, by its path on the node.
TEST(projections, read_which_pods_can_register_a_device_plugin) {
  const auto pods = golden::split(golden::read("host_paths.pb"));
  const auto expected = golden::read_json("host_paths.expected.json");
  ASSERT_EQ(pods.size(), expected.size());
  std::size_t yes = 0;
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const auto made = kube::pod::decode(pods[i]);
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(made->mounts_plugin_folder, expected[i]["registers"].get<bool>()) << expected[i]["path"];
    yes += made->mounts_plugin_folder ? 1 : 0;
  }
  EXPECT_GT(yes, 5u);
  EXPECT_GT(pods.size() - yes, 5u);
}

TEST(projections, read_a_daemon_set_as_kubernetes_wrote_it) { expect_golden<kube::daemon_set>("daemon_set"); }
TEST(projections, read_a_deployment_as_kubernetes_wrote_it) { expect_golden<kube::deployment>("deployment"); }
TEST(projections, read_a_config_map_as_kubernetes_wrote_it) { expect_golden<kube::config_map>("config_map"); }
TEST(projections, read_a_lease_as_kubernetes_wrote_it) { expect_golden<kube::lease>("lease"); }
TEST(projections, read_a_namespace_as_kubernetes_wrote_it) { expect_golden<kube::name_space>("name_space"); }

TEST(projections, are_the_same_of_an_object_in_json) {
  for (const auto* name : {"pod_gpu", "pod_plain", "pod_mirror", "pod_evicted", "pod_finished", "pod_init_failed",
                           "pod_lost_running", "pod_lost_waiting", "pod_lost_end", "pod_restarting", "pod_unbound",
                           "pod_taken_back", "pod_taken_back_early", "pod_described"})
    expect_golden_from_json<kube::pod>(name);
  expect_golden_from_json<kube::node>("node_gfd");
  expect_golden_from_json<kube::daemon_set>("daemon_set");
  expect_golden_from_json<kube::lease>("lease");
  expect_golden_from_json<kube::config_map>("config_map");
}

TEST(projections, say_how_long_a_pod_that_is_deleted_has_to_end) {
  EXPECT_EQ(kube::running_pod::decode(golden::read("pod_gpu.pb"))->grace_s, 30);
  EXPECT_EQ(kube::running_pod::decode(golden::read("pod_plain.pb"))->grace_s, 0) << "it is not deleted";
}

/// What no API server would take is no reason to lose the object: the field alone is left out.
TEST(projections, leave_out_what_is_of_another_type_in_json) {
  const auto node = kube::from_json<kube::node>(
      R"({"metadata":{"name":"n","labels":{"a":1,"b":"x"},"creationTimestamp":"soon","generation":"3"},
          "spec":{"unschedulable":"yes","taints":{"key":"k"}},
          "status":{"capacity":{"nvidia.com/gpu":"2","example.com/x":3 ,"example.com/y":true},"nodeInfo":null}})");
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ(node->key.name, "n");
  EXPECT_EQ(node->labels.size(), 1u);
  EXPECT_FALSE(node->unschedulable);
  EXPECT_EQ(node->capacity, (kube::quantities{{"example.com/x", 3}, {"nvidia.com/gpu", 2}}));
  for (const auto* text :
       {"", "[]", "{", "7", R"({"metadata":{"name":"n"},"spec":{)", R"({"metadata":{"name":"n"},"spec":7})",
        R"({"metadata":{"name":"n"},"status":{"allocatable":"all"}})", R"({"metadata":{}})"}) {
    const auto no_node = kube::from_json<kube::node>(text);
    ASSERT_FALSE(no_node) << text;
    EXPECT_EQ(no_node.error().code, kube::errc::decode) << text;
  }
}

TEST(projections, F55_read_objects_with_every_field_of_the_real_types_filled_at_random) {
  expect_random<kube::node>("random_nodes");
  expect_random<kube::pod>("random_pods");
}

TEST(projections, F55_skip_fields_of_newer_servers) {
  auto bytes = golden::read("pod_gpu.pb");
  const auto before = kube::pod::decode(bytes);
  bytes += std::string("\xfa\x3f\x03new", 6);  // field 1023, bytes
  bytes += std::string("\xf0\x3f\x2a", 3);     // field 1022, varint
  bytes += std::string(
      "\xed\x3f"
      "abcd",
      6);  // field 1021, fixed32
  const auto after = kube::pod::decode(bytes);
  ASSERT_TRUE(before);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(*before, *after);
}

TEST(projections, F55_a_known_field_with_another_wire_type_is_skipped_like_an_unknown_one) {
  auto bytes = golden::read("config_map.pb");
  const auto before = kube::config_map::decode(bytes);
  bytes += std::string("\x10\x07", 2);  // data (2) as a varint
  const auto after = kube::config_map::decode(bytes);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(*before, *after);
}

TEST(projections, name_the_object_that_cannot_be_decoded) {
  auto bytes = golden::read("pod_gpu.pb");
  bytes += "\x1a\x7f";  // status announces more bytes than there are
  const auto made = kube::pod::decode(bytes);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, kube::errc::decode);
  EXPECT_TRUE(made.error().message.starts_with("Pod team-a/trainer-7d9c5b8f4-x2x9k: ")) << made.error().message;
}

TEST(projections, refuse_an_object_without_a_name) {
  const auto made = kube::node::decode("");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, kube::errc::decode);
}

template <class T>
void expect_prefixes_are_safe(const std::string& name) {
  const auto bytes = golden::read(name + ".pb");
  std::size_t refused = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A copy of its own size, so that the address sanitizer sees a read behind its end.
    const auto made = T::decode(std::string(bytes, 0, size));
    if (!made) {
      EXPECT_EQ(made.error().code, kube::errc::decode);
      ++refused;
    }
  }
  EXPECT_GT(refused, bytes.size() / 2) << name;
}

TEST(projections, F10_a_truncated_object_is_an_error_or_an_object_and_never_read_past_its_end) {
  expect_prefixes_are_safe<kube::node>("node_gfd");
  expect_prefixes_are_safe<kube::pod>("pod_gpu");
  expect_prefixes_are_safe<kube::daemon_set>("daemon_set");
  expect_prefixes_are_safe<kube::config_map>("config_map");
  expect_prefixes_are_safe<kube::lease>("lease");
  expect_prefixes_are_safe<kube::pod>("pod_finished");
  expect_prefixes_are_safe<kube::name_space>("name_space");
}

TEST(projections, are_equal_to_before_when_only_the_version_moved) {
  const auto decoded = kube::pod::decode(golden::read("pod_gpu.pb"));
  auto other = *decoded;
  other.resource_version += 1;
  EXPECT_EQ(*decoded, other);
  other.restarts += 1;
  EXPECT_NE(*decoded, other);
}

TEST(daemon_set, is_rolled_out_when_the_newest_generation_is_available_everywhere) {
  kube::daemon_set set;
  set.generation = set.observed_generation = 2;
  set.desired = set.updated = set.available = 3;
  EXPECT_TRUE(set.rolled_out());
  set.generation = 3;
  EXPECT_FALSE(set.rolled_out());
  set.generation = 2;
  set.available = 2;
  EXPECT_FALSE(set.rolled_out());
  set.available = 3;
  set.misscheduled = 1;
  EXPECT_FALSE(set.rolled_out());
}

TEST(projections, json_that_has_no_mapping_where_one_belongs_is_refused_with_its_field) {
  const auto message_of = [](std::string_view text) {
    const auto read = kube::from_json<kube::node>(text);
    return read ? std::string() : read.error().message;
  };
  EXPECT_THAT(message_of(R"({"status": {"nodeInfo": "x"}})"),
              words::has_in_order({"Node: status.nodeInfo ", "text", "mapping"}));
  EXPECT_THAT(message_of(R"({"spec": {"taints": [1]}})"),
              words::has_in_order({"Node: spec.taints ", "number", "mapping"}));
  EXPECT_THAT(message_of(R"({"metadata": {"labels": ["a"]}})"),
              words::has_in_order({"Node: metadata.labels ", "list", "mapping"}));
  EXPECT_THAT(message_of(R"("x")"), words::has_in_order({"Node: it ", "text", "mapping"}));
  EXPECT_EQ(message_of(R"({"status": {"nodeInfo": null}})"), "Node without a name");
}

}  // namespace
