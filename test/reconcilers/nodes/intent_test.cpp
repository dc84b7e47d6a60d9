#include "reconcilers/nodes/intent.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/words.hpp"

namespace reconcilers {
namespace {

using kind = node_intent::kind;
using labels = std::vector<std::pair<std::string, std::string>>;
using testing::HasSubstr;

kube::node node_with(const labels& labels, std::string os = "linux", std::string arch = "amd64") {
  kube::node out;
  out.key.name = "gpu-1";
  out.operating_system = std::move(os);
  out.architecture = std::move(arch);
  std::vector<kube::packed_map::entry> entries(labels.begin(), labels.end());
  out.labels = kube::packed_map::of(entries);
  return out;
}

accelerator_policy all_on() {
  accelerator_policy out;
  out.key.name = "default";
  for (const auto& entry : modules::catalogue()) out.modules[std::string(entry.name)].enabled = true;
  return out;
}

node_intent asked(const labels& labels, const accelerator_policy& policy = all_on()) {
  return intent_of(node_with(labels), &policy);
}

std::string text_of(const node_intent& intent) { return words_of(intent.message, text::language::en); }

TEST(intent, S3_accepts_every_label_value_in_any_case) {
  const std::pair<labels, std::string_view> table[] = {
      {{{"nvidia-device-enable", "pgpu"}}, "pgpu"},
      {{{"nvidia-device-enable", "pGPU"}}, "pgpu"},
      {{{"nvidia-device-enable", "vgpu"}}, "vgpu"},
      {{{"nvidia-device-enable", "vGPU"}}, "vgpu"},
      {{{"nvidia-device-enable", "enable"}}, "vgpu"},
      {{{"nvidia-device-enable", "Enable"}}, "vgpu"},
      {{{"nvidia-device-enable", "MPS"}}, "mps"},
      {{{"quartermaster.io/mode", "mps"}}, "mps"},
      {{{"quartermaster.io/mode", "PGPU"}}, "pgpu"},
      {{{"quartermaster.io/mode", "vgpu"}, {"nvidia-device-enable", "enable"}}, "vgpu"},
  };
  for (const auto& [labels, mode] : table) {
    const auto is = asked(labels);
    EXPECT_EQ(is.type, kind::mode) << text_of(is);
    ASSERT_NE(is.mode, nullptr);
    EXPECT_EQ(is.mode->name, mode);
    EXPECT_EQ(is.requested, mode);
    EXPECT_TRUE(is.reason.empty());
  }
}

TEST(intent, a_node_without_asking_label_asks_for_nothing) {
  EXPECT_EQ(asked({}).type, kind::none);
  EXPECT_EQ(asked({{"nvidia.com/gpu.present", "true"}}).type, kind::none);
  EXPECT_EQ(asked({{"quartermaster.io/mode", "none"}}).type, kind::none);
  EXPECT_EQ(intent_of(node_with({}), nullptr).type, kind::none);
}

TEST(intent, S3_refuses_an_unknown_value_and_names_the_allowed_ones_and_the_nearest) {
  const auto is = asked({{"nvidia-device-enable", "vgpus"}});
  EXPECT_EQ(is.type, kind::refused);
  EXPECT_EQ(is.reason, "UnknownMode");
  EXPECT_EQ(is.requested, "vgpus");
  EXPECT_EQ(text_of(is), words::english("intent.label_unknown_with_hint",
                                        {{"label", "nvidia-device-enable=vgpus"},
                                         {"allowed", "pgpu, vgpu, enable, mps, hami, share and gpushare"},
                                         {"hint", "vgpu"}}));
  EXPECT_EQ(asked({{"nvidia-device-enable", ""}}).message.key, "intent.label_without_value");
  EXPECT_THAT(text_of(asked({{"quartermaster.io/mode", "enable"}})),
              HasSubstr("pgpu, vgpu, mps, hami, share, gpushare and none"));
  EXPECT_EQ(asked({{"nvidia-device-enable", "zzzzzzzz"}}).message.key, "intent.label_unknown");
}

TEST(intent, S3_two_labels_that_disagree_are_refused_not_guessed) {
  const auto is = asked({{"nvidia-device-enable", "pgpu"}, {"quartermaster.io/mode", "mps"}});
  EXPECT_EQ(is.type, kind::refused);
  EXPECT_EQ(is.reason, "ConflictingLabels");
  EXPECT_EQ(text_of(is), words::english("intent.labels_disagree", {{"label", "nvidia-device-enable=pgpu"},
                                                                   {"other", "quartermaster.io/mode=mps"}}));
  EXPECT_EQ(asked({{"nvidia-device-enable", "pgpu-dra"}, {"quartermaster.io/mode", "mps"}}).reason,
            "ConflictingLabels");
  EXPECT_EQ(asked({{"nvidia-device-enable", "pgpu"}, {"quartermaster.io/mode", "none"}}).reason, "ConflictingLabels");
}

TEST(intent, leaves_a_node_of_the_dra_driver_alone_and_says_so) {
  const auto is = asked({{"nvidia-device-enable", "pgpu-dra"}});
  EXPECT_EQ(is.type, kind::left_alone);
  EXPECT_THAT(text_of(is), HasSubstr("DRA driver"));
}

TEST(intent, S2_a_module_that_is_off_is_refused_with_the_switch_to_turn) {
  auto policy = all_on();
  policy.modules["vgpu"].enabled = false;
  const auto is = asked({{"nvidia-device-enable", "vgpu"}}, policy);
  EXPECT_EQ(is.type, kind::refused);
  EXPECT_EQ(is.reason, "ModuleDisabled");
  EXPECT_EQ(text_of(is), words::english("intent.off", {{"mode", "vgpu"}}));
  EXPECT_EQ(is.requested, "vgpu");
  EXPECT_EQ(asked({{"nvidia-device-enable", "pgpu"}}, policy).type, kind::mode);
  const auto intent = intent_of(node_with({{"nvidia-device-enable", "pgpu"}}), nullptr);
  EXPECT_EQ(intent.reason, "NoPolicy");
}

TEST(intent, a_removal_that_is_under_way_is_named_as_the_reason) {
  auto policy = all_on();
  policy.removing = true;
  const auto is = asked({{"nvidia-device-enable", "pgpu"}}, policy);
  EXPECT_EQ(is.reason, "ModuleDisabled") << "the node leaves its mode as for a module that is off";
  EXPECT_EQ(is.message.key, "intent.removing");
}

TEST(intent, S3_refuses_what_the_module_cannot_run_on) {
  const auto policy = all_on();
  const auto judge = [&](const char* os, const char* arch, const char* mode) {
    return intent_of(node_with({{"nvidia-device-enable", mode}}, os, arch), &policy);
  };
  EXPECT_EQ(judge("windows", "amd64", "pgpu").reason, "UnsuitableNode");
  EXPECT_EQ(judge("linux", "arm64", "vgpu").reason, "UnsuitableNode");
  EXPECT_EQ(judge("linux", "arm64", "pgpu").type, kind::mode);
  EXPECT_EQ(judge("", "", "vgpu").type, kind::mode) << "what is not known is not held against it";
}

TEST(intent, vgpu_is_refused_where_its_image_cannot_talk_to_the_runtime) {
  auto policy = all_on();
  const auto judge = [&](const char* runtime, const char* mode) {
    auto node = node_with({{"nvidia-device-enable", mode}});
    node.container_runtime = runtime;
    return intent_of(node, &policy);
  };
  for (const auto* runtime : {"containerd://2.0.0", "containerd://2.4.2", "containerd://3.0.0-rc.1"}) {
    const auto is = judge(runtime, "vgpu");
    EXPECT_EQ(is.reason, "UnsuitableRuntime") << runtime;
    EXPECT_EQ(is.message.key, "intent.runtime");
    EXPECT_EQ(judge(runtime, "hami").type, kind::mode) << runtime;
  }
  EXPECT_EQ(text_of(judge("containerd://2.4.2", "vgpu")),
            words::english("intent.runtime", {{"mode", "vgpu"}, {"below", "2.0"}, {"version", "2.4.2"}}));
  for (const auto* runtime : {"", "containerd://1.7.27", "docker://24.0.7", "cri-o://1.30.0", "containerd://unknown"})
    EXPECT_EQ(judge(runtime, "vgpu").type, kind::mode) << runtime;
  auto by_default = node_with({{"nvidia.com/gpu.present", "true"}});
  by_default.container_runtime = "containerd://2.4.2";
  policy.enrolment.default_mode = "vgpu";
  EXPECT_EQ(intent_of(by_default, &policy).type, kind::none) << "no one asked: nothing to refuse";
  policy.modules["vgpu"].image = "example.com/gpu-manager:cri-v1";
  EXPECT_EQ(judge("containerd://2.4.2", "vgpu").type, kind::mode) << "another build may speak CRI v1";
}

TEST(intent, a_plugin_that_follows_placements_needs_a_runtime_with_CDI) {
  auto policy = all_on();
  const auto judge = [&](const char* runtime, const char* set = "") {
    auto node = node_with({{"nvidia-device-enable", "pgpu"}, {"quartermaster.io/node-set", set}});
    node.container_runtime = runtime;
    return intent_of(node, &policy);
  };
  EXPECT_EQ(judge("containerd://1.7.27").type, kind::mode) << "NVIDIA's plugin needs none";
  policy.modules["pgpu"].settings["plugin"] = "quartermaster";
  for (const auto* runtime : {"containerd://1.7.27", "containerd://1.6.0", "docker://27.0.1"}) {
    const auto is = judge(runtime);
    EXPECT_EQ(is.reason, "UnsuitableRuntime") << runtime;
    EXPECT_EQ(text_of(is), words::english("intent.no_cdi", {{"mode", "pgpu"}, {"runtime", runtime}}));
  }
  for (const auto* runtime : {"", "containerd://2.0.0", "containerd://2.4.2", "cri-o://1.30.0", "containerd://unknown"})
    EXPECT_EQ(judge(runtime).type, kind::mode) << runtime;
  policy.modules["pgpu"].node_sets = {{.name = "old", .settings = {{"plugin", "nvidia"}}}};
  EXPECT_EQ(judge("containerd://1.7.27").reason, "UnsuitableRuntime");
  EXPECT_EQ(judge("containerd://1.7.27", "old").type, kind::mode);
}

TEST(intent, vgpu_by_our_own_plugin_goes_where_gpu_manager_does_not) {
  auto policy = all_on();
  const auto judge = [&](const char* runtime) {
    auto node = node_with({{"nvidia-device-enable", "vgpu"}});
    node.container_runtime = runtime;
    return intent_of(node, &policy);
  };
  EXPECT_EQ(judge("containerd://2.1.0").reason, "UnsuitableRuntime");
  EXPECT_EQ(judge("containerd://1.7.27").type, kind::mode);
  policy.modules["vgpu"].settings["plugin"] = "quartermaster";
  EXPECT_EQ(judge("containerd://2.1.0").type, kind::mode);
  EXPECT_EQ(text_of(judge("containerd://1.7.27")),
            words::english("intent.no_cdi", {{"mode", "vgpu"}, {"runtime", "containerd://1.7.27"}}));
}

TEST(intent, ACKs_labels_for_shares_that_hold_are_granted_where_MPS_holds_them) {
  auto policy = all_on();
  const auto judge = [&](const char* value, const char* set = "") {
    return intent_of(node_with({{"ack.node.gpu.schedule", value}, {"quartermaster.io/node-set", set}}), &policy);
  };
  policy.modules["gpushare"].settings["mps"] = "true";
  EXPECT_EQ(judge("core_mem").reason, "NotOffered") << "no one keeps the limits of that server";
  policy.modules["gpushare"].settings = {{"plugin", "quartermaster"}};
  for (const auto* value : {"cgpu", "core_mem", "share"}) {
    EXPECT_EQ(judge(value).type, kind::mode) << value;
    EXPECT_EQ(judge(value).requested, "gpushare");
  }
  EXPECT_EQ(judge("mig").reason, "NotOffered");
  policy.modules["gpushare"].node_sets = {{.name = "old", .settings = {{"plugin", "gpushare"}}}};
  EXPECT_EQ(judge("core_mem", "old").reason, "NotOffered");
  policy.modules["gpushare"].enabled = false;
  EXPECT_EQ(judge("core_mem").type, kind::left_alone);
}

TEST(intent, S19_mps_needs_volta_and_a_driver_for_cuda_11_5) {
  const auto mps_on = [](const char* major, const char* minor, const char* cuda, const char* cuda_minor) {
    return asked({{"nvidia-device-enable", "mps"},
                  {"nvidia.com/gpu.compute.major", major},
                  {"nvidia.com/gpu.compute.minor", minor},
                  {"nvidia.com/cuda.runtime-version.major", cuda},
                  {"nvidia.com/cuda.runtime-version.minor", cuda_minor}});
  };
  EXPECT_EQ(mps_on("6", "1", "12", "4").reason, "UnsuitableCards");  // P4
  EXPECT_EQ(mps_on("7", "0", "12", "4").type, kind::mode);           // V100
  EXPECT_EQ(mps_on("7", "5", "11", "5").type, kind::mode);           // T4
  EXPECT_EQ(mps_on("8", "0", "13", "0").type, kind::mode);           // A100
  const auto intent = mps_on("7", "0", "11", "4");
  const auto refused = text_of(intent);
  EXPECT_EQ(intent.message.key, "intent.unsuitable");
  EXPECT_TRUE(refused.contains(words::english("preflight.cuda.title"))) << refused;
  EXPECT_TRUE(refused.contains("11.4") && refused.contains("11.5")) << refused;
  EXPECT_EQ(mps_on("", "x", "-1", "99999999999").type, kind::mode) << "labels that are no numbers say nothing";
}

TEST(intent, S15_S20_shares_are_not_cut_from_mig_cards) {
  for (const auto* mode : {"vgpu", "mps"})
    EXPECT_EQ(asked({{"nvidia-device-enable", mode}, {"nvidia.com/mig.strategy", "single"}}).reason, "UnsuitableCards");
  EXPECT_EQ(asked({{"nvidia-device-enable", "pgpu"}, {"nvidia.com/mig.strategy", "mixed"}}).type, kind::mode);
  EXPECT_EQ(asked({{"nvidia-device-enable", "vgpu"}, {"nvidia.com/mig.strategy", "none"}}).type, kind::mode);
  EXPECT_EQ(asked({{"nvidia-device-enable", "vgpu"},
                   {"nvidia.com/mig.capable", "false"},
                   {"nvidia.com/mig.strategy", "single"}})
                .type,
            kind::mode)
      << "the GPU Operator's strategy, and cards that cannot be cut";
}

TEST(intent, S74_two_device_plugins_on_one_node_are_refused) {
  auto policy = all_on();
  policy.modules["hami"].enabled = policy.modules["gpushare"].enabled = false;
  foreign_pods around;
  around.here = {{"hami/x", "hami/hami-device-plugin", "HAMi"}, {"a/y", "a/gpushare-device-plugin-ds", "gpushare"}};
  for (const auto& [key, value] : {std::pair{"gpu", "on"}, {"gpushare", "true"}, {"vgpu-manager", "device-plugin"}}) {
    const bool known_by_pods = std::string_view(key) != "vgpu-manager";
    const auto is = intent_of(node_with({{"nvidia-device-enable", "pgpu"}, {key, value}}), &policy, {},
                              known_by_pods ? around : foreign_pods());
    EXPECT_EQ(is.reason, "ForeignPlugin") << key;
    if (known_by_pods)
      EXPECT_THAT(text_of(is), HasSubstr(key));
    else
      EXPECT_THAT(text_of(is), HasSubstr(words::english("intent.plugin.vgpu_manager")));
    EXPECT_NE(asked({{key, value}}, policy).type, kind::mode) << "it is not our business";
  }
  EXPECT_EQ(text_of(asked({{"gpu", "on"}}, policy)),
            words::english("intent.left_alone_until", {{"label", "gpu=on"}, {"product", "HAMi"}, {"mode", "hami"}}));
}

TEST(intent, S74_a_private_label_gives_no_node_to_a_product_that_is_not_there) {
  auto policy = all_on();
  policy.modules["hami"].enabled = policy.modules["gpushare"].enabled = false;
  for (const auto& [key, value] : {std::pair{"gpu", "on"}, {"gpushare", "true"}}) {
    const auto is = asked({{"nvidia-device-enable", "vgpu"}, {key, value}}, policy);
    EXPECT_EQ(is.type, kind::mode) << key << ": " << text_of(is);
    EXPECT_EQ(is.requested, "vgpu");
  }
  EXPECT_EQ(asked({{"nvidia-device-enable", "vgpu"}, {"ack.node.gpu.schedule", "default"}},
                  [&] {
                    auto reduced = policy;
                    reduced.modules["pgpu"].enabled = false;
                    return reduced;
                  }())
                .reason,
            "ForeignPlugin")
      << "ACK's label is no one's private one";
}

kube::pod of_set(const char* name, const char* ns = "kube-system") {
  kube::pod out;
  out.key = {ns, std::string(name) + "-x7f2p"};
  out.owners = {{"DaemonSet", name, {}, true}};
  out.mounts_plugin_folder = true;
  return out;
}

node_intent beside(const kube::pod& pod, labels also = {}, const accelerator_policy& policy = all_on()) {
  also.emplace_back("nvidia-device-enable", "pgpu");
  const foreign_pods around{{foreign_pod_of(pod, "quartermaster")}, of_gpu_operator(pod)};
  return intent_of(node_with(also), &policy, {}, around);
}

TEST(intent, S74_knows_the_device_plugins_of_others_by_their_daemon_sets) {
  for (const auto* name : {"nvidia-device-plugin-daemonset", "nvdp-nvidia-device-plugin", "hami-device-plugin",
                           "gpushare-device-plugin-ds", "gpu-manager-daemonset", "nvidia-gpu-device-plugin-small-cos"})
    EXPECT_FALSE(foreign_product(of_set(name)).empty()) << name;
  for (const auto* name : {"gpu-feature-discovery", "nvdp-nvidia-device-plugin-mps-control-daemon",
                           "nvdp-nvidia-device-plugin-gpu-feature-discovery", "nvidia-driver-daemonset",
                           "nvidia-container-toolkit-daemonset", "nvidia-operator-validator", "rdma-shared-dp-ds",
                           "kube-sriov-device-plugin", "amdgpu-device-plugin-daemonset"})
    EXPECT_TRUE(foreign_product(of_set(name)).empty()) << name;
  EXPECT_EQ(foreign_product(of_set("gpu-manager-daemonset")), "GPU-Manager");
  EXPECT_EQ(foreign_product(of_set("vgpu-manager-device-plugin")), "vgpu-manager") << "another product";
  auto loose = of_set("x");
  loose.owners = {{"Job", "nvidia-device-plugin-validator", {}, true}};
  loose.key.name = "nvidia-device-plugin-x";
  EXPECT_TRUE(foreign_product(loose).empty()) << "a pod that happens to have the name";
  loose.mirror = true;
  EXPECT_FALSE(foreign_product(loose).empty()) << "static pods have no DaemonSet";
}

/// A user who may create DaemonSets may give them any name, and write any owner on a pod.
TEST(intent, S74_a_pod_that_cannot_register_with_the_kubelet_is_no_device_plugin) {
  auto pause = of_set("my-nvidia-device-plugin", "lab");
  pause.mounts_plugin_folder = false;
  EXPECT_TRUE(foreign_product(pause).empty());
  auto operators = of_set("nvidia-device-plugin-daemonset", "lab");
  EXPECT_TRUE(of_gpu_operator(operators));
  operators.mounts_plugin_folder = false;
  EXPECT_FALSE(of_gpu_operator(operators)) << "or every node with GPU Operator's label would be refused";
  auto owned = of_set("hami-device-plugin", "lab");
  owned.owners.front().controller = false;
  EXPECT_TRUE(foreign_product(owned).empty()) << "an owner that is no controller has not made the pod";
}

TEST(intent, S74_a_node_with_somebody_elses_plugin_is_refused_with_the_way_to_take_it_off) {
  const auto plain = beside(of_set("nvidia-device-plugin-daemonset"));
  EXPECT_EQ(plain.reason, "ForeignPlugin");
  EXPECT_EQ(
      text_of(plain),
      words::english(
          "intent.plugin.wrong",
          {{"finding",
            words::english("intent.plugin.daemon_set", {{"name", "kube-system/nvidia-device-plugin-daemonset"},
                                                        {"product", "NVIDIA's device plugin"}})},
           {"remedy", words::english("intent.plugin.daemon_set_remedy", {{"label", "quartermaster.io/taken-over"}})},
           {"more", ""},
           {"take_over", words::english("intent.plugin.take_over")}}));
  const auto managed = beside(of_set("nvidia-device-plugin-daemonset", "gpu-operator"),
                              {{"nvidia.com/gpu.deploy.device-plugin", "true"}});
  EXPECT_THAT(text_of(managed),
              HasSubstr(words::english("intent.plugin.switch_off",
                                       {{"node", "gpu-1"}, {"label", "nvidia.com/gpu.deploy.device-plugin"}})));
  EXPECT_THAT(text_of(beside(of_set("gpushare-device-plugin-ds", "quartermaster"))),
              HasSubstr(words::english("intent.plugin.ours_by_name_remedy")));
  const auto ascend = accelerator_policy::decode(R"({"metadata":{"name":"default"},"spec":{"modules":{"ascend":
    {"enabled":true,"image":"x","device":{"resources":[{"name":"huawei.com/Ascend910"}]}}}}})");
  const foreign_pods around{{foreign_pod_of(of_set("hami-device-plugin"), "quartermaster")}, false};
  EXPECT_EQ(intent_of(node_with({{"quartermaster.io/mode", "ascend"}}), &*ascend, {}, around).type, kind::mode)
      << "cards of another vendor";
}

