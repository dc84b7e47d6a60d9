#include "reconcilers/plugins/policy.hpp"

#include <bit>
#include <set>

#include "controller/coded_message.hpp"
#include "test/facts_in.hpp"
#include "test/reconcilers/fake_cluster.hpp"
#include "test/reconcilers/rights.hpp"
#include "test/rounds.hpp"
#include "test/words.hpp"

namespace reconcilers {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::UnorderedElementsAre;

const std::string policy_path = "/apis/quartermaster.io/v1alpha1/acceleratorpolicies/default";
const std::string sets = "/apis/apps/v1/namespaces/quartermaster/daemonsets/";
const std::string core = "/api/v1/namespaces/quartermaster/";
const std::string pgpu_set = sets + "nvidia-device-plugin-ds", vgpu_set = sets + "gpu-manager-daemonset",
                  mps_set = sets + "nvidia-mps-device-plugin-daemonset", account = core + "serviceaccounts/gpu-manager",
                  metrics = core + "services/gpu-manager-metric", hami_set = sets + "hami-device-plugin",
                  share_set = sets + "nvidia-share-device-plugin-daemonset",
                  gpushare_set = sets + "gpushare-device-plugin-ds";
const std::string declared_path = "/api/v1/namespaces/kube-public/configmaps/";
const kube::object_key key{{}, "default"};

template <class T>
T projection_of(const json& object) {
  T out;
  read_metadata(object, out);
  if constexpr (requires { out.content; })
    out.content = std::hash<json>{}(object.value("spec", object.value("data", json())));
  if constexpr (requires { out.data; }) out.data = packed(object.value("data", json::object()));
  if constexpr (requires { out.desired; }) {
    const auto status = object.value("status", json::object());
    out.observed_generation = status.value("observedGeneration", 0);
    out.desired = status.value("desired", 0);
    out.ready = out.updated = out.available = status.value("ready", 0);
  }
  return out;
}

class cluster : public fake_cluster {
 public:
  controller::store<accelerator_policy> policies;
  controller::store<kube::node> nodes;
  controller::store<kube::daemon_set> daemon_sets;
  controller::store<api::owned_service> services;
  controller::store<api::owned_service_account> accounts;
  controller::store<api::owned_config_map> files;
  controller::store<kube::config_map> declared, devices;
  bool lag = false;
  rollout_step rollout;  ///< where pgpu stands
  std::optional<std::vector<scheduler_row>> schedulers;
  std::vector<controller::condition> further;
  policy subject{made()};

