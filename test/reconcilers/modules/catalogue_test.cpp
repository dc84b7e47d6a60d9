#include "reconcilers/modules/catalogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "quota/limits.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "reconcilers/modules/plugin.hpp"
#include "reconcilers/modules/privileges.hpp"
#include "reconcilers/modules/settings.hpp"
#include "test/english.hpp"
#include "test/facts_in.hpp"

namespace reconcilers::modules {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

facts known() { return {"quartermaster", "quartermaster:test", "default", "6d1f0c1e-0000-4000-8000-000000000001"}; }

/// Every setting a policy can have.
module_spec wishful() {
  module_spec out;
  out.enabled = true;
  out.image = "registry.example/plugin@sha256:1234";
  out.image_pull_policy = "IfNotPresent";
  out.resources = R"({"limits":{"cpu":"1","memory":"1Gi"}})";
  out.args = R"(["--one","--two=2"])";
  out.env = R"([{"name":"LOG_LEVEL","value":"9"},{"name":"NVIDIA_VISIBLE_DEVICES","value":"0"},{"name":"EXTRA"}])";
  out.tolerations = R"([{"key":"team","operator":"Equal","value":"ai","effect":"NoExecute"},
                        {"key":"CriticalAddonsOnly","operator":"Exists"}])";
  out.priority_class = "high";
  out.runtime_class = "nvidia";
  return out;
}

/// Every setting that changes what the pods are, and a node set.
std::vector<module_spec> set_up(const module_type& type) {
  const std::map<std::string_view, std::vector<settings_map>> all = {
      {"pgpu",
       {{{"MIG_STRATEGY", "mixed"},
         {"DEVICE_LIST_STRATEGY", "envvar,cdi-cri"},
         {"NVIDIA_DRIVER_ROOT", "/run/nvidia/driver"},
         {"GDRCOPY_ENABLED", "true"},
         {"configMap", "my-configs"},
         {"defaultConfig", "plain"},
         {"featureDiscovery", "true"}},
        {{"PASS_DEVICE_SPECS", "true"}, {"configMap", "my-configs"}, {"FAIL_ON_INIT_ERROR", "false"}},
        {{"plugin", "quartermaster"}, {"featureDiscovery", "true"}}}},
      {"hami",
       {{{"deviceSplitCount", "4"},
         {"deviceMemoryScaling", "1.5"},
         {"migStrategy", "mixed"},
         {"disablecorelimit", "true"},
         {"resourceName", "nvidia.com/gpu"},
         {"GPU_CORE_UTILIZATION_POLICY", "force"},
         {"ACTIVE_OOM_KILLER", "true"}},
        {{"plugin", "quartermaster"}, {"resourceName", "nvidia.com/gpu"}, {"defaultMem", "0"}}}},
      {"gpushare", {{{"mps", "true"}, {"memoryUnit", "MiB"}}, {{"plugin", "quartermaster"}, {"memoryUnit", "MiB"}}}},
      {"share", {{{"replicas", "4"}}}},
      {"vgpu", {{{"plugin", "quartermaster"}}}},
  };
  std::vector<module_spec> out;
  const auto match = all.find(type.name);
  if (match == all.end()) return out;
  for (const auto& settings : match->second) {
    auto& spec = out.emplace_back();
    spec.settings = settings;
    spec.node_sets = {{"big", {*settings.begin()}}, {"plain", {}}};
  }
  return out;
}

/// What a policy may say of a module, from nothing to everything.
std::vector<module_spec> specs_of(const module_type& type) {
  std::vector<module_spec> out{module_spec(), wishful()};
  for (auto& entry : set_up(type)) out.push_back(std::move(entry));
  return out;
}

json shown(const module_type& type, const module_spec& spec) {
  auto out = json::array();
  for (const auto& entry : intents_of(type, spec, known())) out.push_back(json::parse(entry.body));
  return out;
}

/// QM_GOLDEN=write writes what is missing or differs; the change is then for a person to read.
void expect_golden(const std::string& name, const json& made) {
  const auto path = std::filesystem::path(TEST_DATA) / "golden/modules" / (name + ".json");
  const auto text = made.dump(2) + "\n";
  const char* write = std::getenv("QM_GOLDEN");
  if (write && std::string_view(write) == "write") std::ofstream(path) << text;
  std::ostringstream kept;
  kept << std::ifstream(path).rdbuf();
  EXPECT_EQ(kept.str(), text) << path << ": QM_GOLDEN=write takes over what is made now";
}

TEST(catalogue, a_daemon_set_names_its_account_so_that_another_can_follow_it) {
  for (const auto& entry : catalogue()) {
    auto specs = set_up(entry);
    specs.emplace_back();
    for (const auto& spec : specs)
      for (const auto& object : entry.objects(spec, {}))
        if (object.value("kind", "") == "DaemonSet")
          EXPECT_FALSE(object.at("/spec/template/spec"_json_pointer).value("serviceAccountName", "").empty())
              << entry.name;
  }
}

TEST(catalogue, S2_objects_of_each_module_are_the_golden_files) {
  for (const auto& entry : catalogue()) {
    expect_golden(std::string(entry.name), shown(entry, {}));
    expect_golden(std::string(entry.name) + ".wishes", shown(entry, wishful()));
    int number = 0;
    for (const auto& spec : set_up(entry))
      expect_golden(std::string(entry.name) + ".settings" + std::to_string(++number), shown(entry, spec));
  }
}