TEST(intent, S74_gpu_operator_with_driver_and_toolkit_only_is_fine) {
  const auto policy = all_on();
  const auto judge = [&](const char* value, bool plugin_somewhere) {
    const foreign_pods around{{}, plugin_somewhere};
    return intent_of(node_with({{"nvidia-device-enable", "pgpu"},
                                {"nvidia.com/gpu.deploy.driver", "true"},
                                {"nvidia.com/gpu.deploy.container-toolkit", "true"},
                                {"nvidia.com/gpu.deploy.device-plugin", value}}),
                     &policy, {}, around);
  };
  EXPECT_EQ(judge("true", false).type, kind::mode) << "it sets the label on every node, also without a device plugin";
  EXPECT_EQ(judge("true", true).reason, "ForeignPlugin") << "its plugin is about to come here";
  EXPECT_EQ(judge("paused-for-mig-change", true).reason, "ForeignPlugin") << "its plugin will be back";
  EXPECT_EQ(judge("false", true).type, kind::mode);
}

TEST(intent, S74_the_policy_may_take_over) {
  auto policy = all_on();
  policy.enrolment.take_over = true;
  const auto is = beside(of_set("hami-device-plugin"), {}, policy);
  EXPECT_EQ(is.type, kind::mode);
  ASSERT_EQ(is.foreign.size(), 1u);
  EXPECT_THAT(words_of(is.foreign[0].finding, text::language::en), HasSubstr("kube-system/hami-device-plugin"));
  EXPECT_EQ(beside(of_set("hami-device-plugin"), {{"quartermaster.io/module", "pgpu"}}, policy).reason, "ForeignPlugin")
      << "it came later: nothing to take over";
  policy.enrolment.default_mode = "pgpu";
  const foreign_pods around{{foreign_pod_of(of_set("hami-device-plugin"), "quartermaster")}, false};
  EXPECT_EQ(intent_of(node_with({{"nvidia.com/gpu.present", "true"}}), &policy, {}, around).type, kind::none)
      << "no one asked for it on this node";
}

