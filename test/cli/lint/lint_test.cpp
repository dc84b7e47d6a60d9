// Files of test/golden/lint with what lint says of them; QM_GOLDEN=write writes what is missing or differs.

#include "cli/lint/lint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "cli/verbs.hpp"
#include "reconcilers/declarations/registry.hpp"
#include "test/cli/lint/outcome.hpp"
#include "test/reconcilers/recording_transport.hpp"

namespace cli {
namespace {

namespace declarations = reconcilers::declarations;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;
using words::english;
const std::filesystem::path golden = std::filesystem::path(TEST_DATA) / "golden";

std::string slurp(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::stringstream out;
  out << stream.rdbuf();
  return out.str();
}

outcome run(std::vector<std::string> files, const std::string& language = "en", const std::string& output = "text",
            bool strict = false, const std::string& input = "") {
  lint_options options;
  options.files = std::move(files);
  options.language = language;
  options.output = output;
  options.strict = strict;
  std::istringstream stream(input);
  std::ostringstream out, err;
  const int rc = run_lint(options, stream, out, err);
  return {rc, out.str(), err.str()};
}

std::vector<std::string> codes_of(const std::string& file) {
  std::vector<std::string> out;
  for (const auto& f : nlohmann::json::parse(run({file}, "en", "json").out)) out.push_back(f.at("code"));
  return out;
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto kind = entry.path().extension();
    if (kind == ".yaml" || kind == ".yml") out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

std::string expected_in(const std::filesystem::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line);
  const std::string head = "# expect: ";
  return line.starts_with(head) ? line.substr(head.size()) : "";
}

/// "# runtime classes of the cluster: kata, nvidia" on the second line: judged as with a cluster that has these.
std::optional<std::set<std::string, std::less<>>> runtime_classes_in(const std::filesystem::path& file) {
  std::string line;
  std::ifstream stream(file);
  std::getline(stream, line), std::getline(stream, line);
  const std::string head = "# runtime classes of the cluster: ";
  if (!line.starts_with(head)) return std::nullopt;
  std::set<std::string, std::less<>> out;
  std::istringstream names(line.substr(head.size()));
  for (std::string name; std::getline(names >> std::ws, name, ',');) out.insert(name);
  return out;
}

std::set<std::string, std::less<>> codes_of_declarations() {
  std::set<std::string, std::less<>> out;
  for (std::size_t i = 0; i < declarations::code_count; ++i)
    out.emplace(to_string(static_cast<declarations::error_code>(i)));
  return out;
}

std::vector<lint_finding> findings_in(const std::filesystem::path& file, text::language locale = text::language::en) {
  declared_resources cluster;
  cluster.runtime_classes = runtime_classes_in(file);
  lint_settings settings;
  settings.locale = locale;
  if (cluster.runtime_classes) settings.cluster = &cluster;
  std::vector<text::yaml::source> files;
  files.push_back(*text::yaml::read(file.filename().string(), slurp(file)));
  return lint(files, settings).findings;
}

TEST(lint, S23_S24_each_broken_declaration_gives_its_finding_and_none_gives_two) {
  const auto files = files_in(golden / "lint/broken");
  EXPECT_GE(files.size(), 40U);
  for (const auto& file : files) {
    ASSERT_NE(expected_in(file), "") << file;
    std::vector<std::string> codes;
    for (const auto& f : findings_in(file)) codes.push_back(f.code);
    EXPECT_THAT(codes, ElementsAre(expected_in(file))) << file << "\n" << run({file.string()}).out;
  }
}

/// What the operator writes into the annotations of all of them together.
TEST(lint, S23_S24_in_a_cluster_each_mistake_is_one_finding_too) {
  std::size_t judged = 0;
  for (const auto& file : files_in(golden / "lint/broken")) {
    if (!codes_of_declarations().contains(expected_in(file))) continue;  // YAML that no cluster takes
    const auto source = text::yaml::read("f", slurp(file));
    declarations::registry all;
    all.set_runtime_classes(runtime_classes_in(file));
    for (const auto& entry : manifests_in(*source)) all.put(read_config_map(entry).view());
    std::vector<std::string> codes;
    for (const auto& entry : all.judge_all()) {
      for (const auto& f : entry.findings) codes.emplace_back(to_string(f.kind));
    }
    EXPECT_THAT(codes, ElementsAre(expected_in(file))) << file;
    ++judged;
  }
  EXPECT_GE(judged, 60U);
}

TEST(lint_golden, S26_each_broken_declaration_in_both_languages) {
  std::string got;
  for (const auto& file : files_in(golden / "lint/broken")) {
    for (const auto entry : {text::language::en, text::language::zh}) {
      std::ostringstream line;
      print_text(findings_in(file, entry), entry, line);
      got += line.str();
    }
  }
  const auto file = golden / "lint/broken.txt";
  const auto* write = std::getenv("QM_GOLDEN");
  if (write && std::string_view(write) == "write") std::ofstream(file) << got;
  EXPECT_EQ(got, slurp(file));
}

TEST(lint, the_broken_declarations_cover_every_finding_a_file_can_have) {
  std::set<std::string, std::less<>> seen;
  for (const auto& file : files_in(golden / "lint/broken")) seen.insert(expected_in(file));
  const std::set<std::string_view> elsewhere{"more_unknown_fields"};  // nine unknown fields are nine mistakes
  for (const auto& code : codes_of_declarations()) {
    if (!elsewhere.contains(code)) EXPECT_TRUE(seen.contains(code)) << code;
  }
}

TEST(lint, every_finding_says_where_what_is_allowed_and_what_to_do) {
  for (const auto& file : files_in(golden / "lint/broken")) {
    if (runtime_classes_in(file)) continue;
    for (const auto* language : {"en", "zh"}) {
      const auto all = nlohmann::json::parse(run({file.string()}, language, "json").out);
      for (const auto& f : all) {
        EXPECT_EQ(f.at("file"), file.string());
        EXPECT_GT(f.at("line"), 2) << f;
        EXPECT_GT(f.at("column"), 0) << f;
        // Which fields there are is a list no one reads; what is to be added is in the remedy.
        const bool has_no_list = f.at("code") == "unknown_field" || f.at("code") == "exclusion_not_mutual" ||
                                 f.at("code") == "exclusion_not_answered";
        EXPECT_EQ(f.at("allowed") == "", has_no_list) << f;
        EXPECT_NE(f.at("remedy"), "") << f;
        const std::string message = f.at("message"), field = f.at("field"), remedy = f.at("remedy");
        EXPECT_THAT(message, HasSubstr(field)) << f;
        EXPECT_THAT(message, testing::EndsWith(remedy)) << f;
        for (const auto* left : {"{field}", "{value}", "{allowed}", "{hint}", "{other}", "{key}", "{count}"})
          EXPECT_EQ(message.find(left), message.npos) << message;
      }
    }
  }
}

TEST(lint, the_place_is_that_of_the_field) {
  const auto place = [](const std::string& name) {
    const auto all = nlohmann::json::parse(run({(golden / "lint/broken" / name).string()}, "en", "json").out);
    return all.at(0).at("line").dump() + ":" + all.at(0).at("column").dump();
  };
  EXPECT_EQ(place("09-limits-misspelt.yaml"), "19:3");
  EXPECT_EQ(place("01-key-missing.yaml"), "12:1") << "data, which should hold it";
  EXPECT_EQ(place("15-enabled-yes.yaml"), "11:5");
  EXPECT_EQ(place("47-name-without-prefix.yaml"), "6:3");
}

TEST(lint, S21_S25_the_published_declarations_of_both_dialects_pass_unchanged) {
  std::size_t count = 0;
  for (const auto& file : files_in(golden / "crl")) {
    const auto name = file.stem().string();
    if (!name.starts_with("platform-") && name != "manual-vcuda" && name != "both-dialects-together") continue;
    if (name == "platform-two-npu-configs") continue;
    const auto result = run({file.string()});
    EXPECT_EQ(result.rc, 0) << file;
    EXPECT_EQ(result.out, "") << file;
    ++count;
  }
  EXPECT_EQ(count, 5U);
}

TEST(lint, S21_todays_npu_configs_share_a_label_and_that_is_said_once) {
  EXPECT_THAT(codes_of((golden / "crl/platform-two-npu-configs.yaml").string()), ElementsAre("device_label_shared"));
}

/// NAME.yaml or NAME.json next to NAME.txt, what people read in both languages, and NAME.findings.json.
void expect_golden(const std::string& name) {
  const auto base = golden / "lint";
  const auto input = (base / name).string();
  const auto en = run({input}), zh = run({input}, "zh");
  const auto stem = std::filesystem::path(name).stem().string();
  const std::vector<std::pair<std::string, std::string>> outputs{
      {".txt", en.out + en.err + "exit " + std::to_string(en.rc) + "\n\n" + zh.out + zh.err},
      {".findings.json", run({input}, "en", "json").out}};
  for (const auto& [kind, got] : outputs) {
    const auto file = base / (stem + kind);
    const auto* write = std::getenv("QM_GOLDEN");
    if (write && std::string_view(write) == "write") std::ofstream(file) << got;
    EXPECT_EQ(got, slurp(file)) << file;
  }
}

TEST(lint_golden, S25_S72_pods_against_the_manuals_declarations) { expect_golden("pods.yaml"); }
TEST(lint_golden, S72_workloads_without_any_declaration) { expect_golden("workloads.yaml"); }
TEST(lint_golden, traps_of_yaml) { expect_golden("traps.yaml"); }
TEST(lint_golden, a_list_as_kubectl_prints_it_in_json) { expect_golden("list.json"); }

TEST(lint_golden, S26_one_finding_in_both_languages) {
  const auto file = (golden / "lint/broken/09-limits-misspelt.yaml").string();
  EXPECT_EQ(run({file}).out, file +
                                 ":19:3: error: ConfigMap kube-public/cf-crl-lab-fpga: data.limits is \"requried\"; "
                                 "allowed: disabled, required, optional; write \"required\" [not_in_vocabulary]\n");
  EXPECT_EQ(run({file}, "zh").out,
            file +
                ":19:3: 错误: ConfigMap kube-public/cf-crl-lab-fpga: data.limits 的值为“requried”；"
                "允许：disabled, required, optional；请改为“required” [not_in_vocabulary]\n");
}

TEST(lint, exit_codes) {
  const auto broken = golden / "lint/broken";
  EXPECT_EQ(run({(golden / "crl/manual-vcuda.yaml").string()}).rc, 0);
  EXPECT_EQ(run({(broken / "01-key-missing.yaml").string()}).rc, 3);
  const auto warning = (broken / "31-unknown-field.yaml").string();
  EXPECT_EQ(run({warning}).rc, 0);
  EXPECT_EQ(run({warning}, "en", "text", true).rc, 3);
  const auto missing = run({"test/nothing.yaml", warning});
  EXPECT_EQ(missing.rc, 1);
  EXPECT_EQ(missing.err, english("yaml.unreadable",
                                 {{"place", "test/nothing.yaml"},
                                  {"problem", english("list.quotation", {{"text", "No such file or directory"}})}}) +
                             "\n");
  EXPECT_EQ(missing.out, "");
  const auto malformed = run({"-"}, "en", "text", false, "a: 1\n  b: 2\n");
  EXPECT_EQ(malformed.rc, 1);
  EXPECT_THAT(malformed.err, testing::HasSubstr("<stdin>:2:"));
  EXPECT_EQ(std::ranges::count(malformed.err, '\n'), 1);
}

const auto container_m = english("objection.container", {{"name", "m"}});

TEST(lint, judges_files_together_wherever_the_declarations_stand) {
  const auto rules = (golden / "crl/manual-vcuda.yaml").string();
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: m, resources: {limits: "
      "{tencent.com/vcuda-core: "
      "20}}}]}\n";
  const auto together = run({"-", rules}, "en", "text", false, pod);
  EXPECT_EQ(together.rc, 3);
  EXPECT_THAT(together.out, HasSubstr(error_at("<stdin>:4:52") + "Pod a: " +
                                      english("objection.share_needs_partner", {{"container", container_m},
                                                                                {"key", "tencent.com/vcuda-core"},
                                                                                {"amount", "20"},
                                                                                {"other", "tencent.com/vcuda-memory"},
                                                                                {"nearest", "100"}})));
  const auto alone = run({"-"}, "en", "text", false, pod);
  EXPECT_EQ(alone.rc, 3) << "gpu-manager wants both, declared or not";
  EXPECT_THAT(alone.err, HasSubstr(english("lint_summary.no_declaration")));
}

TEST(lint, kinds_that_are_not_known_are_not_judged_and_said) {
  const auto all = [](const std::string& text, bool strict = false) { return run({"-"}, "en", "text", strict, text); };
  const auto service = all("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 1}]}\n", true);
  EXPECT_EQ(service.rc, 0) << service.out;
  const std::string route = "apiVersion: example.com/v1\nkind: Route\nmetadata: {name: a}\nspec: {to: b}\n";
  EXPECT_THAT(all(route).out, HasSubstr(english("lint.not_judged.wrong", {{"value", "Route of example.com"}})));
  EXPECT_EQ(all(route).rc, 0);
  EXPECT_EQ(all(route, true).rc, 3);
  EXPECT_THAT(all("apiVersion: apps/v1\nkind: Deploymnet\nmetadata: {name: a}\n").out,
              HasSubstr(english("lint.kind_unknown.remedy_with_hint", {{"hint", "Deployment"}})));
  EXPECT_THAT(all("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a}\nspec: {}\n").out,
              HasSubstr("[devices_not_judged]"));
}

TEST(lint, quotas_that_count_nothing) {
  const auto got = run({"-"}, "en", "text", false,
                       "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: lab}\nspec:\n  hard:\n"
                       "    limits.nvidia.com/gpu: 2\n    nvidia.com/gpu: 2\n    requests.nvidia.com/gpucore: 25\n"
                       "    requests.nvidia.com/gpu: 2\n    limits.memory: 1Gi\n    count/jobs.batch: 3\n"
                       "    gold.storageclass.storage.k8s.io/requests.storage: 1Gi\n    example.com/fpga: 1\n");
  const auto counts_nothing = [](const std::string& key) {
    return english("lint.quota_counts_nothing.remedy", {{"key", key}}) + " [quota_counts_nothing]";
  };
  EXPECT_THAT(got.out, HasSubstr("spec.hard[limits.nvidia.com/gpu]"));
  EXPECT_THAT(got.out, HasSubstr(warning_at("<stdin>:6:5") + "ResourceQuota lab/q: "));
  EXPECT_THAT(got.out, HasSubstr(warning_at("<stdin>:7:5")));
  EXPECT_THAT(got.out, HasSubstr(counts_nothing("nvidia.com/gpu")));
  EXPECT_THAT(got.out, HasSubstr(warning_at("<stdin>:8:5")));
  EXPECT_THAT(got.out,
              HasSubstr(english("lint.unfamiliar_resource.remedy_with_hint", {{"hint", "nvidia.com/gpucores"}}) +
                        " [unfamiliar_resource]"));
  EXPECT_THAT(got.out, HasSubstr(counts_nothing("example.com/fpga")));
  EXPECT_EQ(std::ranges::count(got.out, '\n'), 4) << got.out;
}

/// The last line, without declarations and warnings.
std::string sums_of_pods(std::size_t workloads, std::size_t errors) {
  constexpr auto en = text::language::en;
  return english("lint_summary.text", {{"declarations", text::counted(0, "count.declaration", en)},
                                       {"workloads", text::counted(workloads, "count.workload", en)},
                                       {"errors", text::counted(errors, "count.error", en)},
                                       {"warnings", text::counted(0, "count.warning", en)}});
}

TEST(lint, finds_what_is_in_lists_of_lists) {
  const std::string pod =
      "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: m, image: x, resources: {limits: "
      "{gpu: "
      "1}}}]}}";
  const auto summarize = [](const std::string& text) { return run({"-"}, "en", "text", false, text).err; };
  EXPECT_THAT(
      summarize("kind: List\nitems:\n- kind: List\n  items: [" + pod + "]\n- kind: PodList\n  items: [" + pod + "]\n"),
      HasSubstr(sums_of_pods(2, 2)));
  std::string bomb = "x0: &l0 {kind: List, items: [" + pod + "]}\n";
  for (int i = 1; i <= 20; ++i) {
    const auto below = "*l" + std::to_string(i - 1);
    bomb += "x" + std::to_string(i) + ": &l" + std::to_string(i) + " {kind: List, items: [" + below;
    for (int j = 0; j < 9; ++j) bomb += ", " + below;
    bomb += "]}\n";
  }
  EXPECT_THAT(summarize(bomb + "kind: List\nitems: [*l20]\n"), HasSubstr(sums_of_pods(1, 1)));
}

TEST(lint, S49_an_amount_on_the_pod_is_found_where_it_is_written) {
  const auto rules = (golden / "crl/manual-vcuda.yaml").string();
  const std::string deployment =
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {a: b}}\n  "
      "template:\n    metadata:\n      "
      "labels: {a: b}\n      annotations:\n        "
      "tencent.com/vcuda-core-limit: banana\n    spec: {containers: [{name: m, image: x, resources: {limits: "
      "{tencent.com/vcuda-core: 20, tencent.com/vcuda-memory: 4}}}]}\n";
  const auto got = run({"-", rules}, "en", "text", false, deployment);
  EXPECT_EQ(got.rc, 3);
  const auto wrong = english("objection.pod_amount_no_number", {{"container", container_m},
                                                                {"kind", english("objection.annotation")},
                                                                {"other", "tencent.com/vcuda-core-limit"},
                                                                {"key", "tencent.com/vcuda-core"},
                                                                {"amount", "20"},
                                                                {"on_pod", "|"}});
  EXPECT_THAT(got.out, HasSubstr(error_at("<stdin>:10:9") + "Deployment a: " + wrong.substr(0, wrong.find('|'))));
  EXPECT_THAT(got.out, HasSubstr(english("lint.pod_amount_not_legal.remedy") + " [pod_amount_not_legal]"));
  const auto data = nlohmann::json::parse(run({"-", rules}, "en", "json", false, deployment).out);
  EXPECT_EQ(data[0]["field"], "spec.template.metadata.annotations[tencent.com/vcuda-core-limit]");
}

TEST(lint, F38_a_pod_that_is_too_large_is_told_as_in_the_cluster) {
  const auto rules = (golden / "crl/manual-vcuda.yaml").string();
  std::string pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [";
  for (int i = 0; i < 257; ++i)
    pod += "{name: c" + std::to_string(i) + ", resources: {limits: {tencent.com/vcuda-core: 100}}},";
  const auto got = run({"-", rules}, "en", "text", false, pod + "]}\n");
  EXPECT_EQ(got.rc, 3);
  EXPECT_THAT(got.out, HasSubstr(english("objection.too_large") + english("finding.remedy") +
                                 english("lint.too_large.remedy") + " [too_large]"));
}

TEST(lint, nobody_is_held_to_the_rules_in_system_namespaces) {
  const auto rules = (golden / "crl/manual-vcuda.yaml").string();
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: kube-system}\nspec: {containers: [{name: m, image: x, "
      "resources: {limits: "
      "{tencent.com/vcuda-core: 20}}}]}\n";
  EXPECT_EQ(run({"-", rules}, "en", "text", false, pod).rc, 0);
}

TEST(lint, what_follows_from_another_finding_is_not_said) {
  auto text = slurp(golden / "crl/platform-hami-nvidia.yaml");
  const auto break_one = [&](const std::string& before, const std::string& after) {
    auto broken = text;
    broken.replace(broken.find(before), before.size(), after);
    std::vector<std::string> out;
    for (const auto& f : nlohmann::json::parse(run({"-"}, "en", "json", false, broken).out))
      out.push_back(f.at("code"));
    return out;
  };
  EXPECT_THAT(break_one("limits: optional", "limits: optoinal"), ElementsAre("not_in_vocabulary"));
  EXPECT_THAT(break_one("key: nvidia.com/gpualloc", "key: Nvidia.com/gpualloc"), ElementsAre("key_malformed"));
}

/// Which of a cluster's objects a person may list.
struct rights {
  bool declarations = true, rules = true, nodes = true;
};
linted_cluster seen_with(const rights& rights) {
  reconcilers::recording_transport transport;
  const std::string spec =
      R"({"keys":["example.com/fpga"],"rules":{"example.com/fpga":{"source":"kube-public/cf-crl-lab-fpga","forbidden":true}}})";
  transport.answer = [&](const kube::request& request) -> kube::result<kube::response> {
    const auto& target = request.target;
    const bool may = target.contains("/configmaps")      ? rights.declarations
                     : target.contains("/resourcerules") ? rights.rules
                     : target.contains("/nodes")         ? rights.nodes
                                                         : true;
    if (!may)
      return reconcilers::recording_transport::refused(
          403, "Forbidden", "User \"a\" cannot list resource \"x\" in API group \"\" in the namespace \"kube-public\"");
    if (request.accept.contains("protobuf")) {
      kube::response none;
      none.status = 200;
      none.content_type = "application/vnd.kubernetes.protobuf";
      none.body =
          "\x0a\x05\x12\x03"
          "100";  // metadata with a resourceVersion, and no item
      return none;
    }
    if (!target.contains("/resourcerules"))
      return reconcilers::recording_transport::answered(
          200, {{"metadata", {{"resourceVersion", "100"}}}, {"items", nlohmann::json::array()}});
    return reconcilers::recording_transport::answered(
        200, {{"metadata", {{"resourceVersion", "100"}}},
              {"items", {{{"metadata", {{"name", "default"}}}, {"spec", nlohmann::json::parse(spec)}}}}});
  };
  auto out = reconcilers::run(read_linted_cluster(transport, "kube-public"));
  EXPECT_TRUE(out) << out.error().message;
  return out ? std::move(*out) : linted_cluster();
}
outcome run_with(const rights& rights, const std::string& text, bool strict = false) {
  const auto cluster = seen_with(rights);
  std::vector<text::yaml::source> files;
  files.push_back(*text::yaml::read("f", text));
  lint_options options;
  options.strict = strict;
  std::ostringstream out, err;
  const int rc = run_lint(options, &cluster, files, out, err);
  return {rc, out.str(), err.str()};
}
std::string pod_with(const std::string& key) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: m, image: x, resources: {limits: "
         "{" +
         key + ": 1}}}]}\n";
}

TEST(lint, without_the_declarations_of_the_cluster_its_compiled_rules_hold) {
  const auto got = run_with({.declarations = false}, pod_with("example.com/fpga"));
  EXPECT_EQ(got.rc, 3);
  EXPECT_THAT(got.out, HasSubstr("example.com/fpga"));
  EXPECT_THAT(got.err, HasSubstr(words::begin_of("lint_summary.rules_compiled", "problem")));
  EXPECT_THAT(got.err, HasSubstr("kubectl create rolebinding quartermaster-user-a")) << "who may grant it how";
  EXPECT_THAT(got.err, testing::Not(HasSubstr(english("lint_summary.no_declaration_there"))));
  EXPECT_EQ(run_with({.declarations = false}, pod_with("cpu")).rc, 0) << "all rules were seen";
}

TEST(lint, what_is_clean_without_the_rules_of_the_named_cluster_is_not_called_clean) {
  const auto got = run_with({.declarations = false, .rules = false}, pod_with("cpu"));
  EXPECT_EQ(got.rc, 3);
  EXPECT_EQ(got.out, "");
  EXPECT_THAT(got.err, HasSubstr(words::begin_of("lint_summary.rules_unseen", "problem")));
  EXPECT_EQ(run_with({}, pod_with("cpu"), true).rc, 0);
  EXPECT_EQ(run_with({.nodes = false}, pod_with("cpu")).rc, 0);
  EXPECT_EQ(run_with({.nodes = false}, pod_with("cpu"), true).rc, 3);
}

TEST(lint, declarations_of_a_cluster_count_beside_those_in_files) {
  kube::config_map there;
  there.key = {"kube-public", "cf-crl-lab-fpga"};
  there.created = 100;
  there.labels = kube::packed_map::of({{"features.cpaas.io/type", "CustomResourceLimitation"},
                                       {"features.cpaas.io/group", "lab"},
                                       {"features.cpaas.io/enabled", "true"}});
  there.data = kube::packed_map::of({{"key", "example.com/fpga"},
                                     {"dataType", "integer"},
                                     {"group", "lab"},
                                     {"limits", "disabled"},
                                     {"requests", "disabled"}});
  declared_resources cluster;
  cluster.config_maps.push_back(there);
  cluster.runtime_classes.emplace().insert("nvidia");
  lint_settings settings;
  settings.cluster = &cluster;
  const auto find_codes = [&](const std::string& text) {
    std::vector<text::yaml::source> files;
    files.push_back(*text::yaml::read("f", text));
    std::vector<std::string> out;
    for (const auto& f : lint(files, settings).findings) out.push_back(f.code);
    return out;
  };
  EXPECT_THAT(
      find_codes("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: m, image: x, resources: "
                 "{limits: {example.com/fpga: "
                 "1}}}]}"),
      ElementsAre("resource_forbidden"));
  const std::string again =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cf-crl-lab-2, namespace: kube-public, labels: "
      "{features.cpaas.io/type: "
      "CustomResourceLimitation, features.cpaas.io/group: lab, features.cpaas.io/enabled: 'true'}}\n"
      "data: {key: example.com/fpga, dataType: integer, group: lab, limits: optional, requests: disabled, "
      "runtimeClassName: nvidai}\n";
  EXPECT_THAT(find_codes(again), testing::UnorderedElementsAre("duplicate_key", "runtime_class_unknown"));
  auto same_name = again;
  same_name.replace(same_name.find("cf-crl-lab-2"), 12, "cf-crl-lab-fpga");
  EXPECT_THAT(find_codes(same_name), ElementsAre("runtime_class_unknown")) << "it takes the place of its namesake";
}

TEST(lint, F35_files_of_any_bytes_are_judged_or_refused_in_one_line) {
  std::mt19937 random(7);
  const auto any = [&](std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random); };
  const std::string marks = "{}[]:-,&*!|>'\"%@`#?\n\t \x01\xff<~01";
  std::size_t judged = 0, refused = 0;
  for (const auto* name : {"lint/pods.yaml", "lint/traps.yaml", "lint/list.json", "crl/everything-wrong.yaml"}) {
    const auto sound = slurp(golden / name);
    for (int i = 0; i < 150; ++i) {
      auto text = sound;
      for (auto changes = 1 + any(6); changes > 0; --changes) {
        const auto position = any(text.size());
        const auto mutation = any(4);
        if (mutation == 0)
          text[position] = marks[any(marks.size())];
        else if (mutation == 1)
          text.insert(position, 1 + any(3), marks[any(marks.size())]);
        else if (mutation == 2)
          text.erase(position, 1 + any(40));
        else
          text.insert(any(text.size()), text.substr(position, any(200)));
      }
      const auto result = run({"-"}, i % 2 == 0 ? "en" : "zh", "json", false, text);
      ++(result.rc == 1 ? refused : judged);
      if (result.rc == 1 && result.out.empty()) {
        EXPECT_THAT(result.err, testing::HasSubstr("<stdin>:"));
        EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
      } else {
        EXPECT_TRUE(nlohmann::json::parse(result.out).is_array());
      }
    }
  }
  EXPECT_GT(judged, 50U);
  EXPECT_GT(refused, 50U);
}

TEST(lint, help_teaches_and_wrong_usage_is_refused) {
  CLI::App app{"x", "quartermaster"};
  int rc = 0;
  add_lint(app, rc);
  const auto help = app.get_subcommand("lint")->help();
  EXPECT_THAT(help, HasSubstr("$ quartermaster lint fpga.yaml"));
  EXPECT_THAT(help, HasSubstr("Exit codes: 0"));
  CLI::App bare{"x", "quartermaster"};
  add_lint(bare, rc);
  EXPECT_THROW(bare.parse("lint", false), CLI::RequiredError);
  CLI::App wrong{"x", "quartermaster"};
  add_lint(wrong, rc);
  EXPECT_THROW(wrong.parse("lint --lang fr x", false), CLI::ValidationError);
}

TEST(lint_golden, help_shows_what_really_happens) {
  CLI::App app{"x", "quartermaster"};
  int rc = 0;
  add_lint(app, rc);
  const auto help = app.get_subcommand("lint")->help();
  const auto begin = help.find("apiVersion: v1"), end = help.find("  $ quartermaster lint fpga.yaml");
  const auto answer = help.find("  fpga.yaml:");
  std::string text;
  std::istringstream lines(help.substr(begin, end - begin));
  for (std::string line; std::getline(lines, line);) text += line.substr(line.starts_with("  ") ? 2 : 0) + "\n";
  const auto output = run({"-"}, "en", "text", false, text).out;
  EXPECT_EQ(help.substr(answer + 11, help.find('\n', answer) - answer - 10), output.substr(7)) << output;
}

}  // namespace
}  // namespace cli