TEST(catalogue, images_that_the_policy_does_not_name_come_from_the_registry_that_the_operator_was_given) {
  auto mirrored = known();
  mirrored.image_registry = "mirror.example:5000/gpu";
  std::size_t seen = 0;
  for (const auto& type : catalogue()) {
    for (const auto& spec : specs_of(type)) {
      for (const auto& intent : intents_of(type, spec, mirrored)) {
        const auto pod = json::parse(intent.body).value("/spec/template/spec"_json_pointer, json::object());
        for (const auto* list : {"initContainers", "containers"}) {
          for (const auto& container : pod.value(list, json::array())) {
            const auto image = container.at("image").get<std::string>();
            const bool named = image == spec.image || image == mirrored.own_image;
            EXPECT_TRUE(named || image.starts_with("mirror.example:5000/gpu/")) << type.name << ": " << image;
            seen += named ? 0 : 1;
          }
        }
      }
    }
  }
  EXPECT_GT(seen, 20u);
}

TEST(catalogue, a_registry_takes_the_place_of_the_images_own) {
  EXPECT_EQ(at_registry("nvcr.io/nvidia/x:1", "mirror.example:5000/gpu/"), "mirror.example:5000/gpu/nvidia/x:1");
  EXPECT_EQ(at_registry("nvidia/x:1", "mirror.example"), "mirror.example/nvidia/x:1");
  EXPECT_EQ(at_registry("localhost/x@sha256:12", "mirror.example"), "mirror.example/x@sha256:12");
  EXPECT_EQ(at_registry("kube-scheduler:v1.36.3", "mirror.example"), "mirror.example/kube-scheduler:v1.36.3");
  EXPECT_EQ(at_registry("nvcr.io/nvidia/x:1", ""), "nvcr.io/nvidia/x:1");
}

TEST(catalogue, S3_keeps_the_names_people_look_for) {
  EXPECT_EQ(pgpu.daemon_set, "nvidia-device-plugin-ds");
  EXPECT_EQ(vgpu.daemon_set, "gpu-manager-daemonset");
  EXPECT_EQ(mps.daemon_set, "nvidia-mps-device-plugin-daemonset");
  EXPECT_EQ(hami.daemon_set, "hami-device-plugin");
  EXPECT_EQ(gpushare.daemon_set, "gpushare-device-plugin-ds");
  for (const auto& entry : catalogue()) {
    const auto last = json::parse(intents_of(entry, {}, known()).back().body);
    EXPECT_EQ(last["kind"], "DaemonSet");
    EXPECT_EQ(last["metadata"]["name"], entry.daemon_set);
    EXPECT_EQ(find(entry.name), &entry);
    for (const auto resource : entry.resources) EXPECT_EQ(advertiser(resource), &entry);
  }
  EXPECT_EQ(find("warp"), nullptr);
  EXPECT_EQ(advertiser("example.com/fpga"), nullptr);
  EXPECT_EQ(names_for_people(), "pgpu, vgpu, mps, hami, share and gpushare");
}

TEST(catalogue, S2_no_object_belongs_to_two_modules) {
  std::set<std::string> seen;
  for (const auto& entry : catalogue()) {
    for (const auto& made : intents_of(entry, {}, known()))
      EXPECT_TRUE(seen.insert(made.type->api_version() + std::string(made.type->kind) + made.key.to_string()).second);
  }
}

TEST(catalogue, S62_every_daemon_set_runs_where_our_label_says_and_tolerates_a_mode_change_whatever_the_policy_says) {
  for (const auto& entry : catalogue()) {
    for (const auto& spec : {module_spec(), wishful()}) {
      const auto set = json::parse(intents_of(entry, spec, known()).back().body);
      const json selector = {{"quartermaster.io/module", entry.name}};
      EXPECT_EQ(set["spec"]["template"]["spec"]["nodeSelector"], selector);
      EXPECT_EQ(set["spec"]["selector"]["matchLabels"], selector);
      EXPECT_EQ(set["spec"]["template"]["metadata"]["labels"]["quartermaster.io/module"], entry.name);
      const json toleration = {{"key", "quartermaster.io/switching"}, {"operator", "Exists"}, {"effect", "NoSchedule"}};
      EXPECT_THAT(set["spec"]["template"]["spec"]["tolerations"], testing::Contains(toleration));
    }
  }
}

TEST(catalogue, every_object_is_found_again_by_its_labels_and_goes_with_the_policy) {
  for (const auto& entry : catalogue()) {
    for (const auto& made : intents_of(entry, {}, known())) {
      const auto metadata = json::parse(made.body)["metadata"];
      EXPECT_EQ(metadata["labels"]["app.kubernetes.io/managed-by"], "quartermaster");
      EXPECT_EQ(metadata["labels"]["quartermaster.io/module"], entry.name);
      EXPECT_EQ(metadata["namespace"], "quartermaster");
      EXPECT_EQ(metadata["annotations"]["state.quartermaster.io/applied"], made.hash);
      EXPECT_EQ(metadata["ownerReferences"][0]["uid"], known().policy_uid);
      EXPECT_EQ(made.module, entry.name);
    }
  }
}

TEST(catalogue, a_wish_moves_the_hash_and_the_same_wish_does_not) {
  const auto hash = [](const module_spec& spec) { return intents_of(pgpu, spec, known()).back().hash; };
  module_spec other;
  other.image = "x:1";
  EXPECT_EQ(hash({}), hash({}));
  EXPECT_NE(hash({}), hash(other));
}

TEST(catalogue, a_part_of_the_policy_that_is_not_what_the_schema_promises_is_an_exception_not_half_an_object) {
  module_spec broken;
  broken.env = R"([{"value":"x"}])";
  EXPECT_THROW(intents_of(pgpu, broken, known()), json::exception);
}

