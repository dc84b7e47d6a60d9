#include "cli/lint/lint_scheduler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/render/render_scheduler.hpp"
#include "controller/x509.hpp"
#include "test/cli/lint/outcome.hpp"
#include "test/english.hpp"
#include "test/facts_in.hpp"
#include "text/text.hpp"

namespace cli {
namespace {

using testing::AllOf, testing::AnyOf, testing::HasSubstr, testing::IsEmpty, testing::StartsWith;
using words::chinese, words::english;
const std::string golden_scheduler = std::string(TEST_DATA) + "/golden/scheduler_config/";

outcome lint(const lint_scheduler_options& options, const std::string& input = "") {
  std::istringstream stream(input);
  std::ostringstream out, err;
  const int rc = run_lint_scheduler(options, stream, out, err);
  return {rc, out.str(), err.str()};
}
outcome render(const render_scheduler_options& options) {
  std::istringstream input;
  std::ostringstream out, err;
  const int rc = run_render_scheduler(options, input, out, err);
  return {rc, out.str(), err.str()};
}

/// "kube-scheduler 1.37 starts: ", with the files that it has to be able to read.
std::string starts_of(const std::string& version, const std::string& files = "") {
  return "kube-scheduler " + version +
         (files.empty() ? english("lint_scheduler.starts") : english("lint_scheduler.starts_if", {{"files", files}}));
}
/// "1 error, 0 warnings"
std::string sums(std::size_t errors, std::size_t warnings) {
  return english("lint_scheduler.sums", {{"errors", text::counted(errors, "count.error", text::language::en)},
                                         {"warnings", text::counted(warnings, "count.warning", text::language::en)}});
}

/// Whether the summary says that it starts, of whatever files that depends on.
bool is_start(const std::string& summary, const std::string& version) {
  const auto files = english("lint_scheduler.starts_if", {{"files", "|"}});
  const auto begin = "kube-scheduler " + version;
  return summary.contains(begin + english("lint_scheduler.starts")) ||
         summary.contains(begin + files.substr(0, files.find('|')));
}

std::string no_version(const std::string& value) {
  return english("render.no_version", {{"name", "--kubernetes"}, {"value", value}, {"oldest", "30"}, {"newest", "37"}});
}

/// PEM files of a client in a folder of its own.
class scheduler_verbs : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("scheduler_verbs." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    const controller::x509::validity validity{0, 4'000'000'000};
    const auto authority = controller::x509::make_authority("test", validity);
    const std::vector<std::string> names{"localhost"};
    const auto pair = controller::x509::issue(authority, "scheduler", names, validity);
    ASSERT_TRUE(pair);
    write("ca.crt", authority.certificate);
    write("tls.crt", pair->certificate);
    write("tls.key", pair->key);
    options_.address = "https://10.96.0.77";
    options_.server_name = "quartermaster-extender.quartermaster.svc";
    options_.ca = path("ca.crt");
    options_.certificate = path("tls.crt");
    options_.key = path("tls.key");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  std::filesystem::path folder_;
  render_scheduler_options options_;
};

TEST(lint_scheduler, S7_ends_with_3_where_kube_scheduler_would_not_start_and_says_so) {
  lint_scheduler_options options;
  options.files = {golden_scheduler + "mistakes/01-v1beta2.yaml"};
  options.kubernetes = "1.36";
  const auto text = lint(options);
  EXPECT_EQ(text.rc, 3);
  EXPECT_THAT(text.out, StartsWith(error_at(golden_scheduler + "mistakes/01-v1beta2.yaml:1:1")));
  EXPECT_THAT(text.err, HasSubstr("kube-scheduler 1.36" + english("lint_scheduler.does_not_start") + sums(1, 0)));
  options.output = "json";
  const auto json = nlohmann::json::parse(lint(options).out);
  EXPECT_EQ(json.at("kubernetes"), "1.36");
  EXPECT_EQ(json.at("starts"), false);
  EXPECT_EQ(json.at("findings").at(0).at("code"), "api_version_removed");
  EXPECT_EQ(json.at("findings").at(0).at("startFails"), true);
  for (const auto* other : {"2.29.3", "latest"}) {
    options.kubernetes = other;
    EXPECT_EQ(lint(options).rc, 2) << other;
    EXPECT_THAT(lint(options).err, HasSubstr(no_version(other))) << other;
  }
}

TEST(lint_scheduler, S7_takes_the_version_of_the_manifest_and_knows_it_by_its_kind) {
  lint_scheduler_options options;
  options.files = {golden_scheduler + "manifests/kubeadm-1.30.yaml", golden_scheduler + "mistakes/19-sound.yaml"};
  const auto got = lint(options);
  EXPECT_TRUE(is_start(got.err, "1.30")) << got.err;
  EXPECT_THAT(got.out, HasSubstr("[no_config_flag]"));
  EXPECT_THAT(got.out, testing::Not(HasSubstr("image_of_other_version")));
}

/// A manifest of a kubeadm of that version.
std::string manifest_with(const std::string& version) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: kube-scheduler\n"
         "    image: registry.k8s.io/kube-scheduler:" +
         version + "\n    command: [kube-scheduler, --kubeconfig=/a, --leader-elect=true]\n";
}

/// ApplyLeaderElectionTo of kube-scheduler: flags go before the file, and both are validated together.
TEST(lint_scheduler, judges_the_times_of_a_lease_with_the_flags_of_the_manifest) {
  const auto path = testing::TempDir() + "lint_scheduler_lease.yaml";
  std::ofstream(path) << "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
                         "clientConnection: {kubeconfig: /a}\nleaderElection: {leaseDuration: 5s}\n";
  const auto found = [&](const std::string& flags) {
    lint_scheduler_options options;
    options.files = {path, "-"};
    auto manifest = manifest_with("v1.36.3");
    const auto end = manifest.find(", --leader-elect=true]");
    return lint(options, manifest.replace(end, manifest.size() - end, ", --config=" + path + flags + "]\n")).out;
  };
  EXPECT_THAT(found(""), HasSubstr("[lease_times]"));
  EXPECT_THAT(found(", --leader-elect-retry-period=1s"), HasSubstr("[lease_times]")) << "another time is too short";
  for (const auto* cure : {", --leader-elect-lease-duration=15s", ", --leader-elect-renew-deadline=4s",
                           ", --leader-elect=false", ", --leader-elect-lease-duration=1s, --leader-elect=false"})
    EXPECT_THAT(found(cure), testing::Not(AnyOf(HasSubstr("[lease_times]"), HasSubstr("[flag_value]")))) << cure;
  const auto later = found(", --leader-elect-lease-duration=6s");
  EXPECT_THAT(later, AllOf(HasSubstr("[flag_value]"), testing::Not(HasSubstr("[lease_times]")))) << later;
  std::filesystem::remove(path);
}

TEST(lint_scheduler, judges_versions_before_the_oldest_by_its_rules_and_says_so) {
  const auto oldest = english("lint_scheduler.oldest_known", {{"version", "1.30"}});
  lint_scheduler_options options;
  options.files = {golden_scheduler + "mistakes/19-sound.yaml", "-"};
  const auto sound = lint(options, manifest_with("v1.28.15"));
  EXPECT_THAT(sound.err, HasSubstr("kube-scheduler 1.28" + english("lint_scheduler.may_start"))) << sound.out;
  EXPECT_THAT(sound.err, HasSubstr(oldest));
  EXPECT_THAT(sound.out, testing::Not(HasSubstr("image_of_other_version")));
  const auto later = lint(options, manifest_with("v1.24.1"));
  EXPECT_THAT(later.out, HasSubstr("[api_version_later]"));
  EXPECT_THAT(later.err, HasSubstr("kube-scheduler 1.24" + english("lint_scheduler.does_not_start")));
  options.files = {"-"};
  options.kubernetes = "1.25.3";
  options.output = "json";
  const auto field =
      nlohmann::json::parse(lint(options,
                                 "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
                                 "clientConnection: {kubeconfig: /a}\nhealthzBindAddress: a\n")
                                .out);
  EXPECT_EQ(field.at("kubernetes"), "1.25");
  EXPECT_TRUE(field.at("starts").is_null());
  EXPECT_EQ(field.at("findings").at(0).at("code"), "field_unknown");
  EXPECT_FALSE(field.at("findings").at(0).contains("startFails")) << "1.25 may read it";
  options.kubernetes = "1.30";
  EXPECT_THAT(lint(options, "kind: [\n").out, testing::Not(HasSubstr(oldest)));
}

TEST(lint_scheduler, says_of_files_of_other_products_that_they_were_not_judged) {
  const std::string volcano = "actions: \"enqueue, allocate\"\ntiers:\n- plugins: [{name: gang}]\n";
  for (const auto& text :
       {std::string("apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\n"), volcano,
        std::string("kind: ConfigMap\nmetadata: {name: volcano-scheduler-configmap}\ndata:\n  volcano-scheduler.conf: "
                    "|\n    actions: \"a\"\n    tiers: []\n")}) {
    lint_scheduler_options options;
    options.files = {"-"};
    const auto got = lint(options, text);
    EXPECT_EQ(got.rc, 3);
    EXPECT_THAT(got.out, HasSubstr("[other_file]")) << text;
    EXPECT_THAT(got.err, AllOf(HasSubstr(english("lint_scheduler.not_judged") + sums(1, 0)),
                               testing::Not(HasSubstr(english("lint_scheduler.unasked")))));
  }
}

TEST(lint_scheduler, S7_says_whose_extender_a_later_file_loses) {
  lint_scheduler_options options;
  options.files = {golden_scheduler + "mistakes/05-service-proxy-rights.yaml",
                   golden_scheduler + "mistakes/12-not-ignored.yaml"};
  const auto got = lint(options);
  EXPECT_THAT(got.out, HasSubstr(error_at("05-service-proxy-rights.yaml:6:3")));
  EXPECT_THAT(got.out, HasSubstr("tencent.com/vcuda-core, tencent.com/vcuda-memory"));
  EXPECT_THAT(got.out, HasSubstr("[extender_lost]"));
}

TEST(lint_scheduler, says_that_no_extender_is_asked_about_cards) {
  const std::string begin =
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
      "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}\n";
  const std::string other = "extenders: [{urlPrefix: 'http://10.0.0.9:1', filterVerb: f";
  const auto warns = [&](const std::string& extenders) {
    lint_scheduler_options options;
    options.files = {"-"};
    const auto got = lint(options, begin + extenders);
    EXPECT_THAT(got.err, HasSubstr(starts_of("1.37", "/etc/kubernetes/scheduler.conf") + sums(0, 0))) << got.out;
    options.language = "zh";
    const auto zh = lint(options, begin + extenders).err;
    const bool unasked = got.err.contains(english("lint_scheduler.unasked"));
    EXPECT_EQ(unasked, zh.contains(chinese("lint_scheduler.unasked")));
    return unasked;
  };
  EXPECT_TRUE(warns(""));
  EXPECT_TRUE(warns("extenders: []\n"));
  EXPECT_TRUE(warns(other + ", managedResources: [{name: example.com/disk}]}]\n"));
  EXPECT_FALSE(warns(other + ", managedResources: [{name: example.com/disk}, {name: nvidia.com/gpu}]}]\n"));
  EXPECT_FALSE(warns(other + "}]\n")) << "asked about every pod";
  lint_scheduler_options options;
  options.files = {golden_scheduler + "mistakes/01-v1beta2.yaml"};
  EXPECT_THAT(lint(options).err, testing::Not(HasSubstr(english("lint_scheduler.unasked"))))
      << "it does not start at all";
  options.files = {"-"};
  options.output = "json";
  const auto got = nlohmann::json::parse(lint(options, begin + "extenders: []\n---\n{}\n").out);
  EXPECT_EQ(got.at("findings").at(0).at("code"), "more_documents");
  EXPECT_EQ(got.at("asksAboutCards"), false);
}

const std::string objects_around_it =
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: my-scheduler}\n---\n"
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: my-scheduler-config, namespace: kube-system}\ndata:\n"
    "  readme: text\n"
    "  config.yaml: |\n\n    # a comment\n    apiVersion: kubescheduler.config.k8s.io/v1\n"
    "    kind: KubeSchedulerConfiguration\n    leaderElect: false\n";