TEST(intent, S58_labels_of_other_products_ask_for_our_modes_where_these_are_on) {
  const std::tuple<const char*, const char*, const char*> table[] = {
      {"gpu", "on", "hami"},
      {"gpu", "ON", "hami"},
      {"gpushare", "true", "gpushare"},
      {"ack.node.gpu.schedule", "default", "pgpu"},
      {"ack.node.gpu.schedule", "topology", "pgpu"},
      {"ack.node.gpu.schedule", "share", "gpushare"},
      {"ack.node.gpu.schedule", "MPS", "mps"},
  };
  for (const auto& [key, value, mode] : table) {
    const auto is = asked({{key, value}});
    EXPECT_EQ(is.type, kind::mode) << key << "=" << value << ": " << text_of(is);
    EXPECT_EQ(is.requested, mode);
    auto disabled = all_on();
    disabled.modules[mode].enabled = false;
    EXPECT_EQ(asked({{key, value}}, disabled).type, kind::left_alone) << key << "=" << value;
  }
  for (const auto* value : {"cgpu", "core_mem", "mig"}) {
    const auto is = asked({{"ack.node.gpu.schedule", value}});
    EXPECT_EQ(is.type, kind::refused) << value;
    EXPECT_EQ(is.reason, "NotOffered") << value;
  }
  const auto typo = asked({{"ack.node.gpu.schedule", "shared"}});
  EXPECT_EQ(typo.reason, "UnknownMode");
  EXPECT_EQ(typo.message.key, "intent.label_unknown_with_hint");
  EXPECT_THAT(text_of(typo), HasSubstr("share"));
  EXPECT_EQ(asked({{"gpu", "off"}}).type, kind::none) << "a word of their own";
  EXPECT_EQ(asked({{"gpu", "on"}, {"nvidia-device-enable", "pgpu"}}).reason, "ConflictingLabels");
  EXPECT_EQ(asked({{"gpu", "on"}, {"nvidia-device-enable", "hami"}}).requested, "hami");
}