TEST(catalogue, no_two_modules_advertise_one_resource_so_a_pod_says_whose_it_is) {
  std::set<std::string_view> seen;
  for (const auto& entry : catalogue()) {
    ASSERT_FALSE(entry.resources.empty());
    for (const auto name : entry.resources) EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_THAT(entry.label_values, testing::Contains(entry.name)) << "nvidia-device-enable takes the name of each";
  }
}

TEST(catalogue, S64_S76_S84_S86_says_what_keeps_pods_apart_and_nothing_stronger) {
  std::map<std::string_view, std::string_view> isolations;
  for (const auto& entry : catalogue()) isolations[entry.name] = text_of(isolation_of(entry, {}));
  EXPECT_EQ(isolations, (std::map<std::string_view, std::string_view>{{"pgpu", "exclusive"},
                                                                      {"vgpu", "soft"},
                                                                      {"mps", "mps"},
                                                                      {"hami", "soft"},
                                                                      {"share", "none"},
                                                                      {"gpushare", "none"}}));
  module_spec with_mps;
  with_mps.settings["mps"] = "true";
  EXPECT_EQ(isolation_of(gpushare, with_mps), isolation::mps);
  module_spec own;
  own.settings["plugin"] = "quartermaster";
  EXPECT_EQ(isolation_of(vgpu, own), isolation::mps);
  EXPECT_EQ(isolation_of(gpushare, own), isolation::mps);
  EXPECT_EQ(isolation_of(hami, own), isolation::mps);
  module_spec named, cut;
  named.settings["configMap"] = "sizes";
  cut.settings["MIG_STRATEGY"] = "mixed";
  EXPECT_EQ(isolation_of(pgpu, named), isolation::none) << "it may share cards: nothing stronger is ever said";
  EXPECT_EQ(isolation_of(pgpu, cut), isolation::mig);
}

/// A DaemonSet that surges would run two plugins on a node, one that rolls by itself does not look at what is
/// allocatable.
TEST(catalogue, every_plugin_rolls_out_by_one_driver_and_why_and_from_where_is_said) {
  for (const auto& entry : catalogue()) {
    EXPECT_GT(entry.rolls_out.reason.size(), 20u) << entry.name;
    EXPECT_GT(entry.rolls_out.source.size(), 10u) << entry.name;
    const auto spec = json::parse(intents_of(entry, {}, known()).back().body)["spec"];
    EXPECT_EQ(spec["minReadySeconds"], entry.rolls_out.min_ready_seconds);
    EXPECT_EQ(spec["updateStrategy"], json({{"type", "OnDelete"}}));
    module_spec module_spec;
    EXPECT_EQ(rollout_of(entry, module_spec).method, entry.rolls_out.method);
    module_spec.rollout = "Always";
    EXPECT_EQ(rollout_of(entry, module_spec).method, rollout::strategy::always);
    module_spec.rollout = "WhenIdle";
    EXPECT_EQ(rollout_of(entry, module_spec).method, rollout::strategy::when_idle);
    module_spec.rollout = "OnDelete";
    EXPECT_EQ(rollout_of(entry, module_spec).method, rollout::strategy::by_hand);
  }
  using how = rollout::strategy;
  EXPECT_EQ(pgpu.rolls_out.method, how::always);
  EXPECT_EQ(share.rolls_out.method, how::always);
  EXPECT_EQ(gpushare.rolls_out.method, how::always);
  EXPECT_EQ(vgpu.rolls_out.method, how::when_idle) << "running containers call into its pod";
  EXPECT_EQ(mps.rolls_out.method, how::when_idle) << "clients end with its pod";
  EXPECT_EQ(hami.rolls_out.method, how::when_idle) << "its library is written over";
}

/// Pods and their DaemonSet say what they are made from; an image alone is distinguished from everything else.
TEST(catalogue, a_template_is_marked_by_its_content) {
  const auto mark = [](const module_spec& spec, std::size_t index = 0) {
    std::vector<json> sets;
    for (const auto& entry : intents_of(hami, spec, known())) {
      auto object = json::parse(entry.body);
      if (object["kind"] == "DaemonSet") sets.push_back(std::move(object));
    }
    const auto& set = sets.at(index);
    const auto on_set = set["metadata"]["annotations"]["quartermaster.io/template"].get<std::string>();
    EXPECT_EQ(set["spec"]["template"]["metadata"]["annotations"]["quartermaster.io/template"], on_set);
    return on_set;
  };
  const auto rest = [](const std::string& text) { return text.substr(0, text.find('.')); };
  const auto plain = mark({});
  EXPECT_EQ(plain, mark({})) << "of the content alone";
  module_spec image;
  image.image = "example.com/hami:2";
  EXPECT_NE(mark(image), plain);
  EXPECT_EQ(rest(mark(image)), rest(plain));
  module_spec files;
  files.settings["deviceSplitCount"] = "4";
  EXPECT_NE(rest(mark(files)), rest(plain));
  files.node_sets = {{"big", {{"deviceSplitCount", "2"}}}};
  EXPECT_NE(mark(files, 0), mark(files, 1));
  module_spec manual;
  manual.rollout = "OnDelete";
  EXPECT_EQ(mark(manual), plain) << "how it comes is no reason to replace pods";
}

json only(const std::vector<intent>& made, std::string_view kind, std::string_view name) {
  for (const auto& entry : made) {
    if (entry.type->kind == kind && entry.key.name == name) return json::parse(entry.body);
  }
  ADD_FAILURE() << kind << " " << name << " is not made";
  return {};
}

