// Whether these verdicts are kube-scheduler's own is seen in test/scheduler_config, which starts it with every file.

#include "scheduler_config/judge/verdict.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "scheduler_config/edit/static_pod.hpp"
#include "test/scheduler_config/files.hpp"

namespace scheduler_config {
namespace {

using testing::ElementsAre, testing::IsEmpty;

server kubernetes(int minor) {
  server out;
  out.minor = minor;
  return out;
}

std::vector<std::string> codes_of(const findings& findings) {
  std::vector<std::string> out;
  for (const auto& finding : findings) out.emplace_back(to_string(finding.issue));
  return out;
}

std::string first_end(const findings& findings) {
  for (const auto& finding : findings) {
    if (effect_of(finding.issue) == effect::ends) return std::string(to_string(finding.issue));
  }
  return {};
}

TEST(scheduler_verdict, S7_says_of_every_edit_whether_kube_scheduler_starts) {
  const auto all = mutants();
  EXPECT_GE(all.size(), 60U);
  for (const auto& entry : all) {
    for (const int minor : {oldest_minor, 36, newest_minor}) {
      EXPECT_EQ(first_end(judge(entry.text, kubernetes(minor))), entry.code_on(minor))
          << entry.name << ", Kubernetes 1." << minor;
    }
  }
}

TEST(scheduler_verdict, S7_says_since_when_a_version_is_no_longer_read) {
  const std::pair<std::string, std::string> versions[] = {{"componentconfig/v1alpha1", "1.13"},
                                                          {"kubescheduler.config.k8s.io/v1alpha1", "1.19"},
                                                          {"kubescheduler.config.k8s.io/v1alpha2", "1.19"},
                                                          {"kubescheduler.config.k8s.io/v1beta1", "1.23"},
                                                          {"kubescheduler.config.k8s.io/v1beta2", "1.28"},
                                                          {"kubescheduler.config.k8s.io/v1beta3", "1.29"}};
  for (const auto& [version, since] : versions) {
    const auto found = judge("apiVersion: " + version + "\nkind: KubeSchedulerConfiguration\n");
    ASSERT_FALSE(found.empty()) << version;
    EXPECT_EQ(found.front().issue, code::api_version_removed);
    EXPECT_EQ(found.front().value, version);
    EXPECT_EQ(found.front().other, since);
  }
  EXPECT_THAT(codes_of(judge("apiVersion: kubescheduler.config.k8s.io/v9\nkind: KubeSchedulerConfiguration\n")),
              ElementsAre("api_version_unknown"));
}

/// k8s.io/kube-scheduler config/ of v0.22 to v0.29.
TEST(scheduler_verdict, knows_which_versions_older_schedulers_read) {
  struct row {
    int minor;
    std::string version, issue, other, hint;
  };
  const std::string group(scheduler_config::group);
  for (const auto& [minor, version, issue, other, hint] :
       std::vector<row>{{24, "v1", "api_version_later", "1.25", "v1beta3"},
                        {22, "v1beta3", "api_version_later", "1.23", "v1beta2"},
                        {23, "v1beta1", "api_version_removed", "1.23", "v1beta3"},
                        {28, "v1beta2", "api_version_removed", "1.28", "v1"},
                        {29, "v1beta3", "api_version_removed", "1.29", "v1"},
                        {25, "v1", "", "", ""},
                        {28, "v1beta3", "", "", ""},
                        {27, "v1beta2", "", "", ""},
                        {22, "v1beta1", "", "", ""}}) {
    auto found = judge(
        "apiVersion: " + group + version + "\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: /a}\n",
        kubernetes(minor));
    if (issue.empty()) {
      EXPECT_THAT(codes_of(found), IsEmpty()) << minor << " " << version;
      continue;
    }
    ASSERT_THAT(codes_of(found), ElementsAre(issue)) << minor << " " << version;
    EXPECT_EQ(found.front().other, other) << minor << " " << version;
    EXPECT_EQ(found.front().hint, group + hint) << minor << " " << version;
    EXPECT_TRUE(holds_before_oldest(found.front().issue));
  }
  const auto field = judge(
      "apiVersion: " + group + "v1beta2\nkind: KubeSchedulerConfiguration\nhealthzBindAddress: a\n", kubernetes(25));
  ASSERT_FALSE(field.empty());
  EXPECT_FALSE(holds_before_oldest(field.back().issue)) << "a field that 1.25 reads";
}

TEST(scheduler_verdict, says_of_files_of_other_products_whose_they_are) {
  const auto kubeadm = judge(
      "apiVersion: kubeadm.k8s.io/v1beta4\nkind: InitConfiguration\n---\napiVersion: kubeadm.k8s.io/v1beta4\n"
      "kind: ClusterConfiguration\n");
  ASSERT_THAT(codes_of(kubeadm), ElementsAre("other_file"));
  EXPECT_EQ(kubeadm.front().value, "kubeadm");
  EXPECT_EQ(kubeadm.front().location, (text::yaml::place{1, 1}));
  EXPECT_EQ(effect_of(kubeadm.front().issue), effect::unjudged);
  const auto volcano = judge("actions: \"enqueue, allocate\"\ntiers:\n- plugins: [{name: gang}]\n");
  ASSERT_THAT(codes_of(volcano), ElementsAre("other_file"));
  EXPECT_EQ(volcano.front().value, "Volcano");
  EXPECT_THAT(codes_of(judge("tiers: []\n")), ElementsAre("no_kind"));
}

TEST(scheduler_verdict, S7_says_where_the_extenders_of_a_policy_belong) {
  const std::string begin = "kind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: /a}\n";
  for (const auto* version : {"v1alpha1", "v1"}) {
    const auto found = judge("apiVersion: kubescheduler.config.k8s.io/" + std::string(version) + "\n" + begin +
                             "algorithmSource: {policy: {file: {path: /x.json}}}\n");
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.back().issue, code::algorithm_source) << version;
    EXPECT_EQ(found.back().location, (text::yaml::place{4, 1}));
  }
  EXPECT_THAT(codes_of(judge("apiVersion: v1\nkind: Policy\nextenders: []\n")), ElementsAre("policy"));
}

TEST(scheduler_verdict, S7_finds_nothing_fatal_in_what_tools_write) {
  for (const auto& file : files_in("corpus")) {
    for (const int minor : {oldest_minor, 36, newest_minor})
      EXPECT_EQ(first_end(judge(slurp(file), kubernetes(minor))), "") << file;
  }
}

/// The text next to it; QM_GOLDEN=write writes what differs.
void compare(const std::filesystem::path& file, const std::string& is) {
  if (const auto* write = std::getenv("QM_GOLDEN"); write && std::string_view(write) == "write")
    std::ofstream(file, std::ios::binary) << is;
  EXPECT_EQ(is, slurp(file)) << file;
}

std::string lines_of(const std::string& name, const findings& findings) {
  std::string out;
  for (const auto entry : {text::language::en, text::language::zh}) {
    for (const auto& finding : findings)
      out += name + ":" + std::to_string(finding.location.line) + ":" + std::to_string(finding.location.column) + ": " +
             message_of(finding, entry) + " [" + std::string(to_string(finding.issue)) + "]\n";
  }
  return out;
}

TEST(scheduler_verdict, S7_golden_names_of_every_mistake_of_the_manuals_once) {
  std::string all;
  for (const auto& file : files_in("mistakes")) {
    const auto found = judge(slurp(file), kubernetes(newest_minor));
    const auto name = file.filename().string();
    all += lines_of(name, found);
    if (name.starts_with("04-")) {
      EXPECT_THAT(codes_of(found), testing::UnorderedElementsAre("single_api_server", "service_proxy_rights"));
    } else if (name.starts_with("19-")) {
      EXPECT_THAT(found, IsEmpty());
    } else if (name.contains("manual")) {
      auto codes = codes_of(found);
      if (name.starts_with("16-")) std::erase(codes, "field_misplaced");
      EXPECT_THAT(codes, testing::UnorderedElementsAre("api_version_removed", "managed_incomplete", "placeholder_left",
                                                       "kubelet_client_certificate"))
          << name;
    } else {
      EXPECT_EQ(found.size(), name.starts_with("17-") ? 2U : 1U) << lines_of(name, found);
    }
  }
  compare(golden_files / "mistakes.txt", all);
}

TEST(scheduler_verdict, S7_flags_the_manuals_file_in_every_version) {
  const auto text = slurp(golden_files / "mistakes/01-v1beta2.yaml");
  for (int minor = oldest_minor; minor <= newest_minor; ++minor)
    EXPECT_THAT(codes_of(judge(text, kubernetes(minor))), ElementsAre("api_version_removed")) << minor;
}

/// What v1 no longer has is reported next to the version: both have to be edited.
TEST(scheduler_verdict, judges_a_removed_version_by_the_fields_of_v1) {
  const auto text = slurp(golden_files / "mistakes/01-v1beta2.yaml") + "healthzBindAddress: 0.0.0.0:10251\n";
  EXPECT_THAT(codes_of(judge(text)), ElementsAre("api_version_removed", "field_unknown"));
}

TEST(scheduler_verdict, S7_golden_judgement_of_the_static_pod_beside_its_file) {
  const auto text = slurp(golden_files / "mistakes/19-sound.yaml");
  const auto config = parse_document(text);
  ASSERT_TRUE(config);
  std::string all;
  for (const auto& file : files_in("manifests")) {
    const auto manifest = parse_document(slurp(file));
    ASSERT_TRUE(manifest) << file;
    all += lines_of(file.filename().string(), judge_static_pod(*manifest, &*config, kubernetes(newest_minor)));
  }
  compare(golden_files / "manifests.txt", all);
}

TEST(scheduler_verdict, S7_knows_the_file_that_another_product_lost_its_extender_by) {
  const auto first = parse_document(slurp(golden_files / "mistakes/05-service-proxy-rights.yaml"));
  const auto second = parse_document(slurp(golden_files / "mistakes/12-not-ignored.yaml"));
  const auto found = lost_between(*first, *second, "hami.yaml");
  EXPECT_THAT(codes_of(found), ElementsAre("extender_lost"));
  EXPECT_THAT(lost_between(*first, *first, "again.yaml"), IsEmpty());
}

TEST(scheduler_verdict, takes_plugins_of_an_image_of_ones_own) {
  const auto all = mutants();
  const auto match = std::ranges::find(all, "a plugin that is not there", &mutant::name);
  auto kubernete = kubernetes(newest_minor);
  EXPECT_EQ(first_end(judge(match->text, kubernete)), "plugin_unknown");
  kubernete.plugins = {"Coscheduling"};
  EXPECT_EQ(first_end(judge(match->text, kubernete)), "");
}

TEST(scheduler_verdict, needs_no_kubeconfig_in_a_pod_of_its_own) {
  const auto text = slurp(golden_files / "mistakes/18-no-kubeconfig.yaml");
  server server;
  EXPECT_EQ(first_end(judge(text, server)), "no_kubeconfig");
  server.in_cluster = true;
  EXPECT_THAT(judge(text, server), IsEmpty());
}

TEST(scheduler_verdict, F36_says_where) {
  const auto found = judge(
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
      "clientConnection: {kubeconfig: a}\nextenders:\n  - urlPrefix: http://10.0.0.1:1\n    weigth: 1\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].location, (text::yaml::place{6, 5}));
  EXPECT_EQ(found[0].field, "extenders[0].weigth");
  EXPECT_EQ(found[0].hint, "weight");
}

TEST(scheduler_verdict, F36_a_number_beyond_every_type_is_refused) {
  const auto findings = judge(R"({"kind": 1e99999, "apiVersion": "v1"})", kubernetes(newest_minor));
  ASSERT_THAT(codes_of(findings), ElementsAre("not_json"));
  EXPECT_THAT(message_of(findings.at(0), text::language::en), testing::HasSubstr("1e99999"));
}

/// base.yaml with one edit, and what is reported about it.
std::vector<std::string> said_of(const std::string& before, const std::string& after) {
  auto text = slurp(golden_files / "base.yaml");
  const auto sound = codes_of(judge(text, kubernetes(newest_minor)));
  text.replace(text.find(before), before.size(), after);
  auto out = codes_of(judge(text, kubernetes(newest_minor)));
  for (const auto& entry : sound) {
    if (const auto match = std::ranges::find(out, entry); match != out.end()) out.erase(match);
  }
  return out;
}

TEST(scheduler_verdict, F36_knows_an_address_nothing_can_be_sent_to) {
  const auto judge_url = [](const std::string& url) {
    return said_of("https://127.0.0.1:9443/scheduler", "\"" + url + "\"");
  };
  for (const auto* url : {"https://[::1", "https://[::1:443", "https://[a]", "https://10.0.0.1:99999",
                          "https://10.0.0.1:0", "https://10.0.0.1:00", "https://10.0.0.1:-1", "https://10.0.0.1:80:90",
                          "https://10.0.0.256", "https://10.0.0:443/x", "https://a,b"})
    EXPECT_THAT(judge_url(url), ElementsAre("url_malformed")) << url;
  EXPECT_THAT(judge_url("https://a b"), ElementsAre("url_folded"));
  for (const auto* url : {"https://", "https://:443", "https:///x", "https:10.0.0.1", "10.0.0.1"})
    EXPECT_THAT(judge_url(url), ElementsAre("url_cut")) << url;
  for (const auto* url : {"https://[::1]:443/x", "https://10.0.0.1", "https://10.0.0.1:65535", "https://10.0.0.1:",
                          "http://extender.example:1", "https://a_b.example", "https://1:2@a.example:443"})
    EXPECT_THAT(judge_url(url), IsEmpty()) << url;
}

TEST(scheduler_verdict, F36_knows_names_the_API_server_refuses) {
  EXPECT_THAT(said_of("resourceName: mutant", "resourceName: a b"), ElementsAre("lease_name_malformed"));
  EXPECT_THAT(said_of("resourceName: mutant", "resourceName: Mutant"), ElementsAre("lease_name_malformed"));
  EXPECT_THAT(said_of("resourceName: mutant", "resourceName: a.b"), IsEmpty());
  EXPECT_THAT(said_of("resourceName: mutant", "resourceName: ''"), IsEmpty()) << "the default";
  EXPECT_THAT(said_of("resourceName: mutant", "resourceNamespace: a.b"), ElementsAre("lease_name_malformed"));
  EXPECT_THAT(said_of("resourceName: mutant", "resourceNamespace: kube-system"), IsEmpty());
  EXPECT_THAT(said_of("leaderElect: true\n  resourceName: mutant", "leaderElect: false\n  resourceName: a b"),
              IsEmpty());
  EXPECT_THAT(said_of("schedulerName: batch", "schedulerName: a b"), ElementsAre("scheduler_name_malformed"));
  EXPECT_THAT(said_of("schedulerName: batch", "schedulerName: example.com/Batch_1"), IsEmpty());
  EXPECT_EQ(effect_of(code::lease_name_malformed), effect::idle);
  EXPECT_EQ(effect_of(code::scheduler_name_malformed), effect::risk);
}

TEST(scheduler_verdict, F36_bounds_what_aliases_multiply) {
  std::string text =
      "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders:\n- &e\n"
      "  managedResources:\n";
  for (int i = 0; i < 2000; ++i) text += "  - {name: example.com/a" + std::to_string(i) + "}\n";
  for (int i = 0; i < 2000; ++i) text += "- *e\n";
  EXPECT_EQ(first_end(judge(text)), "not_yaml");
}

TEST(scheduler_finding, has_words_for_every_code_in_both_languages) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < code_count; ++i) {
    const finding finding{.issue = static_cast<code>(i),
                          .location = {},
                          .field = "f",
                          .value = "v",
                          .other = "o",
                          .allowed = text::phrase("a"),
                          .hint = "h"};
    EXPECT_TRUE(names.insert(to_string(finding.issue)).second);
    for (const auto entry : {text::language::en, text::language::zh}) {
      EXPECT_FALSE(wrong_of(finding, entry).empty() || remedy_of(finding, entry).empty()) << to_string(finding.issue);
    }
  }
}

}  // namespace
}  // namespace scheduler_config