TEST(intent, device_configurations_name_labels_that_ask) {
  const std::vector<label_alias> declared{{"gpu", "on", "vgpu"}, {"cards", "yes", "pgpu"}};
  const auto policy = all_on();
  EXPECT_EQ(intent_of(node_with({{"cards", "Yes"}}), &policy, declared).requested, "pgpu");
  EXPECT_EQ(intent_of(node_with({{"gpu", "on"}}), &policy, declared).requested, "vgpu")
      << "what a person declares goes before what we know of a product";
  const std::vector<label_alias> known{{"nvidia-device-enable", "pgpu", "pgpu"}};
  EXPECT_EQ(intent_of(node_with({{"nvidia-device-enable", "pgpu"}, {"quartermaster.io/mode", "mps"}}), &policy, known)
                .message.key,
            "intent.labels_disagree")
      << "one that says what we know changes nothing";
}

/// HAMi's published configuration (cf-crl-hami-config) declares gpu=on for HAMi.
TEST(intent, S74_a_declared_label_of_a_product_asks_only_while_its_module_is_on) {
  const std::vector<label_alias> declared{{"gpu", "on", "hami"}};
  auto policy = all_on();
  const auto node = node_with({{"gpu", "on"}, {"nvidia-device-enable", "vgpu"}});
  EXPECT_EQ(intent_of(node, &policy, declared).reason, "ConflictingLabels");
  policy.modules["hami"].enabled = false;
  EXPECT_EQ(intent_of(node, &policy, declared).requested, "vgpu");
  EXPECT_EQ(intent_of(node, &policy, declared).type, kind::mode);
}