TEST(catalogue, S52_a_node_set_is_a_daemon_set_of_its_own_and_the_others_keep_away) {
  module_spec spec;
  spec.settings["deviceSplitCount"] = "10";
  spec.node_sets = {{"a100", {{"deviceSplitCount", "4"}, {"disablecorelimit", "true"}}}};
  const auto made = intents_of(hami, spec, known());
  const auto base = only(made, "DaemonSet", "hami-device-plugin")["spec"]["template"];
  const auto set = only(made, "DaemonSet", "hami-device-plugin-a100");
  const auto files = only(made, "ConfigMap", "hami-device-plugin-config")["data"];
  EXPECT_THAT(files["device-config.yaml"].get<std::string>(), HasSubstr("deviceSplitCount: 10\n"));
  EXPECT_THAT(files["a100.device-config.yaml"].get<std::string>(), HasSubstr("deviceSplitCount: 4\n"));
  const auto pod = set["spec"]["template"]["spec"];
  EXPECT_EQ(pod["nodeSelector"], json({{"quartermaster.io/module", "hami"}, {"quartermaster.io/plugin-set", "a100"}}))
      << "our own label: a person's would move the node at once";
  EXPECT_EQ(set["spec"]["selector"]["matchLabels"],
            json({{"quartermaster.io/module", "hami"}, {"quartermaster.io/node-set", "a100"}}));
  EXPECT_THAT(pod["containers"][0]["command"], testing::Contains("--disable-core-limit=true"));
  EXPECT_THAT(base["spec"]["containers"][0]["command"], testing::Contains("--disable-core-limit=false"));
  EXPECT_EQ(base["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                ["nodeSelectorTerms"][0]["matchExpressions"][0],
            json::parse(R"({"key":"quartermaster.io/plugin-set","operator":"DoesNotExist"})"));
  auto bare = spec;
  bare.node_sets.clear();
  const auto alone = only(intents_of(hami, bare, known()), "DaemonSet", "hami-device-plugin")["spec"]["template"];
  EXPECT_EQ(base["metadata"]["annotations"], alone["metadata"]["annotations"])
      << "another set is no reason to replace the pods of the rest";
  EXPECT_NE(base["metadata"]["annotations"], set["spec"]["template"]["metadata"]["annotations"])
      << "a change of one set's file replaces that set's pods only";
  EXPECT_EQ(daemon_sets_of(hami, spec), (std::vector<std::string>{"hami-device-plugin", "hami-device-plugin-a100"}));
}

/// What is refused, as its key below status.settings and its values: "none{field=a,module=b}".
std::string wrong(const module_type& type, const module_spec& spec) {
  try {
    intents_of(type, spec, known());
  } catch (const invalid_policy& error) {
    EXPECT_FALSE(words::has_english_sentence(words_of(error.message, text::language::zh)));
    constexpr std::string_view prefix = "status.settings.";
    EXPECT_TRUE(error.message.key.starts_with(prefix)) << error.message.key;
    std::string out = error.message.key.substr(prefix.size()), values;
    for (const auto& [name, value, inner] : error.message.arguments)
      values += (values.empty() ? "" : ",") + name + "=" + (inner.empty() ? value[0] : inner.key);
    return out + "{" + values + "}";
  }
  return "nothing";
}

TEST(settings, of_NVIDIAs_plugin_are_refused_where_the_plugin_is_ours) {
  module_spec spec;
  spec.settings = {{"plugin", "quartermaster"}};
  EXPECT_EQ(wrong(pgpu, spec), "nothing");
  EXPECT_TRUE(pgpu.follows_placement(spec));
  spec.settings["featureDiscovery"] = "true";
  EXPECT_EQ(wrong(pgpu, spec), "nothing");
  spec.settings["MIG_STRATEGY"] = "single";
  EXPECT_EQ(wrong(pgpu, spec),
            "of_other{field=spec.modules.pgpu.settings.MIG_STRATEGY,product=NVIDIA,list=featureDiscovery}");
  spec.settings["plugin"] = "nvidia";
  EXPECT_EQ(wrong(pgpu, spec), "nothing");
  EXPECT_FALSE(pgpu.follows_placement(spec));
  spec.node_sets = {{.name = "late", .settings = {{"plugin", "quartermaster"}}}};
  EXPECT_THAT(wrong(pgpu, spec), HasSubstr("MIG_STRATEGY")) << "a set has the settings of all, too";
}

TEST(settings, of_HAMis_plugin_are_refused_where_the_plugin_is_ours) {
  module_spec spec;
  spec.settings = {{"plugin", "quartermaster"}, {"resourceName", "nvidia.com/gpu"}, {"deviceSplitCount", "4"}};
  EXPECT_EQ(wrong(hami, spec), "nothing");
  EXPECT_TRUE(hami.follows_placement(spec));
  spec.settings["deviceMemoryScaling"] = "2";
  EXPECT_THAT(wrong(hami, spec), HasSubstr("spec.modules.hami.settings.deviceMemoryScaling"));
  spec.settings["plugin"] = "hami";
  EXPECT_EQ(wrong(hami, spec), "nothing");
  EXPECT_FALSE(hami.follows_placement(spec));
}

TEST(settings, of_gpushares_plugin_are_refused_where_the_plugin_is_ours) {
  module_spec spec;
  spec.settings = {{"plugin", "quartermaster"}, {"memoryUnit", "MiB"}};
  EXPECT_EQ(wrong(gpushare, spec), "nothing");
  EXPECT_TRUE(gpushare.follows_placement(spec));
  spec.settings["mps"] = "false";
  EXPECT_THAT(wrong(gpushare, spec), HasSubstr("spec.modules.gpushare.settings.mps"));
  spec.settings["plugin"] = "gpushare";
  EXPECT_EQ(wrong(gpushare, spec), "nothing");
  EXPECT_FALSE(gpushare.follows_placement(spec));
}

/// A pod of the plugin that ends takes the daemons of MPS with it, whatever the module is named.
TEST(catalogue, a_plugin_that_keeps_MPS_waits_for_the_pods_of_a_node) {
  module_spec own;
  own.settings["plugin"] = "quartermaster";
  for (const auto* type : {&vgpu, &hami, &gpushare})
    EXPECT_EQ(rollout_of(*type, own).reason, mps.rolls_out.reason) << type->name;
  EXPECT_EQ(rollout_of(gpushare, own).method, rollout::strategy::when_idle);
  EXPECT_EQ(rollout_of(gpushare, {}).method, rollout::strategy::always);
  own.rollout = "Always";
  EXPECT_EQ(rollout_of(gpushare, own).method, rollout::strategy::always) << "a person may say otherwise";
  module_spec by_alibaba;
  by_alibaba.settings["mps"] = "true";
  EXPECT_EQ(rollout_of(gpushare, by_alibaba).method, rollout::strategy::always) << "that server is the node's own";
}

TEST(settings, S52_say_what_is_wrong_and_what_is_allowed) {
  const auto set = [](std::string name, std::string value) {
    module_spec out;
    out.settings[std::move(name)] = std::move(value);
    return out;
  };
  EXPECT_THAT(wrong(hami, set("deviceSplitcount", "4")),
              words::has_in_order({"unknown_near{field=spec.modules.hami.settings.deviceSplitcount,module=hami,",
                                   "list=plugin, deviceSplitCount", "hint=deviceSplitCount}"}));
  EXPECT_THAT(wrong(hami, set("nothingLikeIt", "4")), HasSubstr("unknown{"));
  EXPECT_EQ(wrong(hami, set("resourceMem", "nvidia.com/gpucores")),
            "same_resource{field=spec.modules.hami.settings.resourceMem,other=spec.modules.hami.settings."
            "resourceCores,value=nvidia.com/gpucores}");
  EXPECT_EQ(wrong(mps, set("a", "b")), "none{field=spec.modules.mps.settings.a,module=mps}");
  EXPECT_EQ(wrong(vgpu, set("plugin", "nvidia")),
            "refused{field=spec.modules.vgpu.settings.plugin,value=nvidia,allowed=gpu-manager, quartermaster}");
  EXPECT_EQ(wrong(pgpu, set("MIG_STRATEGY", "all")),
            "refused{field=spec.modules.pgpu.settings.MIG_STRATEGY,value=all,allowed=none, single, mixed}");
  const auto expect_allowed = [&](const module_type& type, const char* name, const char* value, const char* kind) {
    EXPECT_THAT(wrong(type, set(name, value)), HasSubstr(std::string("allowed=status.settings.allowed.") + kind + "}"))
        << value;
  };
  expect_allowed(pgpu, "DEVICE_LIST_STRATEGY", "envvar,", "words");
  EXPECT_THAT(wrong(pgpu, set("NVIDIA_DRIVER_ROOT", "/etc")), HasSubstr("allowed=/, /run/nvidia/driver"));
  expect_allowed(pgpu, "configMap", "My Configs", "name");
  expect_allowed(pgpu, "CDI_FEATURE_FLAGS", "a\nb", "text");
  for (const auto* number : {"", "-1", "1001", "4x", "0", "99999999999999999999"})
    expect_allowed(hami, "deviceSplitCount", number, "number");
  for (const auto* scale : {"", "0", "0.0", "-1", "101", "1.", ".5", "1e3", "nan"})
    expect_allowed(hami, "deviceMemoryScaling", scale, "decimal");
  for (const auto* name : {"gpu", "nvidia.com/", "requests.nvidia.com/gpu", "kubernetes.io/gpu", "a.b/c/d", "A.com/x"})
    expect_allowed(hami, "resourceName", name, "resource");
  for (const auto* good : {"1.5", "100", "0.25"}) EXPECT_EQ(wrong(hami, set("deviceMemoryScaling", good)), "nothing");
  module_spec sets;
  sets.node_sets = {{"a", {{"resourceName", "nvidia.com/other"}}}};
  EXPECT_EQ(wrong(hami, sets),
            "one_name{field=spec.modules.hami.nodeSets[a].settings.resourceName,"
            "other=spec.modules.hami.settings}");
  sets.node_sets = {{"a", {}}, {"a", {}}};
  EXPECT_EQ(wrong(hami, sets), "set_twice{field=spec.modules.hami.nodeSets,name=a}");
  sets.node_sets = {{"Big Ones", {}}};
  EXPECT_EQ(wrong(hami, sets), "set_name{field=spec.modules.hami.nodeSets,name=Big Ones}");
}

TEST(settings, S52_each_has_a_legal_value_without_the_policy) {
  for (const auto& entry : catalogue()) {
    for (const auto& setting : entry.settings) {
      if (!setting.fallback.empty())
        EXPECT_TRUE(is_legal(setting, setting.fallback)) << entry.name << " " << setting.name;
    }
  }
  const auto files = only(intents_of(hami, {}, known()), "ConfigMap", "hami-device-plugin-config")["data"];
  for (const auto* line : {"deviceSplitCount: 10\n", "deviceMemoryScaling: 1\n", "defaultMemory: 5000\n",
                           "defaultCores: 0\n", "defaultGPUNum: 1\n", "gpuCorePolicy: default\n"})
    EXPECT_THAT(files["device-config.yaml"].get<std::string>(), HasSubstr(line));
}

/// The keys are those that helm renders from the chart of HAMi v2.10.0 (templates/scheduler/device-configmap.yaml).
TEST(settings, S53_hami_gets_every_key_that_its_own_chart_writes) {
  module_spec spec;
  spec.settings = {{"disablecorelimit", "true"}};
  spec.runtime_class = "nvidia";
  const auto files = only(intents_of(hami, spec, known()), "ConfigMap", "hami-device-plugin-config")["data"];
  const auto text = files["device-config.yaml"].get<std::string>();
  std::ifstream keys("test/golden/modules/hami-v2.10.0.keys");
  int count = 0;
  for (std::string key; std::getline(keys, key); ++count) {
    if (key == "migProfileAllowlist") continue;  // read in operating mode mig only
    EXPECT_THAT(text, HasSubstr("\n  " + key + ": ")) << "the plugin may dereference what is missing";
  }
  EXPECT_EQ(count, 19);
  EXPECT_THAT(text, HasSubstr("\n  disableCoreLimit: true\n")) << "the plugin reads it from this file alone";
  EXPECT_THAT(text, HasSubstr("\n  runtimeClassName: \"nvidia\"\n"));
  for (const auto* policy : {"default", "force", "disable"}) {
    spec.settings = {{"GPU_CORE_UTILIZATION_POLICY", policy}};
    const auto made = only(intents_of(hami, spec, known()), "ConfigMap", "hami-device-plugin-config")["data"];
    const std::string is = policy == std::string("disable") ? "true" : "false";
    EXPECT_THAT(made["device-config.yaml"].get<std::string>(), HasSubstr("\n  disableCoreLimit: " + is + "\n"));
  }
  EXPECT_EQ(json::parse(files["config.json"].get<std::string>()), json({{"nodeconfig", json::array()}}));
}

TEST(offer, S52_has_the_resources_that_the_policy_names) {
  std::map<std::string, module_spec, std::less<>> modules;
  EXPECT_EQ(offer(modules).advertiser("nvidia.com/gpualloc")->name, "hami");
  modules["hami"].settings["resourceName"] = "example.com/slice";
  const offer offered(modules);
  EXPECT_EQ(offered.advertiser("example.com/slice")->name, "hami");
  EXPECT_EQ(offered.advertiser("nvidia.com/gpualloc"), nullptr);
  EXPECT_EQ(offered.advertiser("nvidia.com/gpu")->name, "pgpu");
  EXPECT_EQ(offered.rows().size(), catalogue().size());
  EXPECT_EQ(offered.find("hami")->daemon_set, hami.daemon_set);
}

module_spec device(const json& object) {
  module_spec out;
  out.enabled = true;
  out.image = "vendor/plugin:1";
  out.device = object.dump();
  return out;
}

/// The one DaemonSet of a module called `name`.
json device_set(const std::string& name, const module_spec& spec) {
  const offer offer({{name, spec}});
  return json::parse(intents_of(*offer.find(name), spec, known()).back().body);
}

json plain_device() { return device_set("fpga", device({{"resources", {{{"name", "example.com/fpga"}}}}})); }

TEST(custom, S27_S89_ascend_amd_intel_and_fpga_are_modules_side_by_side) {
  std::map<std::string, module_spec, std::less<>> modules;
  const std::pair<const char*, const char*> all[] = {{"ascend", "huawei.com/Ascend910"},
                                                     {"amd", "amd.com/gpu"},
                                                     {"intel", "gpu.intel.com/i915"},
                                                     {"fpga", "example.com/fpga"}};
  for (const auto& [name, resource] : all) modules[name] = device({{"resources", {{{"name", resource}}}}});
  const offer offered(modules);
  for (const auto& [name, resource] : all) {
    const auto* row = offered.find(name);
    ASSERT_TRUE(row);
    EXPECT_EQ(offered.advertiser(resource), row);
    EXPECT_THAT(row->label_values, ElementsAre(name));
    EXPECT_EQ(row->needs.architectures.size(), 2u);
    const auto made = intents_of(*row, modules.at(name), known());
    ASSERT_EQ(made.size(), 1u);
    const auto set = json::parse(made[0].body);
    EXPECT_EQ(set["metadata"]["name"], std::string(name) + "-device-plugin");
    EXPECT_EQ(set["spec"]["template"]["spec"]["nodeSelector"], json({{"quartermaster.io/module", name}}));
    EXPECT_EQ(set["spec"]["template"]["spec"]["containers"][0]["image"], "vendor/plugin:1");
  }
}

TEST(custom, S27_what_the_policy_says_of_a_device_is_what_the_pods_are) {
  const auto definition = json::parse(R"({"title":"Huawei NPU","resources":[{"name":"huawei.com/Ascend910"}],
    "nodeLabel":{"key":"ascend","value":"on"},"architectures":["arm64"],"isolation":"soft","command":["/bin/plugin"],
    "hostPID":true,"hostNetwork":true,"capabilities":["SYS_ADMIN"],"serviceAccountName":"ascend","daemonSet":"ascend-ds",
    "hostPaths":[{"path":"/usr/local/Ascend/driver","readOnly":true},{"path":"/a","mountPath":"/b","type":"Directory"}],
    "configMaps":[{"name":"ascend-files","mountPath":"/etc/ascend"}],"updateStrategy":"OnDelete"})");
  const auto spec = device(definition);
  const offer offer({{"ascend", spec}});
  const auto* row = offer.find("ascend");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->title, "Huawei NPU");
  EXPECT_EQ(row->daemon_set, "ascend-ds");
  EXPECT_THAT(row->needs.architectures, ElementsAre("arm64"));
  EXPECT_EQ(isolation_of(*row, spec), isolation::soft);
  EXPECT_EQ(row->rolls_out.method, rollout::strategy::by_hand);
  EXPECT_EQ(offer.aliases(), (std::vector<label_alias>{{"ascend", "on", "ascend"}}));
  expect_golden("custom.ascend", shown(*row, spec));
  const auto set = device_set("ascend", spec);
  EXPECT_EQ(set["spec"]["updateStrategy"]["type"], "OnDelete");
  EXPECT_THAT(privileges_in(set["spec"]["template"]["spec"]),
              ElementsAre("device-plugin: add SYS_ADMIN", "device-plugin: read /usr/local/Ascend/driver",
                          "device-plugin: root", "device-plugin: write /a",
                          "device-plugin: write /var/lib/kubelet/device-plugins", "hostNetwork", "hostPID", "token"))
      << "no privilege but the plugin folder that the policy does not name";
}

