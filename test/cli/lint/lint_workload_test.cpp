#include "cli/lint/lint_workload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/lint/whole_quantity.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "test/english.hpp"
#include "test/facts_in.hpp"
#include "test/words.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;
using words::english;

std::vector<lint_finding> findings(const std::string& text, text::language locale = text::language::en,
                                   const known_cluster* known = nullptr) {
  static std::vector<text::yaml::source> kept;
  auto file = text::yaml::read("f", text);
  EXPECT_TRUE(file) << file.error();
  kept.push_back(std::move(*file));
  std::vector<lint_finding> out;
  for (const auto& entry : manifests_in(kept.back())) {
    lint_workload(entry, pod_forms_of(entry), {}, locale, out, known);
  }
  // The objects here are sketches; what they lack is judged in test/golden/lint/cases.txt.
  std::erase_if(out, [](const lint_finding& finding) { return finding.code == "field_missing"; });
  return out;
}
std::vector<std::string> codes(const std::vector<lint_finding>& all) {
  std::vector<std::string> out;
  for (const auto& f : all) out.push_back(f.code);
  return out;
}

std::string pod(const std::string& limit, const std::string& request, const std::string& key = "nvidia.com/gpu") {
  const auto part = [&](const std::string& name, const std::string& value) {
    return value.empty() ? "" : "      " + name + ":\n        " + key + ": " + value + "\n";
  };
  return "kind: Pod\nmetadata:\n  name: a\nspec:\n  containers:\n  - name: main\n    resources:\n" +
         part("limits", limit) + part("requests", request);
}

struct row {
  std::string_view name;
  std::string limit, request, code;
};
void PrintTo(const row& row, std::ostream* out) { *out << row.name; }
class extended_resource : public testing::TestWithParam<row> {};

TEST_P(extended_resource, is_held_to_kubernetes_own_rule) {
  const auto& want = GetParam();
  const auto got = findings(pod(want.limit, want.request));
  const auto expected = want.code.empty() ? std::vector<std::string>() : std::vector<std::string>{want.code};
  EXPECT_EQ(codes(got), expected);
  for (const auto& f : got) {
    EXPECT_THAT(f.message, HasSubstr(f.field));
    EXPECT_EQ(f.level, text::severity::error);
  }
  const auto plain = findings(pod(want.limit, want.request, "cpu"));
  const bool is_above = want.name == "request_above" || want.name == "fraction_in_both";
  const std::string_view of_plain = want.code == "amount_malformed" ? "wrong_form"
                                    : is_above                      ? "request_above_limit"
                                                                    : "";
  EXPECT_EQ(codes(plain),
            of_plain.empty() ? std::vector<std::string>() : std::vector<std::string>{std::string(of_plain)})
      << "cpu may be requested, split and oversold, up to its limit";
}