TEST(lint_scheduler, S7_judges_a_configuration_in_a_config_map_with_its_lines) {
  lint_scheduler_options options;
  options.files = {"-"};
  const auto got = lint(options, objects_around_it);
  EXPECT_EQ(got.rc, 3);
  EXPECT_THAT(got.out,
              StartsWith(error_at("<stdin>:15:5") + "ConfigMap kube-system/my-scheduler-config: data[config.yaml]: "));
  EXPECT_THAT(got.out, HasSubstr("[field_unknown]"));
  EXPECT_THAT(got.out, testing::Not(HasSubstr("no_kubeconfig"))) << "no static pod can mount a ConfigMap";
  EXPECT_THAT(got.err, HasSubstr(english("lint_scheduler.does_not_start") + sums(1, 0)));
  const std::string entry = "data[config.yaml] of ConfigMap kube-system/my-scheduler-config";
  EXPECT_THAT(got.err, HasSubstr(english("lint_scheduler.in_cluster", {{"entries", entry}})));
  options.language = "zh";
  EXPECT_THAT(lint(options, objects_around_it).err,
              HasSubstr(chinese("lint_scheduler.in_cluster", {{"entries", entry}})));
}

TEST(lint_scheduler, S7_judges_every_entry_of_every_config_map) {
  const std::string begin = "apiVersion: v1\nkind: ConfigMapList\nitems:\n";
  const std::string map = "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: NAME}\n  data:\n";
  lint_scheduler_options options;
  options.files = {"-"};
  const auto got =
      lint(options, begin + map +
                        "    a: '{\"kind\": \"KubeSchedulerConfiguration\", "
                        "\"apiVersion\": \"kubescheduler.config.k8s.io/v1beta3\"}'\n"
                        "    b: >\n      kind: Policy\n\n      extenders: []\n" +
                        map +
                        "    c: |2\n        apiVersion: kubescheduler.config.k8s.io/v1\n"
                        "        kind: KubeSchedulerConfiguration\n        extenders: [{urlPrefix: 'http://a:1', "
                        "filterVrb: x}]\n");
  EXPECT_THAT(got.out, HasSubstr(error_at("<stdin>:8:5") + "ConfigMap NAME: data[a]: ")) << got.out;
  EXPECT_THAT(got.out, HasSubstr(error_at("<stdin>:9:5") + "ConfigMap NAME: data[b]: "));
  EXPECT_THAT(got.out, HasSubstr(error_at("<stdin>:20:47") + "ConfigMap NAME: data[c]: "));
  for (const auto* code : {"[api_version_removed]", "[policy]", "[field_unknown]", "extenders[0].filterVrb"})
    EXPECT_THAT(got.out, HasSubstr(code));
  EXPECT_THAT(got.out, testing::Not(HasSubstr("extender_lost")));
  const auto none = lint(options, "kind: ConfigMap\nmetadata: {name: x}\ndata: {a: b, c: d}\n");
  EXPECT_EQ(none.rc, 3);
  const auto wrong = english("scheduler_config.config_map_without.wrong", {{"value", "x"}, {"other", "a, c"}});
  EXPECT_THAT(none.out, HasSubstr(error_at("<stdin>:1:1") + wrong));
  EXPECT_THAT(none.err, HasSubstr("kube-scheduler 1.37" + english("lint_scheduler.not_judged") + sums(1, 0)));
}