TEST(custom, S27_what_is_missing_or_taken_is_said) {
  const auto wrong_with = [](const module_spec& spec) {
    const offer offer({{"fpga", spec}});
    return wrong(*offer.find("fpga"), spec);
  };
  auto spec = device({{"resources", {{{"name", "example.com/fpga"}}}}});
  spec.image.clear();
  EXPECT_EQ(wrong_with(spec), "no_image{field=spec.modules.fpga.image}");
  EXPECT_EQ(wrong_with(device(json::object())), "no_resource{field=spec.modules.fpga.device.resources}");
  module_spec unreadable;
  unreadable.image = "x";
  for (const auto* text : {"[]", "\"x\"", "{\"resources\":7}", "{\"resources\":[7]}", "{"}) {
    unreadable.device = text;
    const offer offer({{"fpga", unreadable}});
    EXPECT_ANY_THROW(intents_of(*offer.find("fpga"), unreadable, known())) << text;
  }
}

/// A module that has something of another one is refused, and its label asks for nothing.
TEST(custom, S27_a_device_has_its_resource_daemon_set_and_label_alone) {
  const auto fpga = [](const json& more) {
    auto definition = json{{"resources", {{{"name", "example.com/fpga"}}}}};
    definition.update(more);
    return device(definition);
  };
  const auto label = [](const char* key, const char* value) {
    return json{{"nodeLabel", {{"key", key}, {"value", value}}}};
  };
  const auto conflict = [](const module_specs& modules, const char* name) {
    const offer offered(modules);
    const auto phrase = offered.conflict_of(name);
    const auto aliases = offered.aliases();
    EXPECT_EQ(std::ranges::find(aliases, name, &label_alias::mode) == aliases.end(), !phrase.empty());
    return phrase.empty() ? std::string() : phrase.key + " " + phrase.arguments.back().values[0];
  };
  const auto by_label = label("rack", "fpga");
  EXPECT_EQ(conflict({{"fpga", fpga(by_label)}}, "fpga"), "");
  EXPECT_EQ(conflict({{"fpga", device({{"resources", {{{"name", "nvidia.com/gpu"}}}}})}}, "fpga"),
            "status.settings.advertised pgpu");
  EXPECT_EQ(conflict({{"fpga", fpga({{"daemonSet", "hami-device-plugin"}})}}, "fpga"),
            "status.settings.daemon_set hami");
  EXPECT_EQ(conflict({{"fpga", fpga(label("nvidia-device-enable", "vGPU"))}}, "fpga"), "status.settings.label vgpu");
  EXPECT_EQ(conflict({{"fpga", fpga(by_label)}, {"other", fpga(label("rack", "x"))}}, "other"),
            "status.settings.advertised fpga");
  auto other = fpga(by_label);
  other.device = json{{"resources", {{{"name", "example.com/other"}}}}, {"nodeLabel", by_label["nodeLabel"]}}.dump();
  EXPECT_EQ(conflict({{"fpga", fpga(by_label)}, {"other", other}}, "other"), "status.settings.label fpga");
  auto disabled = fpga(by_label);
  disabled.enabled = false;
  EXPECT_EQ(conflict({{"fpga", disabled}, {"other", other}}, "other"), "") << "that one is off";
}