INSTANTIATE_TEST_SUITE_P(
    S72, extended_resource,
    testing::Values(
        row{"limits_only", "1", "", ""}, row{"both_equal", "2", "2", ""}, row{"text", "\"1\"", "", ""},
        row{"equal_as_text_and_number", "\"2\"", "2", ""}, row{"none", "0", "", ""},
        row{"whole_in_milli", "2000m", "2", ""}, row{"thousands", "1k", "1000", ""},
        row{"whole_with_a_point", "\"1.0\"", "1", ""}, row{"hexadecimal", "0x10", "16", ""},
        row{"blanks_around", "\" 1 \"", "1", ""}, row{"a_blank_within", "\"1 0\"", "", "amount_malformed"},
        row{"a_tab_before", "\"\\t1\"", "", "amount_malformed"}, row{"blanks_alone", "\" \"", "", "amount_malformed"},
        row{"more_than_can_be_counted", "\"99999999999999999999999\"", "", "amount_too_large"},
        row{"an_exbibyte", "1Ei", "", "amount_too_large"}, row{"fraction", "0.5", "", "amount_fraction"},
        row{"fraction_as_text", "\"0.5\"", "", "amount_fraction"},
        row{"fraction_in_milli", "500m", "", "amount_fraction"},
        row{"more_than_one_and_a_fraction", "1.5", "", "amount_fraction"},
        row{"fraction_in_both", "\"0.5\"", "1", "amount_fraction"}, row{"negative", "-1", "", "amount_negative"},
        row{"a_word", "one", "", "amount_malformed"}, row{"with_a_unit_of_ours", "1card", "", "amount_malformed"},
        row{"a_boolean", "on", "", "amount_malformed"}, row{"empty_text", "\"\"", "", "amount_malformed"},
        row{"a_list", "[1]", "", "amount_malformed"}, row{"request_alone", "", "1", "request_without_limit"},
        row{"request_below", "2", "1", "request_differs"}, row{"request_above", "1", "2", "request_differs"},
        row{"request_none", "1", "0", "request_differs"},
        row{"fraction_in_request", "1", "\"0.5\"", "amount_fraction"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(lint_workload, a_part_of_a_share_is_answered_in_hundredths) {
  const auto answer = [](const std::string& amount, const std::string& key) {
    const auto all = findings(pod(amount, "", key));
    return all.empty() ? std::string() : all[0].code + " " + all[0].remedy;
  };
  const auto write = [](const std::string& hint) {
    return "amount_fraction_of_share " + english("lint.amount_fraction_of_share.remedy", {{"hint", hint}});
  };
  EXPECT_EQ(answer("0.5", "tencent.com/vcuda-core"), write("50"));
  EXPECT_EQ(answer("\"0.3\"", "nvidia.com/gpucores"), write("30"));
  EXPECT_EQ(answer("0.25", "nvidia.com/gpumem-percentage"), write("25"));
  EXPECT_THAT(answer("1.5", "nvidia.com/gpucores"), testing::StartsWith("amount_fraction "));
  EXPECT_THAT(answer("500m", "nvidia.com/gpucores"), testing::StartsWith("amount_fraction "));
  EXPECT_THAT(answer("0.5", "nvidia.com/gpumem"), testing::StartsWith("amount_fraction "));
  EXPECT_THAT(answer("0.5", "nvidia.com/gpu"), testing::StartsWith("amount_fraction "));
  EXPECT_THAT(answer("0.5", "nvidia.com/priority"), testing::StartsWith("amount_fraction ")) << "0 or 1";
  EXPECT_EQ(answer("0.5", "tke.cloud.tencent.com/qgpu-core"), write("50"));
}

TEST(lint_workload, a_percentage_of_hundredths_of_a_card_is_answered_with_the_number) {
  const auto remedy = [](const std::string& key) {
    const auto all = findings(pod("\"30%\"", "", key));
    return all.empty() ? std::string() : all[0].code + " " + all[0].remedy;
  };
  const auto write = "amount_malformed " + english("lint.amount_malformed.remedy_with_hint", {{"hint", "30"}});
  for (const auto* key : {"nvidia.com/gpucores", "nvidia.com/gpumem-percentage", "tencent.com/vcuda-core"})
    EXPECT_EQ(remedy(key), write) << key;
  EXPECT_NE(remedy("nvidia.com/gpu"), write);
  EXPECT_NE(remedy("nvidia.com/gpumem"), write);
}

TEST(lint_workload, a_key_with_nothing_behind_it_is_a_warning) {
  for (const auto* nothing : {" ", "null", "~"}) {
    const auto all = findings(pod(nothing, ""));
    ASSERT_THAT(codes(all), ElementsAre("amount_missing")) << nothing;
    EXPECT_EQ(all[0].level, text::severity::warning) << "the API server takes it for 0";
  }
  EXPECT_THAT(codes(findings(pod("0", ""))), IsEmpty());
}

/// Code and remedy of the finding about the unit; empty: there is none.
std::string unit_answer(const std::string& limits) {
  const auto all =
      findings("kind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: main\n    resources: {limits: {" +
               limits + "}}\n");
  for (const auto& finding : all)
    if (finding.code == "amount_of_larger_unit" || finding.code == "amount_beyond_cards")
      return finding.code + " " + finding.remedy;
  return {};
}

TEST(lint_workload, an_amount_of_another_unit_is_answered_with_the_number) {
  const auto larger = [](const std::string& value, const std::string& hint) {
    return "amount_of_larger_unit " +
           english("lint.amount_of_larger_unit.remedy_with_hint", {{"value", value}, {"hint", hint}});
  };
  const auto beyond = [](const std::string& hint) {
    return "amount_beyond_cards " + english("lint.amount_beyond_cards.remedy_with_hint", {{"hint", hint}});
  };
  EXPECT_EQ(unit_answer("nvidia.com/gpualloc: 1, nvidia.com/gpumem: 4"), larger("4", "4096"));
  EXPECT_EQ(unit_answer("nvidia.com/gpualloc: 1, nvidia.com/gpumem: 80"), larger("80", "81920"));
  EXPECT_EQ(unit_answer("tencent.com/vcuda-core: 50, tencent.com/vcuda-memory: 8192"), beyond("32"));
  for (const auto* fine :
       {"nvidia.com/gpualloc: 1, nvidia.com/gpumem: 256", "nvidia.com/gpualloc: 1, nvidia.com/gpumem: 81920",
        "tencent.com/vcuda-core: 50, tencent.com/vcuda-memory: 1",
        "tencent.com/vcuda-core: 50, tencent.com/vcuda-memory: 576",     // 144 GiB
        "tencent.com/vcuda-core: 1600, tencent.com/vcuda-memory: 8192",  // 16 cards of 128 GiB
        "aliyun.com/gpu-mem: 640", "nvidia.com/mps-core: 50, nvidia.com/mps-memory: 4"})
    EXPECT_EQ(unit_answer(fine), "") << fine;
}

/// Of a container with a share of a card, and these lines of it and of its pod.
std::vector<std::string> around_share(const std::string& container, const std::string& spec = "", bool has_uid = false,
                                      const std::string& keys = "nvidia.com/gpualloc: 1, nvidia.com/gpumem: 4096") {
  return codes(findings("apiVersion: v1\nkind: Pod\nmetadata: {name: a" + std::string(has_uid ? ", uid: u" : "") +
                        "}\nspec:\n" + spec + "  containers:\n  - name: main\n    image: i\n" + container +
                        "    resources: {limits: {" + keys + "}}\n"));
}

TEST(lint_workload, what_passes_by_the_limits_of_a_share_is_a_warning) {
  EXPECT_THAT(around_share(""), IsEmpty());
  EXPECT_THAT(around_share("    securityContext: {privileged: true}\n"), ElementsAre("privileged_container"));
  EXPECT_THAT(around_share("    securityContext: {privileged: false}\n"), IsEmpty());
  EXPECT_THAT(around_share("    securityContext: {privileged: true}\n", "", false, "cpu: 1"), IsEmpty());
  const auto variable = [](const std::string& value) {
    return "    env: [{name: CUDA_DISABLE_CONTROL, value: \"" + value + "\"}]\n";
  };
  for (const auto* yes : {"true", "1", "T"})
    EXPECT_THAT(around_share(variable(yes)), ElementsAre("limits_disabled")) << yes;
  for (const auto* no : {"false", "yes", "0"}) EXPECT_THAT(around_share(variable(no)), IsEmpty()) << no;
  EXPECT_THAT(around_share(variable("true"), "", false, "nvidia.com/gpu: 1"), IsEmpty())
      << "a whole card has no limits";
}

TEST(lint_workload, a_pod_that_names_its_node_passes_by_the_scheduler) {
  EXPECT_THAT(around_share("", "  nodeName: gpu-1\n"), ElementsAre("node_named"));
  EXPECT_THAT(around_share("", "  nodeName: gpu-1\n", true), IsEmpty()) << "as kubectl prints a pod that was bound";
  EXPECT_THAT(around_share("", "  nodeName: gpu-1\n", false, "cpu: 1"), IsEmpty());
}

TEST(lint_workload, the_policy_of_a_template_is_held_to_its_kind) {
  const auto answer = [](const std::string& kind, const std::string& policy) {
    const auto line = policy.empty() ? "" : "      restartPolicy: " + policy + "\n";
    const auto selector = kind.ends_with("Job")          ? ""
                          : kind.ends_with("Controller") ? "  selector: {a: b}\n"
                                                         : "  selector: {matchLabels: {a: b}}\n";
    return codes(findings("apiVersion: " + kind + "\nmetadata: {name: a}\nspec:\n" + selector +
                          "  template:\n    metadata: {labels: {a: b}}\n    spec:\n" + line +
                          "      containers:\n      - {name: c, image: i}\n"));
  };
  for (const auto* job : {"batch/v1\nkind: Job"}) {
    EXPECT_THAT(answer(job, ""), ElementsAre("restart_policy_missing"));
    EXPECT_THAT(answer(job, "Always"), ElementsAre("restart_policy"));
    EXPECT_THAT(answer(job, "Never"), IsEmpty());
    EXPECT_THAT(answer(job, "OnFailure"), IsEmpty());
    EXPECT_THAT(answer(job, "Newer"), ElementsAre("value_unknown"));
  }
  for (const auto* lasting :
       {"apps/v1\nkind: Deployment", "apps/v1\nkind: StatefulSet", "v1\nkind: ReplicationController"}) {
    EXPECT_THAT(answer(lasting, ""), IsEmpty()) << lasting;
    EXPECT_THAT(answer(lasting, "Always"), IsEmpty()) << lasting;
    EXPECT_THAT(answer(lasting, "Never"), ElementsAre("restart_policy")) << lasting;
  }
  EXPECT_THAT(answer("batch.volcano.sh/v1alpha1\nkind: Job", ""), IsEmpty()) << "another kind of that name";
}

TEST(lint_workload, an_amount_of_memory_in_KiB_is_answered_in_its_unit) {
  const auto all = findings(pod("16384000", "", "nvidia.com/gpumem"));
  ASSERT_FALSE(all.empty());
  const auto hinted = std::ranges::find(all, "amount_beyond_cards", &lint_finding::code);
  ASSERT_NE(hinted, all.end());
  EXPECT_THAT(hinted->remedy, HasSubstr("16000"));
}

TEST(lint_workload, what_the_server_takes_and_no_node_has_is_a_warning) {
  for (const auto* amount : {"1000000001", "9223372036854775808", "1Gi", "\"1e30\""}) {
    const auto all = findings(pod(amount, ""));
    EXPECT_THAT(codes(all), ElementsAre("amount_beyond_nodes")) << amount;
    if (!all.empty()) EXPECT_EQ(all[0].level, text::severity::warning) << amount;
  }
  EXPECT_THAT(codes(findings(pod("1000000000", ""))), IsEmpty());
  EXPECT_THAT(codes(findings(pod("99999999999999", "", "nvidia.com/gpumem"))),
              testing::Contains("amount_beyond_cards"));
}

TEST(lint_workload, S72_says_it_in_words) {
  const auto all = findings(pod("2", "1"));
  ASSERT_EQ(all.size(), 1U);
  const std::string code = "lint.request_differs.";
  const std::initializer_list<text::parameter> parameters{
      {"field", "spec.containers[0].resources.requests[nvidia.com/gpu]"},
      {"value", "1"},
      {"other", "2"},
      {"key", "nvidia.com/gpu"}};
  EXPECT_EQ(all[0].message, text::message_of(english(code + "wrong", parameters), english(code + "allowed"),
                                             english(code + "remedy"), text::language::en));
  EXPECT_EQ(all[0].location, (text::yaml::place{11, 9}));
  EXPECT_THAT(findings(pod("2", "1"), text::language::zh).at(0).message,
              testing::StartsWith(words::chinese(code + "wrong", parameters)));
  const auto fraction = findings(pod("500m", ""));
  EXPECT_EQ(fraction.at(0).location, (text::yaml::place{9, 9}));
  EXPECT_EQ(fraction.at(0).code, "amount_fraction");
}

TEST(lint_workload, S72_names_that_are_no_resource) {
  EXPECT_THAT(codes(findings(pod("1", "", "gpu"))), ElementsAre("resource_name"));
  EXPECT_THAT(codes(findings(pod("1", "", "NVIDIA.com/gpu"))), ElementsAre("resource_name"));
  EXPECT_THAT(codes(findings(pod("1", "", "nvidia.com/gpu/0"))), ElementsAre("resource_name"));
  EXPECT_THAT(codes(findings(pod("1", "", "hugepages-2Mi"))), IsEmpty());
  EXPECT_THAT(codes(findings(pod("1", "", "kubernetes.io/batch-cpu"))), IsEmpty());
}

TEST(lint_workload, names_that_no_node_offers_and_nobody_declares) {
  const known_cluster cluster{{{"nvidia.com/gpu", "rdma/hca"}, {"example.com/fpga"}}, {}};
  const auto got = findings(pod("1", "1", "nvidia.com/gpus"), text::language::en, &cluster);
  ASSERT_THAT(codes(got), ElementsAre("unknown_resource"));
  EXPECT_EQ(got[0].level, text::severity::warning);
  EXPECT_EQ(got[0].remedy, english("lint.unknown_resource.remedy_with_hint", {{"hint", "nvidia.com/gpu"}}));
  for (const auto* key : {"nvidia.com/gpu", "rdma/hca", "example.com/fpga"})
    EXPECT_THAT(findings(pod("1", "", key), text::language::en, &cluster), IsEmpty()) << key;
  EXPECT_THAT(codes(findings(pod("4000", "", "nvidia.com/gpumem"), text::language::en, &cluster)),
              ElementsAre("count_missing"))
      << "no node offers it, and it is known";
  EXPECT_THAT(findings(pod("1", "", "nvidia.com/mig-1g.5gb")), IsEmpty()) << "without a cluster no one knows";
  const auto alone = findings(pod("1", "", "nvidia.com/gpus"));
  ASSERT_THAT(codes(alone), ElementsAre("unfamiliar_resource"));
  EXPECT_EQ(alone[0].remedy, english("lint.unfamiliar_resource.remedy_with_hint", {{"hint", "nvidia.com/gpu"}}));
}

TEST(lint_workload, a_key_whose_declaration_was_refused_is_answered_with_it) {
  known_cluster cluster{{{"nvidia.com/gpu"}, {}}, {}};
  const std::vector<reconcilers::declarations::refused_declaration> refused{
      {{"kube-public", "cf-crl-x"}, "example.com/fpga", "one reason", "其一"}};
  cluster.resources.add_refused(refused);
  const auto got = findings(pod("1", "1", "example.com/fpga"), text::language::zh, &cluster);
  ASSERT_THAT(codes(got), ElementsAre("declaration_refused"));
  EXPECT_THAT(got[0].message, HasSubstr("kube-public/cf-crl-x"));
  EXPECT_THAT(got[0].message, HasSubstr("其一"));
  EXPECT_THAT(codes(findings(pod("1", "1", "example.com/dsp"), text::language::en, &cluster)),
              ElementsAre("unknown_resource"));
}

/// As simulate and explain pod say it.
TEST(lint_workload, a_key_of_a_module_that_is_off_or_on_no_node_is_named) {
  reconcilers::accelerator_policy policy;
  known_cluster cluster{{{"nvidia.com/gpu"}, {}}, {}};
  const auto other = [&](const char* key) {
    std::vector<std::string> out;
    cluster.modules = modules_of(&policy, cluster.nodes);
    for (const auto& finding : findings(pod("100", "", key), text::language::en, &cluster))
      if (finding.code == "unserved_resource") out.push_back(finding.message);
    return out;
  };
  const auto label = words::english("explain.unserved.label", {{"value", "vgpu"}});
  const auto disabled = other("tencent.com/vcuda-core");
  ASSERT_EQ(disabled.size(), 1U);
  EXPECT_THAT(disabled[0], HasSubstr(words::english("explain.unserved.off", {{"module", "vgpu"}, {"label", label}})));
  policy.modules["vgpu"].enabled = true;
  const auto unlabelled = other("tencent.com/vcuda-core");
  ASSERT_EQ(unlabelled.size(), 1U);
  EXPECT_NE(unlabelled[0], disabled[0]);
  EXPECT_THAT(other("nvidia.com/gpu"), IsEmpty()) << "a node offers it";
  cluster.modules.reset();
  EXPECT_THAT(codes(findings(pod("100", "", "tencent.com/vcuda-core"), text::language::en, &cluster)), IsEmpty())
      << "the policy was not seen";
}

std::string in_pod(const std::string& container) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - {name: m, image: x, " + container +
         "}\n";
}

TEST(lint_workload, fields_that_kubernetes_does_not_have) {
  struct row {
    std::string text, field, hint;
  };
  const std::string pod = "kind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: m, image: x}]\n";
  for (const auto& [text, field, hint] : std::vector<row>{
           {in_pod("resources: {limit: {nvidia.com/gpu: 1}}"), "spec.containers[0].resources.limit", "limits"},
           {in_pod("resources: {Limits: {nvidia.com/gpu: 1}}"), "spec.containers[0].resources.Limits", "limits"},
           {in_pod("resources: {nvidia.com/gpu: 1}"), "spec.containers[0].resources.nvidia.com/gpu",
            "limits[nvidia.com/gpu]"},
           {in_pod("resource: {}"), "spec.containers[0].resource", "resources"},
           {in_pod("limits: {nvidia.com/gpu: 1}"), "spec.containers[0].limits", "resources.limits"},
           {in_pod("nvidia.com/gpu: 1"), "spec.containers[0].nvidia.com/gpu", "resources.limits[nvidia.com/gpu]"},
           {pod + "  nodeselector: {}\n", "spec.nodeselector", "nodeSelector"},
           {pod + "  limits: {}\n", "spec.limits", "resources.limits of a container"},
           {pod + "Status: {}\n", "Status", "status"},
           {"kind: Pod\nmetadata: {name: a, annotation: {}}\nspec: {containers: [{name: m}]}\n", "metadata.annotation",
            "annotations"},
           {"kind: Deployment\nmetadata: {name: a}\nspec: {replica: 2, template: {spec: {containers: [{name: m}]}}}\n",
            "spec.replica", "replicas"},
           {"kind: Job\nmetadata: {name: a}\nspec: {template: {metdata: {}, spec: {containers: [{name: m}]}}}\n",
            "spec.template.metdata", "metadata"}}) {
    const auto got = findings(text);
    ASSERT_THAT(codes(got), ElementsAre("unknown_field")) << text;
    EXPECT_EQ(got[0].level, text::severity::error);
    EXPECT_EQ(got[0].field, field);
    EXPECT_EQ(got[0].remedy, english("lint.unknown_field.remedy_with_hint", {{"hint", hint}}));
  }
  EXPECT_THAT(findings("kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: m}], zzzzzzzzzz: 1}\n")[0].remedy,
              english("lint.unknown_field.remedy"));
}

TEST(lint_workload, places_where_kubernetes_takes_no_card) {
  EXPECT_THAT(
      codes(findings("kind: Pod\nmetadata: {name: a}\nspec:\n  resources: {limits: {cpu: 1, nvidia.com/gpu: 1}}\n"
                     "  containers: [{name: m}]\n")),
      ElementsAre("resources_of_pod"));
  EXPECT_THAT(codes(findings("kind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: m}]\n  ephemeralContainers: "
                             "[{name: d, resources: {limits: {cpu: 1}}}]\n")),
              ElementsAre("resources_of_ephemeral"));
}

TEST(lint_workload, bytes_where_a_unit_of_memory_counts) {
  const auto bytes_of = [](const std::string& number) {
    return "amount_in_bytes, " + english("lint.amount_in_bytes.remedy", {{"hint", number}});
  };
  const auto hint = [](const std::string& key, const std::string& amount) {
    const auto got = findings(pod(amount, "", key));
    return got.empty() ? "" : got[0].code + ", " + got[0].remedy;
  };
  EXPECT_EQ(hint("nvidia.com/gpumem", "4Gi"), bytes_of("4096"));
  EXPECT_EQ(hint("nvidia.com/gpumem", "4096Mi"), bytes_of("4096"));
  EXPECT_EQ(hint("nvidia.com/gpumem", "500M"), bytes_of("477"));
  EXPECT_EQ(hint("nvidia.com/gpumem", "1.5Gi"), bytes_of("1536"));
  EXPECT_EQ(hint("nvidia.com/gpumem", "\"2G\""), bytes_of("1908"));
  EXPECT_EQ(hint("tencent.com/vcuda-memory", "8Gi"), bytes_of("32"));
  EXPECT_EQ(hint("aliyun.com/gpu-mem", "8Gi"), bytes_of("8"));
  EXPECT_EQ(hint("nvidia.com/mps-memory", "512Mi"), bytes_of("1"));
  for (const auto* amount : {"4096", "8k", "16Ki", "1e4"})
    EXPECT_EQ(hint("volcano.sh/vgpu-memory", amount), "") << amount;
  EXPECT_EQ(hint("nvidia.com/gpu", "1M"), "") << "no memory";
}

TEST(lint_workload, variables_that_pass_by_what_is_asked_for) {
  const auto found = [](const std::string& variable, const std::string& limits) {
    return codes(findings(in_pod("env: [" + variable + "], resources: {limits: {" + limits + "}}")));
  };
  const std::string share = "tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 8";
  EXPECT_THAT(found("{name: NVIDIA_VISIBLE_DEVICES, value: all}", share), ElementsAre("visible_devices"));
  EXPECT_THAT(found("{name: NVIDIA_VISIBLE_DEVICES, value: all}", ""), ElementsAre("visible_devices"));
  EXPECT_THAT(found("{name: NVIDIA_VISIBLE_DEVICES, value: void}", ""), IsEmpty());
  EXPECT_THAT(found("{name: CUDA_VISIBLE_DEVICES, value: \"1\"}", share), ElementsAre("cuda_devices"));
  EXPECT_THAT(found("{name: CUDA_VISIBLE_DEVICES, value: \"0\"}", share), IsEmpty());
  EXPECT_THAT(found("{name: CUDA_VISIBLE_DEVICES, value: \"0,1\"}", "nvidia.com/gpu: 2"), IsEmpty());
  EXPECT_THAT(found("{name: CUDA_VISIBLE_DEVICES, value: \"0,2\"}", "nvidia.com/gpu: 2"), ElementsAre("cuda_devices"));
  EXPECT_THAT(found("{name: CUDA_VISIBLE_DEVICES, value: \"3\"}", ""), IsEmpty()) << "it has no card";
}

TEST(lint_workload, kinds_of_others_are_read_by_their_form) {
  const auto fraction = findings(
      "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec:\n  pytorchReplicaSpecs:\n    Worker:\n"
      "      replicas: 2\n      template:\n        spec:\n          containers: [{name: m, image: x, resources: "
      "{limits: "
      "{nvidia.com/gpu: 0.5}}}]\n");
  ASSERT_THAT(codes(fraction), ElementsAre("amount_fraction"));
  EXPECT_EQ(fraction[0].field,
            "spec.pytorchReplicaSpecs.Worker.template.spec.containers[0].resources.limits[nvidia.com/gpu]");
  EXPECT_THAT(codes(findings("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec:\n  tasks:\n"
                             "  - template: {spec: {containers: [{name: m, resource: {}}]}}\n")),
              ElementsAre("unknown_field"))
      << "no Job of Kubernetes, whose spec would be elsewhere";
  EXPECT_THAT(codes(findings(
                  "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService\nmetadata: {name: a}\nspec:\n"
                  "  predictor: {minReplicas: 1, model: {resources: {limits: {gpu: 1, nvidia.com/gpumem: 4Gi}}}}\n")),
              testing::UnorderedElementsAre("amount_not_judged", "amount_in_bytes"))
      << "names without a domain may mean anything there";
}

TEST(lint_workload, S33_S78_says_what_the_webhook_says_of_driver_and_card) {
  const auto deployment = [](const std::string& image, const std::string& env, const std::string& limit) {
    return findings(
        "kind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n      containers:\n"
        "      - {name: m, image: " +
        image + ", env: [" + env + "], resources: {limits: {" + limit + "}}}\n");
  };
  const auto paddle = deployment("paddle:2.6", "", "tencent.com/vcuda-core: 20");
  ASSERT_THAT(codes(paddle), ElementsAre("compatibility"));
  EXPECT_EQ(paddle[0].level, text::severity::warning);
  EXPECT_EQ(paddle[0].field, "spec.template.spec");
  EXPECT_THAT(paddle[0].message, HasSubstr("FLAGS_allocator_strategy=naive_best_fit"));
  EXPECT_THAT(deployment("paddle:2.6", "", "tencent.com/vcuda-core: 100"), IsEmpty()) << "a whole card";
  const std::string cuda = "{name: CUDA_VERSION, value: 13.1.0}";
  const auto share = deployment("torch", cuda, "tencent.com/vcuda-core: 20");
  ASSERT_THAT(codes(share), ElementsAre("compatibility"));
  EXPECT_THAT(share[0].message, words::has_in_order({"tencent.com/vcuda-core", "13.1"}));

  kube::node old;
  old.key.name = "old";
  old.labels = kube::packed_map::of({{"cuda-major-version", "12"}, {"cuda-minor-version", "4"}});
  old.allocatable = {{"nvidia.com/gpu", 8}};
  const known_cluster cluster{{{"nvidia.com/gpu"}, {}}, {&old}};
  const std::string pod = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: m, env: [" + cuda +
                          "], resources: {limits: {nvidia.com/gpu: 1}}}]}\n";
  const auto on_nodes = findings(pod, text::language::en, &cluster);
  ASSERT_THAT(codes(on_nodes), ElementsAre("compatibility"));
  EXPECT_THAT(on_nodes[0].message, words::has_in_order({"nvidia.com/gpu", "CUDA_VERSION", "13.1.0", "old"}));
  const auto chinese = findings(pod, text::language::zh, &cluster)[0].message;
  EXPECT_FALSE(words::has_english_sentence(chinese)) << chinese;
  EXPECT_THAT(findings(pod), IsEmpty()) << "without a cluster no one knows";
}

TEST(lint_workload, finds_the_pods_of_every_kind) {
  const std::string containers =
      "{initContainers: [{name: i, resources: {limits: {a.b/c: 0.5}}}], containers: [{name: m, resources: {requests: "
      "{a.b/c: "
      "1}}}]}";
  const auto check = [&](const std::string& kind, const std::string& before, const std::string& after) {
    return findings("kind: " + kind + "\nmetadata: {name: a}\n" + before + containers + after);
  };
  for (const auto* kind : {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"}) {
    const auto all = check(kind, "spec: {template: {spec: ", "}}");
    EXPECT_THAT(codes(all), ElementsAre("amount_fraction", "request_without_limit")) << kind;
    EXPECT_EQ(all.at(0).field, "spec.template.spec.initContainers[0].resources.limits[a.b/c]");
  }
  EXPECT_EQ(check("Pod", "spec: ", "").size(), 2U);
  EXPECT_EQ(check("CronJob", "spec: {jobTemplate: {spec: {template: {spec: ", "}}}}").size(), 2U);
}

TEST(lint_workload, says_what_is_no_pod_spec) {
  EXPECT_THAT(codes(findings("kind: Pod\nmetadata: {name: a}\n")), ElementsAre("spec_unreadable"));
  EXPECT_THAT(codes(findings("kind: Pod\nspec: {containers: {name: a}}\n")), ElementsAre("spec_unreadable"));
  EXPECT_THAT(codes(findings("kind: Pod\nspec: {containers: [{name: a, resources: {limits: [x]}}]}\n")),
              ElementsAre("spec_unreadable"));
  EXPECT_THAT(
      codes(findings("kind: Deployment\nspec: {template: {metadata: {labels: {a: true}}, spec: {nodeSelector: {gpu: "
                     "on}, containers: [{name: m}]}}}\n")),
      ElementsAre("not_a_string", "not_a_string"));
}

TEST(lint_workload, knows_whole_numbers) {
  for (const auto* text : {"0",
                           "1",
                           "+1",
                           "-1",
                           "0.0",
                           "1.0",
                           "1000m",
                           "1.5k",
                           "1e3",
                           "1.5e1",
                           "10e-1",
                           "1Ki",
                           "0.5Ki",
                           "0.125Ki",
                           "1E",
                           "1.000",
                           "000",
                           "5.",
                           "2000000u",
                           "999999u",
                           "0.9995",
                           "1e30",
                           "9223372036854775807",
                           "9Ei"})
    EXPECT_TRUE(is_whole(text)) << text;
  for (const auto* text : {"0.5", "1m", "500m", "1.0001k", "1e-1", "15e-1", "0.3Ki", "1n", "998999u", ".5", "0.1",
                           "1Ei", "99999999999999999999999", "1000000000000000000000000000000", "200400800298.010002G"})
    EXPECT_FALSE(is_whole(text)) << text;
}

}  // namespace
}  // namespace cli