TEST(lint_scheduler, S7_does_not_say_starts_of_flags_it_cannot_judge) {
  const std::string begin =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: "
      "kube-scheduler\n    image: kube-scheduler:v1.37.2\n    command: ";
  lint_scheduler_options options;
  options.files = {golden_scheduler + "mistakes/19-sound.yaml", "-"};
  const auto plain = lint(options, begin + "[sh, -c, kube-scheduler --v=2]\n");
  EXPECT_TRUE(is_start(plain.err, "1.37")) << plain.err;
  EXPECT_THAT(plain.out, HasSubstr("no_config_flag"));
  const auto left = lint(options, begin + "[sh, -c, kube-scheduler --config=$FILE]\n");
  EXPECT_THAT(left.err, HasSubstr("kube-scheduler 1.37" + english("lint_scheduler.may_start") + sums(0, 1)));
  EXPECT_THAT(left.out, testing::Not(HasSubstr("no_config_flag")));
  options.output = "json";
  EXPECT_TRUE(nlohmann::json::parse(lint(options, begin + "[sh, -c, kube-scheduler $X]\n").out).at("starts").is_null());
  options.output = "text";
  options.language = "zh";
  EXPECT_THAT(lint(options, begin + "[sh, -c, kube-scheduler $X]\n").err,
              HasSubstr(chinese("lint_scheduler.may_start")));
}