declarations::config_map_view view_of(const json& object) {
  declarations::config_map_view out;
  const auto& metadata = object["metadata"];
  out.key = {metadata["namespace"].get<std::string>(), metadata["name"].get<std::string>()};
  for (const auto& [name, value] : metadata["labels"].items())
    out.labels.emplace_back(name, value.get_ref<const std::string&>());
  for (const auto& [name, value] : object["data"].items())
    out.data.emplace_back(name, value.get_ref<const std::string&>());
  return out;
}

/// What modules declare is judged like anyone's; all of them together, as in a cluster where all are on.
TEST(module_declarations, S21_those_of_all_modules_are_accepted_without_a_word) {
  std::map<std::string, module_spec, std::less<>> modules;
  for (const auto& entry : catalogue()) modules[std::string(entry.name)];
  modules["ascend"] = device({{"title", "Huawei NPU"},
                              {"resources", {{{"name", "huawei.com/Ascend910"}, {"default", "1"}, {"label", "NPU"}}}},
                              {"nodeLabel", {{"key", "ascend"}, {"value", "on"}}}});
  const offer offered(modules);
  std::vector<json> made;
  for (const auto& row : offered.rows()) {
    std::set<std::string> declared;
    for (const auto& entry : declarations_of(row, modules.at(std::string(row.name)), known(), "kube-public")) {
      made.push_back(json::parse(entry.body));
      EXPECT_TRUE(entry.yields);
      EXPECT_EQ(entry.key.ns, "kube-public");
      declared.insert(made.back()["data"].value("key", "config"));
    }
    EXPECT_TRUE(declared.contains("config")) << row.name;
    EXPECT_TRUE(declared.contains(std::string(row.resources[0]))) << row.name;
  }
  std::vector<declarations::config_map_view> views;
  for (const auto& entry : made) views.push_back(view_of(entry));
  const auto judged = declarations::judge_all(views);
  EXPECT_EQ(judged.size(), made.size());
  for (const auto& entry : judged) {
    for (const auto& finding : entry.findings)
      ADD_FAILURE() << entry.config_map.to_string() << ": " << static_cast<int>(finding.kind) << " " << finding.field
                    << " " << finding.value;
  }
}