  cluster() {
    sync(policies, nodes, daemon_sets, services, accounts, files, declared, devices);
    server.watch = [this](const std::string& path, const json& is, const json& last) {
      if (!lag) show(path, is, last);
    };
  }
  /// One more, as after a restart.
  policy made() {
    return policy{
        {policies, nodes, {daemon_sets, services, accounts, files, {&declared, &devices}}},
        client,
        recorder,
        {"quartermaster", "quartermaster:test", "kube-public", [] { return controller::wall_time(1'800'000'000s); },
         [this] { return now; }, [this] { return further; },
         [this](const std::string& module) { return module == "pgpu" ? rollout : rollout_step(); },
         [this] { return schedulers; }}};
  }
  void show(const std::string& path, const json& is, const json& last) {
    const auto& any = is.is_null() ? last : is;
    const auto apply = [&](auto& store, auto item) { is.is_null() ? store.erase(item) : store.put(item); };
    // Only what carries our label, as the watch asks for.
    const bool is_owned =
        any["metadata"].value("labels", json::object()).value("app.kubernetes.io/managed-by", "") == "quartermaster";
    if (path.starts_with(sets))
      apply(daemon_sets, projection_of<kube::daemon_set>(any));
    else if (path.find("/services/") != std::string::npos && is_owned)
      apply(services, projection_of<api::owned_service>(any));
    else if (path.find("/serviceaccounts/") != std::string::npos && is_owned)
      apply(accounts, projection_of<api::owned_service_account>(any));
    else if (path.starts_with(declared_path)) {
      const auto labels = any["metadata"].value("labels", json::object());
      const auto item = projection_of<kube::config_map>(any);
      if (labels.contains("features.cpaas.io/type")) apply(declared, item);
      if (labels.contains("device-plugin.cpaas.io/config")) apply(devices, item);
    } else if (path.find("/configmaps/") != std::string::npos && is_owned)
      apply(files, projection_of<api::owned_config_map>(any));
    else if (path.find("/acceleratorpolicies/") != std::string::npos)
      apply(policies, *accelerator_policy::decode(any.dump()));
  }
  void write_policy(const json& modules, const std::string& path = policy_path) {
    const auto match = server.objects.find(path);
    json object = match == server.objects.end() ? json({{"metadata", {{"name", path.substr(path.rfind('/') + 1)}}}})
                                                : match->second;
    object["spec"]["modules"] = modules;
    object["spec"]["customResources"]["publish"] = publish;
    server.put(path, object);
  }
  bool publish = false;
  /// Modules by a bit each, in the order of the catalogue.
  void switch_to(unsigned bits) {
    json modules;
    for (const auto& entry : modules::catalogue()) {
      modules[std::string(entry.name)]["enabled"] = (bits & 1) != 0;
      bits >>= 1;
    }
    write_policy(modules);
  }
  controller::action reconcile(const kube::object_key& object_key = key) {
    const auto done = run(subject.reconcile(object_key));
    EXPECT_TRUE(done) << done.error().message;
    return done.value_or(controller::action());
  }
  /// Until nothing is wanted any more.
  void settle() {
    for (int i = 0; i < 10; ++i) {
      const auto sent = server.transport.sent.size();
      const auto again = reconcile();
      now += 1s;
      if (!again.again_in && sent == server.transport.sent.size()) break;
    }
    server.forget();
  }
  void edit(const std::string& path, const std::function<void(json&)>& change) {
    auto object = server.objects.at(path);
    change(object);
    server.put(path, object);
  }
  void pods_of(const std::string& path, int desired, int ready) {
    edit(path, [&](json& object) {
      object["status"] = {
          {"observedGeneration", object["metadata"]["generation"]}, {"desired", desired}, {"ready", ready}};
    });
  }
  json condition(const char* type, const std::string& path = policy_path) const {
    const auto list = server.objects.at(path).value("/status/conditions"_json_pointer, json::array());
    for (const auto& entry : list) {
      if (entry["type"] == type) return entry;
    }
    return {};
  }
  std::set<std::string> made_objects() const {
    std::set<std::string> out;
    for (const auto& [path, object] : server.objects) {
      if (path != policy_path) out.insert(path);
    }
    return out;
  }
};

std::set<std::string> expected(unsigned bits) {
  std::set<std::string> out;
  if (bits & 1) out.insert(pgpu_set);
  if (bits & 2) out.insert({vgpu_set, account, metrics});
  if (bits & 4) out.insert({mps_set, core + "serviceaccounts/quartermaster-device-plugin-mps"});
  if (bits & 8)
    out.insert({hami_set, core + "serviceaccounts/hami-device-plugin", core + "configmaps/hami-device-plugin-config"});
  if (bits & 16) out.insert({share_set, core + "configmaps/nvidia-share-device-plugin-config"});
  if (bits & 32) out.insert({gpushare_set, core + "serviceaccounts/gpushare-device-plugin"});
  return out;
}

TEST(policy, S2_all_combinations_of_switches_make_exactly_their_objects) {
  for (unsigned bits = 0; bits < 64; ++bits) {
    if (!test::is_long() && std::popcount(bits) > 2 && bits != 63) continue;  // in short: pairs, and all
    cluster cluster;
    cluster.switch_to(bits);
    cluster.settle();
    EXPECT_EQ(cluster.made_objects(), expected(bits)) << bits;
  }
}

TEST(policy, S2_turning_one_switch_touches_nothing_of_the_others) {
  for (unsigned initial = 0; initial < 8; ++initial) {
    for (unsigned target = 0; target < 8; ++target) {
      if (!test::is_long() && std::popcount(initial ^ target) > 1) continue;
      cluster cluster;
      cluster.switch_to(initial);
      cluster.settle();
      const auto before = cluster.server.objects;
      cluster.switch_to(target);
      cluster.settle();
      EXPECT_EQ(cluster.made_objects(), expected(target)) << initial << " to " << target;
      for (const auto& path : expected(initial & target))
        EXPECT_EQ(cluster.server.objects.at(path), before.at(path)) << path;
    }
  }
}

TEST(policy, S2_a_policy_that_is_gone_leaves_nothing) {
  cluster cluster;
  cluster.switch_to(7);
  cluster.settle();
  cluster.server.erase(policy_path);
  cluster.settle();
  EXPECT_THAT(cluster.made_objects(), IsEmpty());
}

TEST(policy, O6_prunes_what_bears_our_labels_and_nothing_else) {
  cluster cluster;
  cluster.switch_to(1);
  const auto foreign = sets + "somebody", elsewhere = std::string("/apis/apps/v1/namespaces/team/daemonsets/x");
  cluster.server.put(
      foreign,
      {{"metadata",
        {{"name", "somebody"}, {"namespace", "quartermaster"}, {"labels", {{"quartermaster.io/module", "pgpu"}}}}}});
  const json object = {{"quartermaster.io/module", "old-module"}, {"app.kubernetes.io/managed-by", "quartermaster"}};
  cluster.server.put(sets + "left-over",
                     {{"metadata", {{"name", "left-over"}, {"namespace", "quartermaster"}, {"labels", object}}}});
  cluster.settle();
  EXPECT_EQ(cluster.made_objects(), (std::set<std::string>{pgpu_set, foreign}));
}

TEST(policy, O6_what_someone_made_again_under_the_name_of_a_left_over_stays) {
  cluster cluster;
  cluster.switch_to(1);
  const auto path = sets + "left-over";
  const json labels = {{"quartermaster.io/module", "old-module"}, {"app.kubernetes.io/managed-by", "quartermaster"}};
  cluster.server.put(path, {{"metadata", {{"name", "left-over"}, {"namespace", "quartermaster"}, {"labels", labels}}}});
  bool pending = true;  // between our look and our removal
  cluster.server.interfere = [&](const kube::request& request) -> std::optional<kube::response> {
    if (request.verb == kube::method::del && request.target.starts_with(path) && std::exchange(pending, false)) {
      cluster.server.erase(path);
      cluster.server.put(path, {{"metadata", {{"name", "left-over"}, {"namespace", "quartermaster"}}}});
    }
    return std::nullopt;
  };
  cluster.settle();
  EXPECT_FALSE(pending) << "it was not removed at all";
  EXPECT_EQ(cluster.made_objects(), (std::set<std::string>{pgpu_set, path}));
}

TEST(policy, T17_a_settled_cluster_is_not_written_to_and_not_even_read) {
  cluster cluster;
  cluster.switch_to(7);
  cluster.settle();
  for (int i = 0; i < 3; ++i) cluster.reconcile();
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
}

TEST(policy, a_restart_reads_every_object_once_and_writes_none) {
  cluster cluster;
  cluster.switch_to(7);
  cluster.settle();
  auto again = cluster.made();
  ASSERT_TRUE(run(again.reconcile(key)));
  EXPECT_THAT(cluster.server.writes(), IsEmpty());
  EXPECT_EQ(cluster.server.reads().size(), 6u);
  cluster.server.forget();
  ASSERT_TRUE(run(again.reconcile(key)));
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
}

TEST(policy, F25_an_edit_while_nobody_looked_is_found_after_the_restart) {
  cluster cluster;
  cluster.switch_to(1);
  cluster.settle();
  cluster.edit(pgpu_set, [](json& set) { set["spec"]["template"]["spec"]["nodeSelector"] = json::object(); });
  auto again = cluster.made();
  ASSERT_TRUE(run(again.reconcile(key)));
  EXPECT_EQ(cluster.server.objects[pgpu_set]["spec"]["template"]["spec"]["nodeSelector"]["quartermaster.io/module"],
            "pgpu");
}

TEST(policy, F25_O6_what_is_deleted_or_edited_comes_back_and_what_others_added_stays) {
  for (const auto& path : {pgpu_set, vgpu_set, account, metrics}) {
    cluster cluster;
    cluster.switch_to(3);
    cluster.settle();
    cluster.server.erase(path);
    cluster.reconcile();
    EXPECT_TRUE(cluster.server.objects.contains(path));
  }
  cluster edited;
  edited.switch_to(3);
  edited.settle();
  edited.edit(pgpu_set, [](json& set) {
    set["metadata"]["annotations"]["team/note"] = "ours";
    set["spec"]["template"]["spec"]["containers"][0]["image"] = "evil:1";
  });
  edited.edit(metrics, [](json& service) { service["spec"]["ports"][0]["port"] = 1; });
  edited.reconcile();
  EXPECT_EQ(edited.server.objects[pgpu_set]["spec"]["template"]["spec"]["containers"][0]["image"],
            "nvcr.io/nvidia/k8s-device-plugin:v0.20.0");
  EXPECT_EQ(edited.server.objects[pgpu_set]["metadata"]["annotations"]["team/note"], "ours");
  EXPECT_EQ(edited.server.objects[metrics]["spec"]["ports"][0]["port"], 5678);
  EXPECT_EQ(edited.recorder.events.back().reason, "Restored");
}

TEST(policy, F25_a_service_that_cannot_be_merged_back_is_made_anew) {
  cluster cluster;
  cluster.switch_to(2);
  cluster.settle();
  const auto uid = cluster.server.objects.at(metrics)["metadata"]["uid"];
  cluster.edit(metrics, [](json& service) { service["spec"]["ports"][0]["port"] = 1; });
  cluster.server.interfere = [&](const kube::request& request) -> std::optional<kube::response> {
    const bool edited =
        cluster.server.objects.contains(metrics) && cluster.server.objects[metrics]["metadata"]["uid"] == uid;
    if (fake_server::verb_of(request) != "apply" || !request.target.starts_with(metrics) || !edited)
      return std::nullopt;
    return recording_transport::refused(422, "Invalid", "spec.ports[1].name: Duplicate value: \"metrics\"");
  };
  cluster.settle();
  EXPECT_NE(cluster.server.objects.at(metrics)["metadata"]["uid"], uid);
  EXPECT_EQ(cluster.server.objects.at(metrics)["spec"]["ports"][0]["port"], 5678);
  EXPECT_EQ(cluster.condition("Degraded")["status"], "False");
}

TEST(policy, F24_a_rival_is_answered_at_most_twice_a_second) {
  cluster cluster;
  cluster.switch_to(1);
  cluster.settle();
  int edits = 0;
  for (; edits < 100; ++edits) {  // five seconds, twenty a second
    cluster.edit(pgpu_set, [&](json& set) {
      set["spec"]["template"]["spec"]["containers"][0]["image"] = "rival:" + std::to_string(edits);
    });
    cluster.reconcile();
    cluster.now += 50ms;
  }
  EXPECT_LE(cluster.server.writes().size(), 11u);
  EXPECT_GE(cluster.server.writes().size(), 9u);
  cluster.now += 1s;
  cluster.settle();
  EXPECT_EQ(cluster.server.objects[pgpu_set]["spec"]["template"]["spec"]["containers"][0]["image"],
            "nvcr.io/nvidia/k8s-device-plugin:v0.20.0");
}

TEST(policy, S74_an_object_of_others_with_our_name_is_never_applied_over) {
  cluster cluster;
  cluster.server.put(pgpu_set, {{"metadata",
                                 {{"name", "nvidia-device-plugin-ds"},
                                  {"namespace", "quartermaster"},
                                  {"labels", {{"app.kubernetes.io/managed-by", "Helm"}}}}}});
  const auto before = cluster.server.objects.at(pgpu_set);
  cluster.switch_to(5);
  cluster.settle();
  EXPECT_EQ(cluster.server.objects.at(pgpu_set), before);
  EXPECT_TRUE(cluster.server.objects.contains(mps_set)) << "the others go on";
  const auto degraded = cluster.condition("Degraded");
  EXPECT_EQ(degraded["status"], "True");
  EXPECT_EQ(degraded["reason"], "ForeignObject");
  EXPECT_EQ(degraded["cause"], "status.policy.module");
  EXPECT_EQ(degraded["parameters"]["module"], "pgpu");
  EXPECT_EQ(degraded["parameters"]["message:cause"], "status.object.foreign_of_module");
  EXPECT_EQ(degraded["parameters"]["message.owner"], "Helm");
  EXPECT_EQ(cluster.condition("Ready")["status"], "False");
  EXPECT_EQ(cluster.recorder.events.back().type, controller::event_type::warning);
  cluster.server.erase(pgpu_set);
  cluster.settle();
  EXPECT_EQ(cluster.condition("Degraded")["status"], "False");
  EXPECT_TRUE(cluster.server.objects.contains(pgpu_set));
}

/// The product's own plugin, TKE's, gpushare's and ACK's installers, as their objects say who made them.
TEST(policy, S74_names_the_owner_of_an_object_with_our_name) {
  const std::pair<json, std::string> owners[] = {
      {{{"annotations",
         {{"meta.helm.sh/release-name", "ack-ai-installer"}, {"meta.helm.sh/release-namespace", "kube-system"}}},
        {"labels", {{"app.kubernetes.io/managed-by", "Helm"}}}},
       "status.object.helm{name=kube-system/ack-ai-installer}"},
      {{{"labels", {{"cpaas.io/module-name", "gpu-device-plugin"}}}},
       "status.object.acp_plugin{name=gpu-device-plugin}"},
      {{{"ownerReferences", {{{"kind", "GPUManager"}, {"name", "gm-x2"}}}}}, "GPUManager gm-x2"},
      {{{"managedFields", {{{"manager", "kubectl-client-side-apply"}}}}},
       "status.object.first_writer{name=kubectl-client-side-apply}"},
      {json::object(), "status.object.someone"},
  };
  for (const auto& [metadata, owner] : owners) {
    cluster cluster;
    json foreign = {{"metadata", metadata}};
    foreign["metadata"]["name"] = "nvidia-device-plugin-ds";
    foreign["metadata"]["namespace"] = "quartermaster";
    cluster.server.put(pgpu_set, foreign);
    cluster.switch_to(1);
    cluster.settle();
    const auto message = controller::message_of(cluster.condition("Degraded"));
    ASSERT_EQ(message.key, "status.policy.module");
    EXPECT_THAT(words::line_of(message), HasSubstr("owner=" + owner));
    EXPECT_THAT(words::line_of(message), HasSubstr("foreign_of_module{"));
  }
}

/// A DaemonSet whose selector is another cannot be applied over.
TEST(policy, S74_adopts_when_told_to_and_the_selector_is_immutable) {
  cluster cluster;
  const json object = {{"name", "nvidia-device-plugin-ds"}};
  cluster.server.put(pgpu_set, {{"metadata", {{"name", "nvidia-device-plugin-ds"}, {"namespace", "quartermaster"}}},
                                {"spec",
                                 {{"selector", {{"matchLabels", object}}},
                                  {"template", {{"spec", {{"nodeSelector", {{"nvidia-device-enable", "pgpu"}}}}}}}}}});
  const auto uid = cluster.server.objects.at(pgpu_set)["metadata"]["uid"];
  cluster.server.interfere = [&](const kube::request& request) -> std::optional<kube::response> {
    if (fake_server::verb_of(request) != "apply" || !request.target.starts_with(pgpu_set) ||
        !cluster.server.objects.contains(pgpu_set))
      return std::nullopt;
    const auto want = json::parse(request.body)["spec"]["selector"];
    if (cluster.server.objects[pgpu_set]["spec"]["selector"] == want) return std::nullopt;
    return recording_transport::refused(422, "Invalid", "spec.selector: field is immutable");
  };
  cluster.switch_to(1);
  cluster.settle();
  EXPECT_EQ(cluster.server.objects.at(pgpu_set)["metadata"]["uid"], uid) << "not before it is reported";
  cluster.write_policy({{"pgpu", {{"enabled", true}, {"adopt", true}}}});
  cluster.reconcile();
  const auto deleted = std::ranges::find_if(cluster.server.transport.sent, [](const kube::request& request) {
    return fake_server::verb_of(request) == "delete";
  });
  ASSERT_NE(deleted, cluster.server.transport.sent.end());
  EXPECT_THAT(deleted->body, HasSubstr("Foreground")) << "their pods go before ours come";
  EXPECT_THAT(deleted->body, HasSubstr(uid.get<std::string>()));
  cluster.now += 1s;
  cluster.settle();
  const auto now = cluster.server.objects.at(pgpu_set);
  EXPECT_NE(now["metadata"]["uid"], uid);
  EXPECT_EQ(now["spec"]["selector"]["matchLabels"], json({{"quartermaster.io/module", "pgpu"}}));
  EXPECT_EQ(now["spec"]["template"]["spec"]["nodeSelector"], json({{"quartermaster.io/module", "pgpu"}}));
  EXPECT_EQ(cluster.condition("Degraded")["status"], "False");
  EXPECT_TRUE(
      std::ranges::any_of(cluster.recorder.events, [](const auto& event) { return event.reason == "Adopted"; }));
}

TEST(policy, S74_waits_until_what_it_adopts_is_gone) {
  cluster cluster;
  cluster.server.put(pgpu_set, {{"metadata",
                                 {{"name", "nvidia-device-plugin-ds"},
                                  {"namespace", "quartermaster"},
                                  {"deletionTimestamp", "2026-01-01T00:00:00Z"}}}});
  cluster.write_policy({{"pgpu", {{"enabled", true}, {"adopt", true}}}});
  EXPECT_EQ(cluster.reconcile().again_in, 1s);
  for (const auto& write : cluster.server.writes()) EXPECT_THAT(write, HasSubstr("/status"));
}

TEST(policy, S21_a_module_that_is_on_declares_what_it_advertises_and_takes_it_back) {
  cluster cluster;
  cluster.publish = true;
  cluster.switch_to(1);
  cluster.settle();
  const auto gpu = declared_path + "cf-crl-nvidia-gpu", config = declared_path + "cf-crl-pgpu-config";
  EXPECT_EQ(cluster.made_objects(), (std::set<std::string>{pgpu_set, gpu, config}));
  EXPECT_EQ(cluster.server.objects.at(gpu)["data"]["key"], "nvidia.com/gpu");
  cluster.reconcile();
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
  cluster.edit(gpu, [](json& object) { object["data"]["defaultValue"] = "7"; });
  cluster.settle();
  EXPECT_EQ(cluster.server.objects.at(gpu)["data"]["defaultValue"], "1") << "ours is kept as it is wanted";
  cluster.publish = false;
  cluster.switch_to(1);
  cluster.settle();
  EXPECT_EQ(cluster.made_objects(), (std::set<std::string>{pgpu_set}));
  cluster.publish = true;
  cluster.switch_to(1);
  cluster.settle();
  cluster.switch_to(0);
  cluster.settle();
  EXPECT_THAT(cluster.made_objects(), IsEmpty());
}

TEST(policy, S21_a_persons_declaration_of_the_key_wins_whatever_its_name) {
  const json labels = {{"features.cpaas.io/type", "CustomResourceLimitation"}};
  for (const auto* name : {"cf-crl-nvidia-gpu", "cf-crl-team-cards"}) {
    cluster cluster;
    cluster.publish = true;
    cluster.switch_to(1);
    cluster.settle();
    const json object = {
        {"metadata", {{"name", name}, {"namespace", "kube-public"}, {"labels", labels}}},
        {"data", {{"key", "nvidia.com/gpu"}, {"defaultValue", "2"}, {"limits", "optional"}, {"requests", "disabled"}}}};
    cluster.server.erase(declared_path + "cf-crl-nvidia-gpu");
    cluster.server.put(declared_path + name, object);
    cluster.settle();
    EXPECT_EQ(cluster.made_objects(),
              (std::set<std::string>{pgpu_set, declared_path + name, declared_path + "cf-crl-pgpu-config"}));
    EXPECT_EQ(cluster.server.objects.at(declared_path + name)["data"], object["data"]);
    EXPECT_EQ(cluster.condition("Degraded")["status"], "False");
    cluster.server.erase(declared_path + name);
    cluster.settle();
    EXPECT_TRUE(cluster.server.objects.contains(declared_path + "cf-crl-nvidia-gpu"));
  }
}

/// kubectl apply of a file with the name of one of our objects, or kubectl edit.
TEST(policy, S21_what_a_person_writes_into_ours_is_theirs_from_then_on) {
  cluster cluster;
  cluster.publish = true;
  cluster.switch_to(1);
  cluster.settle();
  const auto gpu = declared_path + "cf-crl-nvidia-gpu";
  cluster.edit(gpu, [](json& object) {
    object["data"]["defaultValue"] = "2";
    object["metadata"]["managedFields"] = {{{"manager", "quartermaster"}, {"fieldsV1", {{"f:data", json::object()}}}},
                                           {{"manager", "kubectl-edit"}, {"fieldsV1", {{"f:data", json::object()}}}}};
  });
  cluster.settle();
  const auto now = cluster.server.objects.at(gpu);
  EXPECT_EQ(now["data"]["defaultValue"], "2");
  EXPECT_FALSE(now["metadata"]["labels"].contains("app.kubernetes.io/managed-by"));
  EXPECT_FALSE(now["metadata"].contains("ownerReferences"));
  EXPECT_EQ(cluster.recorder.events.back().reason, "HandedOver");
  cluster.reconcile();
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
  cluster.switch_to(0);
  cluster.settle();
  EXPECT_TRUE(cluster.server.objects.contains(gpu)) << "a person's does not go with the module";
}

TEST(policy, S21_ours_goes_when_a_person_declares_the_key_beside_it) {
  cluster cluster;
  cluster.publish = true;
  cluster.switch_to(1);
  cluster.settle();
  cluster.server.put(declared_path + "cf-crl-team-cards",
                     {{"metadata",
                       {{"name", "cf-crl-team-cards"},
                        {"namespace", "kube-public"},
                        {"labels", {{"features.cpaas.io/type", "CustomResourceLimitation"}}}}},
                      {"data", {{"key", "nvidia.com/gpu"}, {"limits", "optional"}, {"requests", "disabled"}}}});
  cluster.settle();
  EXPECT_FALSE(cluster.server.objects.contains(declared_path + "cf-crl-nvidia-gpu"));
  EXPECT_TRUE(cluster.server.objects.contains(declared_path + "cf-crl-team-cards"));
}

TEST(policy, S21_a_persons_declaration_with_a_fault_takes_none_of_ours_away) {
  cluster cluster;
  cluster.publish = true;
  cluster.switch_to(1);
  cluster.settle();
  const auto declare = [&](std::string limits, std::string key) {
    cluster.server.put(declared_path + "cf-crl-team-cards",
                       {{"metadata",
                         {{"name", "cf-crl-team-cards"},
                          {"namespace", "kube-public"},
                          {"labels", {{"features.cpaas.io/type", "CustomResourceLimitation"}}}}},
                        {"data", {{"key", std::move(key)}, {"limits", std::move(limits)}, {"requests", "disabled"}}}});
    cluster.settle();
  };
  declare("optionall", "nvidia.com/gpu");
  EXPECT_TRUE(cluster.server.objects.contains(declared_path + "cf-crl-nvidia-gpu"));
  declare("optional", "nvidia.com/gpu\n");
  EXPECT_FALSE(cluster.server.objects.contains(declared_path + "cf-crl-nvidia-gpu")) << "read as the registry reads it";
  declare("optionall", "nvidia.com/gpu");
  EXPECT_FALSE(cluster.server.objects.contains(declared_path + "cf-crl-nvidia-gpu"))
      << "its last accepted content counts";
}

TEST(policy, S21_a_persons_declaration_that_contradicts_another_takes_none_of_ours_away) {
  cluster cluster;
  cluster.publish = true;
  cluster.switch_to(1);
  cluster.settle();
  const auto declare = [&](const std::string& name, const std::string& key, const std::string& limits,
                           const std::string& excludes) {
    cluster.server.put(declared_path + name, {{"metadata",
                                               {{"name", name},
                                                {"namespace", "kube-public"},
                                                {"labels", {{"features.cpaas.io/type", "CustomResourceLimitation"}}}}},
                                              {"data",
                                               {{"key", key},
                                                {"group", "lab"},
                                                {"limits", limits},
                                                {"requests", "disabled"},
                                                {"excludeResources", excludes}}}});
    cluster.settle();
  };
  const auto gpu_path = declared_path + "cf-crl-nvidia-gpu";
  declare("cf-crl-lab-fpga", "example.com/fpga", "required", "");
  declare("cf-crl-lab-cards", "nvidia.com/gpu", "optional", "example.com/fpga");
  EXPECT_TRUE(cluster.server.objects.contains(gpu_path)) << "the group asks for what it excludes, so it is refused";
  declare("cf-crl-lab-cards", "nvidia.com/gpu", "optional", "");
  EXPECT_FALSE(cluster.server.objects.contains(gpu_path));
  declare("cf-crl-lab-cards", "nvidia.com/gpu", "optional", "example.com/fpga");
  EXPECT_FALSE(cluster.server.objects.contains(gpu_path)) << "its last accepted content counts";
}

/// It is in none of our watches: no one reads it, and it is still someone's.
TEST(policy, S21_a_config_map_of_others_without_labels_is_left_alone) {
  cluster cluster;
  cluster.publish = true;
  cluster.server.put(
      declared_path + "cf-crl-nvidia-gpu",
      {{"metadata", {{"name", "cf-crl-nvidia-gpu"}, {"namespace", "kube-public"}}}, {"data", {{"a", "b"}}}});
  cluster.switch_to(1);
  cluster.settle();
  EXPECT_EQ(cluster.server.objects.at(declared_path + "cf-crl-nvidia-gpu")["data"], json({{"a", "b"}}));
  EXPECT_EQ(cluster.condition("Degraded")["status"], "False");
}

const json ascend = {{"enabled", true},
                     {"image", "ascend-device-plugin:v6"},
                     {"device", {{"resources", {{{"name", "huawei.com/Ascend910"}}}}}}};

TEST(policy, S27_modules_of_the_policys_own_live_side_by_side_and_go_with_their_part) {
  cluster cluster;
  auto fpga = ascend;
  fpga["device"]["resources"][0]["name"] = "example.com/fpga";
  cluster.publish = true;
  cluster.write_policy({{"ascend", ascend}, {"fpga", fpga}});
  cluster.settle();
  EXPECT_EQ(cluster.made_objects(),
            (std::set<std::string>{sets + "ascend-device-plugin", sets + "fpga-device-plugin",
                                   declared_path + "cf-crl-ascend-huawei-com-ascend910",
                                   declared_path + "cf-crl-fpga-example-com-fpga",
                                   declared_path + "cf-crl-ascend-config", declared_path + "cf-crl-fpga-config"}));
  const auto rows = cluster.server.objects.at(policy_path)["status"]["modules"];
  EXPECT_EQ(rows[6]["name"], "ascend");
  EXPECT_EQ(rows[6]["isolation"], "exclusive");
  cluster.write_policy({{"fpga", fpga}});
  cluster.settle();
  EXPECT_FALSE(cluster.server.objects.contains(sets + "ascend-device-plugin"));
  EXPECT_TRUE(cluster.server.objects.contains(sets + "fpga-device-plugin"));
}

TEST(policy, S52_a_setting_that_is_not_legal_is_said_and_the_last_good_objects_stay) {
  cluster cluster;
  cluster.write_policy({{"hami", {{"enabled", true}}}});
  cluster.settle();
  const auto before = cluster.server.objects.at(hami_set);
  cluster.write_policy({{"hami", {{"enabled", true}, {"settings", {{"deviceSplitCount", 0}}}}}});
  cluster.settle();
  EXPECT_EQ(cluster.server.objects.at(hami_set), before);
  EXPECT_EQ(cluster.condition("Degraded")["reason"], "InvalidPolicy");
  const auto about = cluster.condition("Degraded")["parameters"];
  EXPECT_THAT(about.dump(), HasSubstr("spec.modules.hami.settings.deviceSplitCount"));
  EXPECT_EQ(about["message.allowed.least"], "1");
  EXPECT_EQ(about["message.allowed.most"], "1000");
}

TEST(policy, S52_pods_of_all_node_sets_count_as_the_modules) {
  cluster cluster;
  cluster.write_policy({{"hami", {{"enabled", true}, {"nodeSets", {{{"name", "big"}}}}}}});
  cluster.settle();
  cluster.pods_of(hami_set, 3, 3);
  cluster.pods_of(hami_set + "-big", 2, 1);
  cluster.settle();
  EXPECT_EQ(cluster.server.objects.at(policy_path)["status"]["summary"], "hami 4/5");
  EXPECT_EQ(cluster.condition("Ready")["reason"], "RollingOut");
  kube::node node;
  node.key.name = "gpu-1";
  node.labels = packed({{"quartermaster.io/module", "hami"}, {"quartermaster.io/plugin-set", "big"}});
  cluster.nodes.put(node);
  cluster.write_policy({{"hami", {{"enabled", true}}}});
  cluster.settle();
  EXPECT_TRUE(cluster.server.objects.contains(hami_set + "-big")) << "its node has not moved yet";
  auto moved = node;
  moved.resource_version = node.resource_version + 1;
  moved.labels = packed({{"quartermaster.io/module", "hami"}});
  EXPECT_EQ(cluster.subject.affected_by(&node, &moved).size(), 1U);
  cluster.nodes.put(moved);
  cluster.settle();
  EXPECT_FALSE(cluster.server.objects.contains(hami_set + "-big"));
}

TEST(policy, S2_reports_each_module_and_when_all_is_well) {
  cluster cluster;
  cluster.switch_to(5);
  cluster.settle();
  EXPECT_EQ(cluster.condition("Ready")["reason"], "RollingOut");  // nothing observed yet
  for (int i = 0; i < 2; ++i) {
    kube::node node;
    node.key.name = "gpu-" + std::to_string(i);
    node.labels = packed({{"quartermaster.io/module", "pgpu"}});
    cluster.nodes.put(node);
  }
  cluster.pods_of(pgpu_set, 2, 1);
  cluster.pods_of(mps_set, 0, 0);
  cluster.settle();
  EXPECT_EQ(cluster.condition("Ready")["reason"], "RollingOut");
  EXPECT_EQ(cluster.condition("Progressing")["cause"], "status.policy.ready_of_desired");
  EXPECT_EQ(cluster.condition("Progressing")["parameters"], (json{{"list", "pgpu 1/2"}}));
  cluster.pods_of(pgpu_set, 2, 2);
  cluster.settle();
  const auto& status = cluster.server.objects.at(policy_path)["status"];
  EXPECT_EQ(cluster.condition("Ready")["status"], "True");
  EXPECT_EQ(cluster.condition("Ready")["observedGeneration"],
            cluster.server.objects.at(policy_path)["metadata"]["generation"]);
  EXPECT_EQ(status["summary"], "pgpu 2/2, mps 0/0");
  EXPECT_EQ(status["modules"][0],
            json::parse(R"({"name":"pgpu","enabled":true,"desired":2,"ready":2,"nodes":2,"isolation":"exclusive",
                            "updated":2,"image":"nvcr.io/nvidia/k8s-device-plugin:v0.20.0"})"));
  EXPECT_EQ(status["modules"][1],
            json::parse(R"({"name":"vgpu","enabled":false,"desired":0,"ready":0,"nodes":0,"isolation":"soft"})"));
}

TEST(policy, says_what_a_new_version_waits_for_where_it_halted_and_what_there_was_before) {
  cluster cluster;
  cluster.write_policy({{"pgpu", {{"enabled", true}, {"image", "plugin:1"}}}});
  cluster.settle();
  const auto module = [&](const char* field) {
    return cluster.server.objects.at(policy_path)["status"]["modules"][0].value(field, json());
  };
  EXPECT_EQ(module("image"), "plugin:1");
  EXPECT_EQ(module("previousImage"), json());
  cluster.write_policy({{"pgpu", {{"enabled", true}, {"image", "plugin:2"}}}});
  cluster.pods_of(pgpu_set, 3, 2);
  cluster.rollout.is = rollout_step::kind::wait;
  cluster.rollout.message = {"status.rollout.no_pod"};
  cluster.settle();
  EXPECT_EQ(module("image"), "plugin:2");
  EXPECT_EQ(module("previousImage"), "plugin:1");
  EXPECT_EQ(module("cause"), "status.rollout.no_pod");
  EXPECT_EQ(cluster.condition("Progressing")["parameters"], (json{{"list:cause", "status.policy.progress"},
                                                                  {"list.progress", "pgpu 2/3"},
                                                                  {"list.cause:cause", "status.rollout.no_pod"}}));
  EXPECT_EQ(cluster.condition("Degraded")["status"], "False");
  cluster.rollout.is = rollout_step::kind::halted;
  cluster.rollout.message = {"status.rollout.pod_stays"};
  cluster.settle();
  EXPECT_EQ(cluster.condition("Degraded")["reason"], "RolloutHalted");
  EXPECT_EQ(cluster.condition("Ready")["status"], "False");
  EXPECT_EQ(cluster.recorder.events.back().reason, "RolloutHalted");
  cluster.rollout = {};
  cluster.write_policy({{"pgpu", {{"enabled", true}, {"image", "plugin:1"}}}});
  cluster.settle();
  EXPECT_EQ(module("previousImage"), "plugin:2");
  EXPECT_EQ(cluster.condition("Degraded")["status"], "False");
}

TEST(policy, a_roll_out_writes_the_status_at_most_twice_a_second) {
  cluster cluster;
  cluster.switch_to(1);
  cluster.settle();
  for (int ready = 0; ready < 40; ++ready) {
    cluster.pods_of(pgpu_set, 40, ready);
    cluster.reconcile();
    cluster.now += 50ms;
  }
  EXPECT_LE(cluster.server.writes().size(), 5u);
  cluster.settle();
  EXPECT_EQ(cluster.server.objects.at(policy_path)["status"]["modules"][0]["ready"], 39);
}

TEST(policy, another_policy_than_default_is_told_that_it_does_not_count) {
  cluster cluster;
  const std::string other = "/apis/quartermaster.io/v1alpha1/acceleratorpolicies/other";
  cluster.write_policy({{"pgpu", {{"enabled", true}}}}, other);
  cluster.reconcile({{}, "other"});
  EXPECT_THAT(cluster.server.writes(), ElementsAre("apply " + other + "/status"));
  EXPECT_EQ(cluster.condition("Ready", other)["reason"], "Ignored");
  cluster.server.forget();
  cluster.reconcile({{}, "other"});
  EXPECT_THAT(cluster.server.transport.sent, IsEmpty());
}

TEST(policy, what_the_server_refuses_is_said_and_not_hammered) {
  cluster cluster;
  cluster.switch_to(5);
  cluster.server.interfere = [](const kube::request& request) -> std::optional<kube::response> {
    if (request.verb == kube::method::get || !request.target.starts_with(pgpu_set)) return std::nullopt;
    return recording_transport::refused(422, "Invalid", "spec.template.spec.containers[0].resources: bad quantity");
  };
  const auto done = cluster.reconcile();
  EXPECT_EQ(done.again_in, 60s);
  EXPECT_EQ(cluster.condition("Degraded")["reason"], "Refused");
  EXPECT_EQ(cluster.condition("Degraded")["parameters"]["message:cause"], "status.object.refused");
  EXPECT_THAT(cluster.condition("Degraded")["parameters"]["message.error"], HasSubstr("bad quantity"));
  EXPECT_TRUE(cluster.server.objects.contains(mps_set));
}

TEST(policy, F20_rights_that_are_missing_are_said_and_tried_again) {
  cluster cluster;
  cluster.switch_to(1);
  cluster.server.interfere = [](const kube::request& request) -> std::optional<kube::response> {
    if (!request.target.starts_with(pgpu_set)) return std::nullopt;
    return recording_transport::refused(403, "Forbidden", "no");
  };
  const auto done = run(cluster.subject.reconcile(key));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, kube::errc::forbidden);
  EXPECT_EQ(cluster.condition("Degraded")["reason"], "Forbidden");
  cluster.server.interfere = nullptr;
  cluster.now += 1s;
  cluster.settle();
  EXPECT_TRUE(cluster.server.objects.contains(pgpu_set));
  EXPECT_EQ(cluster.condition("Degraded")["status"], "False");
}

TEST(policy, F36_a_module_whose_part_cannot_be_used_keeps_its_last_good_objects) {
  cluster cluster;
  cluster.switch_to(1);
  cluster.settle();
  const auto before = cluster.server.objects.at(pgpu_set);
  cluster.write_policy({{"pgpu", {{"enabled", true}, {"env", {{{"value", "nameless"}}}}}}});
  cluster.settle();
  EXPECT_EQ(cluster.server.objects.at(pgpu_set), before);
  EXPECT_EQ(cluster.condition("Degraded")["reason"], "InvalidPolicy");
}

TEST(policy, F2_does_not_write_again_while_the_watch_is_behind) {
  cluster cluster;
  cluster.switch_to(3);
  cluster.lag = true;
  cluster.reconcile();
  cluster.server.forget();
  cluster.now += 600ms;
  cluster.reconcile();
  for (const auto& write : cluster.server.writes()) EXPECT_THAT(write, HasSubstr("/status"));
}

TEST(policy, F3_an_object_replaced_by_another_of_its_name_is_noticed) {
  cluster cluster;
  cluster.switch_to(1);
  cluster.settle();
  cluster.lag = true;
  cluster.server.erase(pgpu_set);
  cluster.server.put(pgpu_set, {{"metadata", {{"name", "nvidia-device-plugin-ds"}, {"namespace", "quartermaster"}}}});
  cluster.lag = false;
  cluster.show(pgpu_set, cluster.server.objects.at(pgpu_set), json());
  cluster.settle();
  EXPECT_EQ(cluster.condition("Degraded")["reason"], "ForeignObject");
}

TEST(policy, asks_for_no_right_that_the_chart_does_not_give) {
  cluster cluster;
  std::vector<kube::request> requests;
  cluster.publish = true;
  for (const unsigned bits : {63u, 0u, 63u}) {
    cluster.switch_to(bits);
    for (int i = 0; i < 5; ++i, cluster.now += 1s) cluster.reconcile();
    requests.insert(requests.end(), cluster.server.transport.sent.begin(), cluster.server.transport.sent.end());
    cluster.server.forget();
  }
  EXPECT_GT(requests.size(), 20u);
  EXPECT_THAT(not_listed(requests, "quartermaster"), IsEmpty());
}

TEST(policy, no_card_is_held_back_any_more_once_the_extender_is_off) {
  cluster cluster;
  cluster.switch_to(1);
  cluster.further = {{"WithdrawalsHeldBack", "True", "TooManySickNodes", {"5 nodes of 5"}, 1}};
  cluster.settle();
  EXPECT_EQ(cluster.condition("WithdrawalsHeldBack")["status"], "True");
  cluster.further.clear();
  cluster.settle();
  EXPECT_EQ(cluster.condition("WithdrawalsHeldBack"), json());
}

TEST(policy, what_may_not_be_watched_is_named_while_that_is_so) {
  cluster cluster;
  cluster.switch_to(1);
  cluster.further = {reconcilers::refused_condition({"pods", "nodes"}, 1)};
  cluster.settle();
  EXPECT_EQ(cluster.condition("WatchesRefused")["status"], "True");
  EXPECT_EQ(cluster.condition("WatchesRefused")["reason"], "Forbidden");
  EXPECT_EQ(cluster.condition("WatchesRefused")["parameters"]["list"], "pods, nodes");
  cluster.further.clear();
  cluster.settle();
  EXPECT_EQ(cluster.condition("WatchesRefused"), json());
}

TEST(policy, changes_wake_the_one_policy_they_concern) {
  cluster cluster;
  kube::daemon_set set;
  set.key = {"quartermaster", "x"};
  EXPECT_THAT(cluster.subject.affected_by(nullptr, &set), ElementsAre(key));
  set.key.ns = "elsewhere";
  EXPECT_THAT(cluster.subject.affected_by(nullptr, &set), IsEmpty());
  kube::node plain, labelled;
  labelled.labels = packed({{"quartermaster.io/module", "pgpu"}});
  EXPECT_THAT(cluster.subject.affected_by(nullptr, &plain), IsEmpty());
  EXPECT_THAT(cluster.subject.affected_by(&plain, &labelled), ElementsAre(key));
  accelerator_policy other;
  other.key.name = "other";
  EXPECT_THAT(cluster.subject.affected_by(nullptr, &other), ElementsAre(other.key));
}

TEST(policy, says_of_a_kube_scheduler_since_when_it_is_so_and_tells_when_that_changes) {
  cluster cluster;
  cluster.switch_to(0);
  cluster.settle();
  const auto rows = [&] { return cluster.server.objects.at(policy_path)["status"].value("schedulers", json::array()); };
  EXPECT_EQ(rows(), json::array());
  scheduler_row row;
  row.name = "quartermaster";
  row.mode = "Dedicated";
  row.version = "v1.36.3";
  row.reason = "Starting";
  row.message = {"status.scheduler.replicas", {{"ready", "0"}, {"desired", "2"}}};
  cluster.schedulers = {row};
  cluster.settle();
  ASSERT_EQ(rows().size(), 1u);
  EXPECT_EQ(rows()[0]["since"], "2027-01-15T08:00:00Z");
  const auto reasons = [&] {
    std::vector<std::string> out;
    for (const auto& event : cluster.recorder.events) {
      if (event.reason.starts_with("Scheduler")) out.push_back(event.reason);
    }
    return out;
  };
  EXPECT_THAT(reasons(), ElementsAre("SchedulerStarting"));

  // What stays keeps its time.
  auto object = cluster.server.objects.at(policy_path);
  object["status"]["schedulers"][0]["since"] = "2027-01-01T00:00:00Z";
  cluster.server.put(policy_path, object);
  cluster.schedulers = {row};
  cluster.schedulers->at(0).message = {"status.scheduler.replicas", {{"ready", "1"}, {"desired", "2"}}};
  cluster.settle();
  EXPECT_EQ(rows()[0]["cause"], "status.scheduler.replicas");
  EXPECT_EQ(rows()[0]["parameters"], (json{{"ready", "1"}, {"desired", "2"}}));
  EXPECT_EQ(rows()[0]["since"], "2027-01-01T00:00:00Z");
  cluster.schedulers = std::nullopt;  // an operator that has just started
  cluster.settle();
  EXPECT_EQ(rows()[0]["since"], "2027-01-01T00:00:00Z");
  EXPECT_EQ(reasons().size(), 1u);
  row.reason = "Dedicated";
  cluster.schedulers = {row};
  cluster.settle();
  EXPECT_EQ(rows()[0]["since"], "2027-01-15T08:00:00Z");
  cluster.schedulers = std::vector<scheduler_row>();
  cluster.settle();
  EXPECT_EQ(rows(), json::array());
  EXPECT_THAT(reasons(), ElementsAre("SchedulerStarting", "SchedulerDedicated", "SchedulerRemoved"));
}

}  // namespace
}  // namespace reconcilers