TEST(lint_scheduler, S7_says_which_files_the_start_depends_on) {
  const std::string begin = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
  const std::string config = begin +
                             "clientConnection: {kubeconfig: /a/scheduler.conf}\n"
                             "extenders:\n- {urlPrefix: 'https://10.0.0.1:1', tlsConfig: {caFile: /b/ca.crt, "
                             "certFile: /b/tls.crt, keyFile: /b/tls.key}}\n"
                             "- {urlPrefix: 'https://10.0.0.2:1', tlsConfig: {caFile: /b/ca.crt}}\n";
  lint_scheduler_options options;
  options.files = {"-"};
  const auto comma_en = english("lint_scheduler.comma");
  const auto once = "/a/scheduler.conf" + comma_en + "/b/ca.crt" + comma_en + "/b/tls.crt" + comma_en + "/b/tls.key";
  EXPECT_THAT(lint(options, config).err, HasSubstr(starts_of("1.37", once)));
  EXPECT_THAT(lint(options, "kind: [\n").err, HasSubstr(english("lint_scheduler.does_not_start")));
  options.manifest = golden_scheduler + "manifests/kubeadm.yaml";
  EXPECT_THAT(lint(options, config).err,
              HasSubstr(starts_of("1.37", "/etc/kubernetes/scheduler.conf" + comma_en + once)));
  options.manifest.clear();
  options.language = "zh";
  const auto comma = chinese("lint_scheduler.comma");
  const auto files = "/a/scheduler.conf" + comma + "/b/ca.crt" + comma + "/b/tls.crt" + comma + "/b/tls.key";
  EXPECT_THAT(lint(options, config).err, HasSubstr(chinese("lint_scheduler.starts_if", {{"files", files}})));
  options.language = "en";
  options.in_cluster = true;
  EXPECT_THAT(lint(options, begin).err, HasSubstr(starts_of("1.37") + sums(0, 0))) << "it opens none";
}