TEST(module_declarations, S21_keep_the_platforms_names_and_values) {
  const auto data = [](const module_type& type, std::string_view name) {
    return only(declarations_of(type, {}, known(), "kube-public"), "ConfigMap", name)["data"];
  };
  EXPECT_EQ(data(pgpu, "cf-crl-nvidia-gpu")["defaultValue"], "1");
  EXPECT_EQ(data(vgpu, "cf-crl-gpu-manager-vcuda-core")["defaultValue"], "20");
  EXPECT_EQ(data(hami, "cf-crl-hami-nvidia-gpualloc")["relatedResources"], "nvidia.com/gpucores,nvidia.com/gpumem");
  EXPECT_EQ(data(hami, "cf-crl-hami-nvidia-gpucores")["ignoreNodeCheck"], "true");
  EXPECT_EQ(data(hami, "cf-crl-hami-nvidia-gpumem")["resourceUnit"], "Mi");
  EXPECT_EQ(data(pgpu, "cf-crl-pgpu-config"),
            json({{"deviceName", "pGPU"}, {"nodeLabelKey", "nvidia-device-enable"}, {"nodeLabelValue", "pgpu"}}));
  module_spec with_runtime;
  with_runtime.runtime_class = "nvidia";
  for (const auto& entry : catalogue()) {
    for (const auto& made : declarations_of(entry, with_runtime, known(), "kube-public")) {
      const auto body = json::parse(made.body)["data"];
      if (body.contains("key")) EXPECT_EQ(body["runtimeClassName"], "nvidia") << made.key.name;
    }
  }
  module_spec renamed;
  renamed.settings["resourceName"] = "nvidia.com/gpu";
  EXPECT_EQ(only(declarations_of(hami, renamed, known(), "kube-public"), "ConfigMap",
                 "cf-crl-hami-nvidia-gpualloc")["data"]["key"],
            "nvidia.com/gpu");
}