TEST(intent, aliases_of_the_policy_ask_as_the_labels_do) {
  auto policy = all_on();
  policy.enrolment.aliases = {
      {"ack.node.gpu.schedule", "cgpu", "vgpu"}, {"team/cards", "OFF", "none"}, {"new", "x", "warp"}};
  EXPECT_EQ(asked({{"ack.node.gpu.schedule", "CGPU"}}, policy).requested, "vgpu");
  EXPECT_EQ(asked({{"ack.node.gpu.schedule", "topology"}}, policy).requested, "pgpu")
      << "the policy says nothing of it";
  EXPECT_EQ(asked({{"team/cards", "off"}}, policy).type, kind::none);
  EXPECT_EQ(asked({{"ack.node.gpu.schedule", "cgpu"}, {"nvidia-device-enable", "pgpu"}}, policy).reason,
            "ConflictingLabels");
  EXPECT_EQ(asked({{"new", "x"}}, policy).reason, "UnknownMode");
}

TEST(intent, S59_the_default_mode_is_for_nodes_with_cards_and_without_a_label) {
  auto policy = all_on();
  policy.enrolment.default_mode = "pgpu";
  EXPECT_EQ(asked({{"nvidia.com/gpu.present", "true"}}, policy).requested, "pgpu");
  EXPECT_EQ(asked({{"feature.node.kubernetes.io/pci-10de.present", "true"}}, policy).requested, "pgpu");
  EXPECT_EQ(asked({{"nvidia.com/gpu.present", "false"}}, policy).type, kind::none);
  EXPECT_EQ(asked({}, policy).type, kind::none);
  EXPECT_EQ(asked({{"nvidia.com/gpu.present", "true"}, {"quartermaster.io/mode", "none"}}, policy).type, kind::none);
  policy.modules["hami"].enabled = false;
  EXPECT_EQ(asked({{"nvidia.com/gpu.present", "true"}, {"gpu", "on"}}, policy).type, kind::left_alone)
      << "no one asked: nothing to refuse";
  policy.modules["pgpu"].enabled = false;
  EXPECT_EQ(asked({{"nvidia.com/gpu.present", "true"}}, policy).type, kind::none);
}