TEST(lint_scheduler, json_has_the_same_form_with_and_without_findings) {
  lint_scheduler_options options;
  options.output = "json";
  const auto members = [&](const std::string& file) {
    options.files = {golden_scheduler + file};
    const auto got = nlohmann::json::parse(lint(options).out);
    std::vector<std::string> out;
    for (const auto& [key, value] : got.items()) out.push_back(key + " " + value.type_name());
    return out;
  };
  const testing::Matcher<std::vector<std::string>> form = testing::UnorderedElementsAre(
      "kubernetes string", "starts boolean", "opens array", "asksAboutCards boolean", "findings array");
  EXPECT_THAT(members("mistakes/19-sound.yaml"), form);
  EXPECT_EQ(nlohmann::json::parse(lint(options).out),
            nlohmann::json::parse(R"({"kubernetes": "1.37", "starts": true, "asksAboutCards": true, "findings": [],
                                    "opens": ["/etc/kubernetes/scheduler.conf", "/etc/kubernetes/pki/ca.crt",
                                              "/etc/kubernetes/pki/scheduler-extender.crt",
                                              "/etc/kubernetes/pki/scheduler-extender.key"]})"));
  EXPECT_THAT(members("mistakes/02-left-margin.yaml"), form);
  // Of a manifest alone, and of what cannot be read, no one knows.
  options.files = {golden_scheduler + "manifests/kubeadm.yaml"};
  EXPECT_EQ(nlohmann::json::parse(lint(options).out).at("asksAboutCards"), nullptr);
  options.files = {"-"};
  const auto unread = nlohmann::json::parse(lint(options, "kind: [\n").out);
  EXPECT_EQ(unread.at("starts"), false);
  EXPECT_EQ(unread.at("asksAboutCards"), nullptr);
}

TEST(lint_scheduler, says_by_which_rules_a_version_is_judged_that_it_does_not_know) {
  lint_scheduler_options options;
  options.files = {golden_scheduler + "mistakes/19-sound.yaml"};
  options.kubernetes = "1.40";
  const auto newest = english("lint_scheduler.newest_known", {{"version", "1.37"}});
  EXPECT_TRUE(is_start(lint(options).err, "1.40"));
  EXPECT_THAT(lint(options).err, HasSubstr(newest));
  options.kubernetes = "1.37";
  EXPECT_THAT(lint(options).err, testing::Not(HasSubstr(newest)));
}

TEST(lint_scheduler, F36_says_where_a_file_is_no_yaml) {
  lint_scheduler_options options;
  options.files = {"-"};
  const auto got = lint(options, "kind: [\n");
  EXPECT_EQ(got.rc, 3);
  EXPECT_THAT(got.out, StartsWith("<stdin>:"));
  EXPECT_THAT(got.out, HasSubstr("[not_yaml]"));
  options.files = {"/nowhere"};
  EXPECT_EQ(lint(options).rc, 1);
}