/// S5: a reason for every privilege, and no privilege that no one needs any more.
TEST(privileges, S5_every_capability_host_path_and_namespace_has_its_reason) {
  std::set<std::string> wanted, documented;
  for (const auto& entry : catalogue()) {
    for (const auto& spec : specs_of(entry)) {
      for (const auto& made : intents_of(entry, spec, known())) {
        const auto object = json::parse(made.body);
        if (object["kind"] != "DaemonSet") continue;
        for (const auto& privilege : privileges_in(object["spec"]["template"]["spec"]))
          wanted.insert(std::string(entry.name) + " " + privilege);
      }
    }
  }
  for (const auto& entry : privileges_in(plain_device()["spec"]["template"]["spec"])) wanted.insert(" " + entry);
  const auto document = [&](std::string_view module, const privilege& row) {
    const auto container = row.container.empty() ? std::string() : std::string(row.container) + ": ";
    EXPECT_TRUE(documented.insert(std::string(module) + " " + container + std::string(row.permission)).second)
        << row.permission;
    EXPECT_GT(row.reason.size(), 5u) << row.permission;
  };
  for (const auto& entry : catalogue())
    for (const auto& row : privileges_of(entry)) document(entry.name, row);
  for (const auto& row : privileges_of_custom_modules()) document("", row);
  EXPECT_EQ(wanted, documented);
}

/// A privileged container has every capability, SYS_MODULE too: those that are, by name, and no one else may load one.
TEST(privileges, S5_who_could_load_a_kernel_module_is_named) {
  std::vector<std::string> could;
  for (const auto& entry : catalogue()) {
    for (const auto& row : privileges_of(entry)) {
      if (row.permission == "privileged") could.push_back(std::string(entry.name) + "/" + std::string(row.container));
      EXPECT_THAT(std::string(row.permission), testing::Not(HasSubstr("SYS_MODULE")));
      EXPECT_THAT(std::string(row.permission), testing::Not(HasSubstr("/lib/modules")));
    }
  }
  EXPECT_THAT(could, testing::UnorderedElementsAre("pgpu/nvidia-device-plugin-ctr", "pgpu/nvidia-device-plugin-sidecar",
                                                   "vgpu/gpu-manager", "vgpu/quartermaster-mps",
                                                   "mps/quartermaster-mps", "hami/device-plugin",
                                                   "hami/quartermaster-mps", "gpushare/quartermaster-mps"));
}

TEST(privileges, sees_each_kind) {
  const auto pod = json::parse(R"({"hostPID":true,"hostNetwork":true,"hostIPC":true,
    "volumes":[{"name":"a","hostPath":{"path":"/a"}},{"name":"b","emptyDir":{}}],
    "initContainers":[{"name":"i","securityContext":{"capabilities":{"add":["SYS_ADMIN"],"drop":["ALL"]},"runAsNonRoot":true}}],
    "containers":[{"name":"c","ports":[{"hostPort":1}],"volumeMounts":[{"name":"a","mountPath":"/x"},{"name":"b","mountPath":"/y"}]}]})");
  EXPECT_THAT(privileges_in(pod), ElementsAre(testing::StartsWith("c: add ("), "c: hostPort", "c: root", "c: write /a",
                                              "hostIPC", "hostNetwork", "hostPID", "i: add SYS_ADMIN", "token"));
}

}  // namespace
}  // namespace reconcilers::modules