TEST(intent, S27_a_module_of_the_policys_own_is_asked_for_by_its_name_or_its_label) {
  const auto policy = accelerator_policy::decode(R"({"metadata":{"name":"default"},"spec":{"modules":{"ascend":
    {"enabled":true,"image":"x","device":{"resources":[{"name":"huawei.com/Ascend910"}],"architectures":["arm64"],
     "nodeLabel":{"key":"ascend","value":"on"}}}}}})");
  ASSERT_TRUE(policy);
  for (const auto& [key, value] : std::map<std::string, std::string>{
           {"nvidia-device-enable", "Ascend"}, {"quartermaster.io/mode", "ascend"}, {"ascend", "on"}}) {
    const auto is = intent_of(node_with({{key, value}}, "linux", "arm64"), &*policy);
    ASSERT_EQ(is.type, kind::mode) << key << ": " << text_of(is);
    EXPECT_EQ(is.mode->name, "ascend");
    EXPECT_EQ(is.mode->resources[0], "huawei.com/Ascend910");
  }
  EXPECT_EQ(intent_of(node_with({{"ascend", "on"}}, "linux", "amd64"), &*policy).reason, "UnsuitableNode");
  EXPECT_EQ(intent_of(node_with({{"quartermaster.io/mode", "ascend"}}), nullptr).reason, "UnknownMode");
}

TEST(intent, S74_an_alias_makes_the_label_of_another_product_ours) {
  const auto make_policy = [](const char* aliases) {
    return *accelerator_policy::decode(
        std::string(R"({"metadata":{"name":"default"},"spec":{"modules":{"hami":{"enabled":
      true}},"enrolment":{"labelAliases":)") +
        aliases + "}}}");
  };
  const auto node = node_with({{"gpu", "on"}, {"quartermaster.io/mode", "hami"}});
  const auto plain = make_policy("[]"), aliased = make_policy(R"([{"key":"gpu","value":"on","mode":"hami"}])");
  EXPECT_EQ(intent_of(node, &plain).type, kind::mode);
  EXPECT_EQ(intent_of(node, &aliased).type, kind::mode);
}

}  // namespace
}  // namespace reconcilers