TEST(lint_scheduler, S7_what_it_does_not_judge_is_named_as_not_judged) {
  lint_scheduler_options options;
  options.files = {"-"};
  options.output = "json";
  const auto verdict = [&](const std::string& input) {
    const auto got = lint(options, input);
    EXPECT_EQ(got.rc, 3) << input.substr(0, 200);
    const auto out = nlohmann::json::parse(got.out);
    EXPECT_TRUE(out["starts"].is_null()) << input.substr(0, 200);
    return out["findings"].at(0)["code"].get<std::string>();
  };
  const std::string pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: ";
  for (const std::string spec :
       {"{containers: [{name: web, image: \"nginx:1.25\"}]}", "{}", "{containers: []}",
        "{containers: [{name: api, image: kube-apiserver, command: [kube-apiserver, --scheduler-name=x]}]}"})
    EXPECT_EQ(verdict(pod + spec), "other_program") << spec;
  EXPECT_EQ(verdict(std::string((32u << 20) + 1, '#')), "beyond_limits");
  EXPECT_EQ(verdict(std::string(5000, '[')), "beyond_limits");
  EXPECT_EQ(verdict("{\"a\": " + std::string(300, '[') + std::string(300, ']') + "}"), "beyond_limits");

  options.output = "text";
  const auto text = lint(options, pod + "{}");
  EXPECT_THAT(text.err, StartsWith("quartermaster: kube-scheduler 1.37" + english("lint_scheduler.not_judged")));
  // Next to a configuration that was judged, not everything was.
  options.files = {golden_scheduler + "corpus/01-kubeadm-minimal.yaml", "-"};
  EXPECT_THAT(lint(options, pod + "{}").err, HasSubstr(english("lint_scheduler.may_start")));
}

TEST(lint_scheduler, S7_a_scheduler_of_ones_own_is_known_by_any_of_its_names) {
  lint_scheduler_options options;
  options.files = {"-"};
  const auto start = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, ";
  for (const std::string container :
       {"image: \"example.com/kube-scheduler:v1.36.1\"", "image: own, command: [/bin/my-scheduler, --config=/x]",
        "image: own, command: [sh, -c, kube-scheduler --config=/x]"})
    EXPECT_THAT(lint(options, start + container + "}]}").out, testing::Not(HasSubstr("[other_program]"))) << container;
}

TEST_F(scheduler_verbs, S7_render_a_file_that_lint_has_nothing_against) {
  const auto got = render(options_);
  EXPECT_EQ(got.rc, 0) << got.err;
  EXPECT_EQ(got.err, "");
  lint_scheduler_options options;
  options.files = {"-"};
  const auto judged = lint(options, got.out);
  EXPECT_EQ(judged.out, "");
  EXPECT_THAT(got.out, HasSubstr("urlPrefix: \"https://10.96.0.77/scheduler\""));
}

TEST_F(scheduler_verbs, S7_merge_and_give_back) {
  options_.merge = golden_scheduler + "corpus/05-comments-everywhere.yaml";
  const auto merged = render(options_);
  ASSERT_EQ(merged.rc, 0) << merged.err;
  write("merged.yaml", merged.out);
  render_scheduler_options back;
  back.unmerge = path("merged.yaml");
  std::stringstream before;
  before << std::ifstream(options_.merge, std::ios::binary).rdbuf();
  EXPECT_EQ(render(back).out, before.str());
}

TEST_F(scheduler_verbs, golden_tell_what_was_edited_in_our_part_before_it_goes) {
  options_.merge = golden_scheduler + "corpus/01-kubeadm-minimal.yaml";
  options_.scheduler_name = "cards";
  auto text = render(options_).out;
  const auto change = [&](const std::string& before, const std::string& after) {
    const auto match = text.find(before);
    ASSERT_NE(match, text.npos) << before;
    text.replace(match, before.size(), after);
  };
  change("weight: 10\n", "weight: 5\n    ignorable: true\n");
  change("    httpTimeout: \"5s\"\n", "    # slow\n    httpTimeout: 30s  # very\n");
  change("    bindVerb: bind\n", "");
  change("- schedulerName: cards\n", "- schedulerName: cards\n    percentageOfNodesToScore: 40\n");
  const auto key = text.find("keyData: ") + 9;
  text.replace(key, text.find('\n', key) - key, "aGlkZGVu");
  change("- name: nvidia.com/gpu.shared\n", "- name: example.com/fpga\n");
  write("edited.yaml", text);
  render_scheduler_options back;
  back.unmerge = path("edited.yaml");
  const auto notes = [&](const outcome& outcome) {
    EXPECT_EQ(outcome.rc, 0) << outcome.err;
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("aGlkZGVu"))) << "a key is no one's to read";
    std::vector<std::string> out;
    std::istringstream lines(outcome.err);
    const auto begin = "quartermaster: " + path("edited.yaml") + ":";
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, StartsWith(begin));
      out.push_back(line.substr(line.find(": note: ") + 8));
    }
    return out;
  };
  const std::vector<std::string> common{
      "extenders[0].weight was 5, where we write 10",
      "extenders[0].ignorable was true, where we write nothing",
      "extenders[0].httpTimeout was \"30s\", where we write \"5s\"",
      "extenders[0].bindVerb was missing, where we write \"bind\"",
      "extenders[0].managedResources[1].name was \"example.com/fpga\", where we write nothing",
      "profiles[1].percentageOfNodesToScore was 40, where we write nothing",
      "a comment was # slow, where we write nothing",
      "a comment was # very, where we write nothing",
  };
  const auto given_back = render(back);
  EXPECT_THAT(notes(given_back), testing::UnorderedElementsAreArray(common));
  std::stringstream before;
  before << std::ifstream(golden_scheduler + "corpus/01-kubeadm-minimal.yaml", std::ios::binary).rdbuf();
  EXPECT_EQ(given_back.out, before.str());

  // Written again: what is given now is known, so the key and the resource that went are reported too.
  options_.merge = path("edited.yaml");
  auto again = common;
  again.push_back("extenders[0].tlsConfig.keyData was another (not shown), where we write what is given");
  again.push_back(
      "extenders[0].managedResources[nvidia.com/gpu.shared] was missing, where we write "
      "{\"name\":\"nvidia.com/gpu.shared\"}");
  const auto written = render(options_);
  EXPECT_THAT(notes(written), testing::UnorderedElementsAreArray(again));
  write("edited.yaml", written.out);
  EXPECT_EQ(render(options_).err, "") << "nothing is edited any more";
}

TEST_F(scheduler_verbs, S7_golden_give_back_in_brackets_by_the_address) {
  options_.merge = golden_scheduler + "corpus/10-json-pretty.json";
  const auto merged = render(options_);
  ASSERT_EQ(merged.rc, 0) << merged.err;
  write("merged.json", merged.out);
  render_scheduler_options back;
  back.unmerge = path("merged.json");
  auto got = render(back);
  EXPECT_EQ(got.rc, 2);
  EXPECT_THAT(got.err,
              HasSubstr(english("scheduler_config.nothing_of_ours.remedy_with_hint", {{"hint", "--address"}})));
  back.address = "10.96.0.77";
  EXPECT_THAT(render(back).err, HasSubstr(english("render.no_address", {{"value", "10.96.0.77"}, {"reason", ""}})));
  back.address = options_.address;
  got = render(back);
  EXPECT_EQ(got.rc, 0) << got.err;
  EXPECT_EQ(got.err, "");
  auto edited = merged.out;
  edited.replace(edited.find("\"weight\": 10"), 12, "\"weight\": 77");
  write("merged.json", edited);
  EXPECT_THAT(render(back).err, testing::EndsWith("note: extenders[0].weight was 77, where we write 10\n"));
}

TEST_F(scheduler_verbs, render_says_that_an_IP_address_is_in_no_certificate) {
  const auto warns = [&](const std::string& address, const std::string& server_name) {
    options_.address = address;
    options_.server_name = server_name;
    const auto got = render(options_);
    EXPECT_EQ(got.rc, 0) << got.err;
    return got.err.contains(english("render.no_ip"));
  };
  EXPECT_TRUE(warns("https://10.96.0.77", ""));
  EXPECT_TRUE(warns("https://[fd00::7]:443", ""));
  EXPECT_FALSE(warns("https://10.96.0.77", "localhost"));
  EXPECT_FALSE(warns("https://extender.example:443", ""));
}

/// Up to what is allowed.
std::string no_name(const std::string& flag, const std::string& value, const std::string& kind) {
  const auto whole = english(
      "render.no_name", {{"name", flag}, {"value", value}, {"kind", english("render.kind." + kind)}, {"allowed", "|"}});
  return whole.substr(0, whole.find('|'));
}

TEST_F(scheduler_verbs, golden_refusals_in_Chinese_have_no_English_sentence) {
  options_.language = "zh";
  for (auto change : std::vector<std::function<void(render_scheduler_options&)>>{
           [](auto& o) { o.address = "10.0.0.1"; }, [](auto& o) { o.address = "https://10.0.0.1:0"; },
           [](auto& o) { o.lease = "A"; }, [](auto& o) { o.scheduler_name = "a b"; },
           [](auto& o) { o.server_name = "a b"; }, [](auto& o) { o.address = ""; }, [](auto& o) { o.kubernetes = "1"; },
           [](auto& o) { o.resources = {"gpu"}; }, [](auto& o) { o.ca = o.key; },
           [](auto& o) { o.merge = golden_scheduler + "mistakes/01-v1beta2.yaml"; }}) {
    auto options = options_;
    change(options);
    const auto got = render(options);
    EXPECT_EQ(got.rc, 2);
    EXPECT_TRUE(text::has_cjk(got.err)) << got.err;
    EXPECT_FALSE(words::has_english_sentence(got.err.substr(got.err.find(':') + 1))) << got.err;
  }
}

TEST_F(scheduler_verbs, golden_refuse_in_one_line_that_says_what_to_write) {
  const auto refused = [&](auto change) {
    auto options = options_;
    change(options);
    const auto got = render(options);
    EXPECT_EQ(got.rc, 2) << got.out;
    EXPECT_THAT(got.out, IsEmpty());
    return got.err;
  };
  EXPECT_THAT(refused([](auto& o) { o.address = "10.0.0.1"; }), HasSubstr("--address"));
  for (const auto* address : {"https://[::1", "https://10.0.0.1:99999", "https://10.0.0.1:0", "https://:443",
                              "https://", "https://a b", "https://10.0.0.256", "https://a?b", "http://a"}) {
    const auto message = refused([&](auto& o) { o.address = address; });
    const auto wrong = english("render.no_address", {{"value", address}, {"reason", "|"}});
    EXPECT_THAT(message, StartsWith("quartermaster: " + wrong.substr(0, wrong.find('|'))));
    EXPECT_THAT(message, testing::EndsWith(wrong.substr(wrong.find('|') + 1) + "\n"));
  }
  EXPECT_THAT(refused([](auto& o) { o.address = "https://10.0.0.1:0"; }), HasSubstr("65535"));
  for (const auto* name : {"a b", "A", "", "-a"})
    EXPECT_THAT(refused([&](auto& o) { o.lease = name; }), HasSubstr(no_name("--lease", name, "lease")));
  EXPECT_THAT(refused([](auto& o) { o.scheduler_name = "a b"; }),
              HasSubstr(no_name("--scheduler-name", "a b", "scheduler")));
  EXPECT_THAT(refused([](auto& o) { o.server_name = "a b"; }), HasSubstr(no_name("--server-name", "a b", "server")));
  EXPECT_THAT(refused([](auto& o) { o.address = ""; }), HasSubstr(english("usage.required", {{"name", "--address"}})));
  EXPECT_THAT(refused([](auto& o) { o.kubernetes = "1.9"; }), HasSubstr(no_version("1.9")));
  EXPECT_THAT(refused([](auto& o) { o.resources = {"gpu"}; }),
              HasSubstr(english("render.no_resource", {{"value", "gpu"}})));
  EXPECT_THAT(refused([](auto& o) { o.ca = o.key; }), HasSubstr("--ca"));
  EXPECT_THAT(refused([](auto& o) { o.merge = golden_scheduler + "mistakes/01-v1beta2.yaml"; }),
              AllOf(HasSubstr("01-v1beta2.yaml:1:1: "), HasSubstr("[api_version_removed]")));
  EXPECT_THAT(refused([](auto& o) { o.merge = golden_scheduler + "mistakes/19-sound.yaml"; }),
              HasSubstr("[managed_by_another]"));
  auto options = options_;
  options.ca = "/nowhere";
  EXPECT_EQ(render(options).rc, 1);
}

}  // namespace
}  // namespace cli
